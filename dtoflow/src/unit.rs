//! What a twin's open unit of work can do. The steps (`crate::steps`) are written once over it; a twin adds SQL or maps.
//!
//! Every function is one statement or a bounded few, whatever the number of records; none decides anything.

use std::{collections::HashMap, future::Future};

use cqs::announce::{Announcement, LeaseLane, Woken};
use domain::{DtoType, LeaseRef, TenantId, Timestamp, TrackingId, Urn};
use prost::bytes::Bytes;

use crate::{
    alias::AliasKey,
    history::Notes,
    model::{Touch, Version, WriteBatch},
    plan::{AliasChange, Current, Put},
    store::Result,
};

/// Which rules the index follows, and how far a re-index has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RulesRow {
    /// Rules the whole index follows.
    pub(crate) version: i64,
    /// Rules a re-index brings it to.
    pub(crate) target: i64,
    /// Position of the last record brought there.
    pub(crate) done: i64,
}

/// A record as a re-index finds it.
#[derive(Debug, Clone)]
pub(crate) struct IndexedRecord {
    /// Its position; only grows from record to record.
    pub(crate) position: i64,
    pub(crate) tenant: TenantId,
    pub(crate) dto_type: DtoType,
    pub(crate) urn: Urn,
    pub(crate) payload: Bytes,
    pub(crate) aliases: Vec<AliasKey>,
}

/// An open unit of work.
pub(crate) trait Unit: Send {
    /// The lane of a live lease; refuses one that is over.
    fn lease_check(&mut self, lease: &LeaseRef, now: Timestamp) -> impl Future<Output = Result<LeaseLane>> + Send;
    /// The first of these tracking ids that is an operation's of the tenant.
    fn operation_among(
        &mut self,
        tenant: &TenantId,
        tracking_ids: &[TrackingId],
    ) -> impl Future<Output = Result<Option<TrackingId>>> + Send;
    /// Puts the notifications into the queues.
    fn announce(
        &mut self,
        announcements: &[Announcement],
        now: Timestamp,
    ) -> impl Future<Output = Result<Woken>> + Send;

    /// The records of the batch's changes as they are, one per change.
    fn record_current(&mut self, batch: &WriteBatch) -> impl Future<Output = Result<Vec<Option<Current>>>> + Send;
    /// The versions of those of these records that are there.
    fn record_versions(
        &mut self,
        tenant: &TenantId,
        urns: &[Urn],
    ) -> impl Future<Output = Result<HashMap<Urn, Version>>> + Send;
    /// Writes records' rows.
    fn record_put(
        &mut self,
        batch: &WriteBatch,
        puts: &[Put],
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Bumps the time of those records that are there; says which.
    fn record_touch(&mut self, touch: &Touch, now: Timestamp) -> impl Future<Output = Result<Vec<bool>>> + Send;

    /// Changes the index and its counts.
    fn alias_change(&mut self, tenant: &TenantId, change: &AliasChange) -> impl Future<Output = Result<()>> + Send;

    /// Adds entries to histories, then cuts those that are to be cut.
    fn history_add(
        &mut self,
        batch: &WriteBatch,
        notes: &Notes,
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;

    /// The rules row; none in a store that never had one.
    fn rules_find(&mut self) -> impl Future<Output = Result<Option<RulesRow>>> + Send;
    /// Writes the rules row.
    fn rules_put(&mut self, rules: RulesRow) -> impl Future<Output = Result<()>> + Send;
    /// Records that are there, by position, after `position`.
    fn record_walk(&mut self, position: i64, limit: usize) -> impl Future<Output = Result<Vec<IndexedRecord>>> + Send;
    /// Writes what the index holds for records, by position.
    fn record_aliases_put(&mut self, aliases: &[(i64, Vec<AliasKey>)]) -> impl Future<Output = Result<()>> + Send;
}
