//! Plain types of the store: what is written, read, and found under a parent.

use cqs::announce::{Woken, WriteAuthority};
use domain::{AliasName, DtoType, Parent, RecordId, ServiceIdentity, StoreId, TenantId, Timestamp, TrackingId, Urn};
use prost::bytes::Bytes;

use crate::alias::AliasKey;

/// A version of a record; from 1, 0 stands for an absent record.
pub type Version = i64;

/// What becomes of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes, found under these aliases (sorted).
    Put {
        /// As they came, checked.
        payload: Bytes,
        /// Derived from them.
        aliases: Vec<AliasKey>,
    },
    /// Nothing: it is deleted.
    Delete,
}

/// The version of a record that an output was computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The record.
    pub urn: Urn,
    /// Its version as read, 0 when it was absent.
    pub version: Version,
}

/// One record to write or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its type.
    pub dto_type: DtoType,
    /// Its name; a record of that type.
    pub urn: Urn,
    /// What becomes of it.
    pub content: Content,
    /// What it was computed from.
    pub inputs: Vec<Input>,
    /// SLA of the notifications it causes.
    pub sla: Timestamp,
    /// Goes on to the notifications it causes.
    pub tracking_id: Option<TrackingId>,
}

/// One call's changes: all of one tenant, no record twice.
#[derive(Debug, Clone)]
pub struct WriteBatch {
    /// Whose records.
    pub tenant: TenantId,
    /// Who writes.
    pub writer: ServiceIdentity,
    /// Under what.
    pub authority: WriteAuthority,
    /// At most [`domain::limits::RECORDS_PER_CALL_MAX`].
    pub changes: Vec<Change>,
}

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteStatus {
    /// Written or deleted.
    Written,
    /// It was so already.
    Unchanged,
    /// An input is no longer at the version named; nothing written.
    InputChanged,
}

/// What became of one change, with the record's version after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteResult {
    /// What.
    pub status: WriteStatus,
    /// 0 for a record that was never written.
    pub version: Version,
}

/// What a call's changes did.
#[derive(Debug, Clone, Default)]
pub struct WriteDone {
    /// One per change, in order.
    pub results: Vec<WriteResult>,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// Records of one type to announce again; no record twice.
#[derive(Debug, Clone)]
pub struct Touch {
    /// Their tenant.
    pub tenant: TenantId,
    /// Their type.
    pub dto_type: DtoType,
    /// At most [`domain::limits::TOUCH_MAX`].
    pub urns: Vec<Urn>,
    /// SLA of the notifications.
    pub sla: Timestamp,
    /// Goes on to the notifications.
    pub tracking_id: TrackingId,
}

/// What a touch did.
#[derive(Debug, Clone, Default)]
pub struct TouchDone {
    /// Per record: whether it exists, and so was touched.
    pub touched: Vec<bool>,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// A record to read.
#[derive(Debug, Clone)]
pub struct ReadKey {
    /// Which.
    pub urn: Urn,
    /// The version the caller has; a payload comes only if newer.
    pub known_version: Version,
}

/// Records of one tenant to read.
#[derive(Debug, Clone)]
pub struct ReadBatch {
    /// Their tenant.
    pub tenant: TenantId,
    /// At most [`domain::limits::RECORDS_PER_CALL_MAX`].
    pub keys: Vec<ReadKey>,
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// From 1.
    pub version: Version,
    /// None when the version the caller has is current.
    pub payload: Option<Bytes>,
    /// When this version was written or last touched.
    pub updated_at: Timestamp,
    /// Who wrote this version.
    pub written_by: ServiceIdentity,
    /// Tracking id of that write.
    pub tracking_id: Option<TrackingId>,
}

/// One relation of one type, looked at under parents of one tenant.
#[derive(Debug, Clone)]
pub struct AliasLook {
    /// The tenant of every parent.
    pub tenant: TenantId,
    /// The type of the records looked for.
    pub dto_type: DtoType,
    /// The relation.
    pub alias: AliasName,
}

/// A place in a listing: after this record of this parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasCursor {
    /// Index of the parent.
    pub parent: usize,
    /// The last record listed.
    pub id: RecordId,
}

/// A page of records under parents.
#[derive(Debug, Clone)]
pub struct AliasListAsk {
    /// Which relation.
    pub look: AliasLook,
    /// At most [`domain::limits::RECORDS_PER_CALL_MAX`], each on the level on which the records lie.
    pub parents: Vec<Parent>,
    /// Where the page begins; none: at the first parent.
    pub after: Option<AliasCursor>,
    /// At least 1.
    pub limit: usize,
}

/// A record found under a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasFound {
    /// Index of the parent.
    pub parent: usize,
    /// The record's id; its tenant and store are the parent's.
    pub id: RecordId,
}

/// A page with the answer to "is there more".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// At most as many as asked for.
    pub entries: Vec<T>,
    /// Whether entries follow.
    pub more: bool,
}

impl<T> Page<T> {
    /// From up to `limit + 1` entries, of which the last only says that there is more.
    pub(crate) fn cut(mut entries: Vec<T>, limit: usize) -> Self {
        let more = entries.len() > limit;
        entries.truncate(limit);
        Self { entries, more }
    }
}

/// A page of the stores under a tenant's parent.
#[derive(Debug, Clone)]
pub struct StoreListAsk {
    /// Which relation.
    pub look: AliasLook,
    /// Base of the parent.
    pub base: String,
    /// After this store; none: from the first.
    pub after: Option<StoreId>,
    /// At least 1.
    pub limit: usize,
}

/// A store with the number of its records under the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCount {
    /// The store.
    pub store: StoreId,
    /// At least 1.
    pub count: i64,
}

/// One bounded step of a re-index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reindexed {
    /// The index follows the rules asked for.
    Current,
    /// So many records were looked at; more wait.
    Step(usize),
}
