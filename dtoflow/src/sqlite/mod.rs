//! The SQLite twin. Tables: `migrations/sqlite/0002_dtoflow.sql`, `0009_history.sql`.
//!
//! Differs by necessity: rows of a batch go in and out as one JSON array a statement, payloads beside it as one blob;
//! counts are kept in their own table.

mod alias;
mod history;
mod record;
mod row;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use cqs::announce::{Announcement, LeaseLane, Woken};
use db::sqlite::SqliteDb;
use domain::{LeaseRef, Parent, TenantId, Timestamp, TrackingId, Urn};
use sqlx::SqliteConnection;

use crate::{
    alias::{AliasKey, AliasRules},
    alias_list::{self, AliasIndex as _},
    history::{HistoryAsk, HistoryEntry, Notes},
    model::{
        AliasFound, AliasListAsk, AliasLook, Page, ReadBatch, Reindexed, StoreCount, StoreListAsk, Stored, Touch,
        TouchDone, Version, WriteBatch, WriteDone,
    },
    plan::{AliasChange, Current, Put},
    steps,
    store::{DtoStore, Result, sealed::Reindex},
    unit::{IndexedRecord, RulesRow, Unit},
};

/// The SQLite twin. Clones share their database.
#[derive(Debug, Clone)]
pub struct SqliteDtoStore {
    db: SqliteDb,
}

impl SqliteDtoStore {
    /// The store in `db`, which the queues share.
    pub fn new(db: SqliteDb) -> Self {
        Self { db }
    }
}

struct SqliteUnit<'c> {
    conn: &'c mut SqliteConnection,
}

#[tonic::async_trait]
impl DtoStore for SqliteDtoStore {
    async fn record_write(&self, batch: WriteBatch, now: Timestamp) -> Result<WriteDone> {
        self.db
            .write(move |conn| {
                Box::pin(async move { steps::record_write(&mut SqliteUnit { conn }, &batch, now).await })
            })
            .await
    }

    async fn record_touch(&self, touch: Touch, now: Timestamp) -> Result<TouchDone> {
        self.db
            .write(move |conn| {
                Box::pin(async move { steps::record_touch(&mut SqliteUnit { conn }, &touch, now).await })
            })
            .await
    }

    async fn record_read(&self, batch: ReadBatch) -> Result<Vec<Option<Stored>>> {
        self.db.read(move |conn| Box::pin(record::read(conn, batch))).await
    }

    async fn alias_list(&self, ask: AliasListAsk) -> Result<Page<AliasFound>> {
        self.db.read(move |conn| Box::pin(alias_list::list(conn, ask))).await
    }

    async fn alias_count(&self, look: AliasLook, parents: Vec<Parent>) -> Result<Vec<i64>> {
        self.db.read(move |conn| Box::pin(async move { conn.count(&look, &parents).await })).await
    }

    async fn alias_stores(&self, ask: StoreListAsk) -> Result<Page<StoreCount>> {
        self.db.read(move |conn| Box::pin(alias::stores(conn, ask))).await
    }

    async fn history_list(&self, ask: HistoryAsk) -> Result<Page<HistoryEntry>> {
        self.db.read(move |conn| Box::pin(history::list(conn, ask))).await
    }

    async fn history_prune(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.db.write(move |conn| Box::pin(history::prune(conn, before, limit))).await
    }
}

#[tonic::async_trait]
impl Reindex for SqliteDtoStore {
    async fn alias_reindex(&self, rules: AliasRules, limit: usize) -> Result<Reindexed> {
        self.db
            .write(move |conn| {
                Box::pin(async move { steps::alias_reindex(&mut SqliteUnit { conn }, rules, limit).await })
            })
            .await
    }
}

impl Unit for SqliteUnit<'_> {
    async fn lease_check(&mut self, lease: &LeaseRef, now: Timestamp) -> Result<LeaseLane> {
        Ok(cqs::sqlite::lease_check(self.conn, lease, now).await?)
    }

    async fn operation_among(&mut self, tenant: &TenantId, tracking_ids: &[TrackingId]) -> Result<Option<TrackingId>> {
        Ok(cqs::sqlite::operation_among(self.conn, tenant, tracking_ids).await?)
    }

    async fn announce(&mut self, announcements: &[Announcement], now: Timestamp) -> Result<Woken> {
        Ok(cqs::sqlite::announce(self.conn, announcements, now).await?)
    }

    async fn record_current(&mut self, batch: &WriteBatch) -> Result<Vec<Option<Current>>> {
        record::current(self.conn, batch).await
    }

    async fn record_versions(&mut self, tenant: &TenantId, urns: &[Urn]) -> Result<HashMap<Urn, Version>> {
        record::versions(self.conn, tenant, urns).await
    }

    async fn record_put(&mut self, batch: &WriteBatch, puts: &[Put], now: Timestamp) -> Result<()> {
        record::put(self.conn, batch, puts, now).await
    }

    async fn record_touch(&mut self, touch: &Touch, now: Timestamp) -> Result<Vec<bool>> {
        record::touch(self.conn, touch, now).await
    }

    async fn alias_change(&mut self, tenant: &TenantId, change: &AliasChange) -> Result<()> {
        alias::change(self.conn, tenant, change).await
    }

    async fn history_add(&mut self, batch: &WriteBatch, notes: &Notes, now: Timestamp) -> Result<()> {
        history::add(self.conn, batch, notes, now).await
    }

    async fn rules_find(&mut self) -> Result<Option<RulesRow>> {
        rules::find(self.conn).await
    }

    async fn rules_put(&mut self, rules: RulesRow) -> Result<()> {
        rules::put(self.conn, rules).await
    }

    async fn record_walk(&mut self, position: i64, limit: usize) -> Result<Vec<IndexedRecord>> {
        rules::walk(self.conn, position, limit).await
    }

    async fn record_aliases_put(&mut self, aliases: &[(i64, Vec<AliasKey>)]) -> Result<()> {
        rules::aliases_put(self.conn, aliases).await
    }
}
