//! Rows, lanes, heads, leases, ledger counts: what the tables of a twin hold, in the words of the domain.

use std::ops::{Add, AddAssign};

use domain::{
    AliasName, DtoType, LaneKind, Notification, OperatorSubject, ParentShape, QueueName, Reason, ServiceName,
    SplitItem, StoreId, Target, TenantId, Timestamp, TrackingId, Urn,
};

/// A queue as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its short key in the tables.
    pub id: i64,
    /// The name of the service that owns it.
    pub name: QueueName,
    /// Whose writes are announced here.
    pub subscriptions: Vec<DtoType>,
    /// What it splits.
    pub shapes: Vec<ParentShape>,
    /// Whether one worker holds a store at a time.
    pub exclusive: Exclusive,
}

/// How much is to be done in a queue, parents counted like labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backlog {
    /// Its name.
    pub queue: QueueName,
    /// Rows that wait, deferred and backing-off ones included.
    pub waiting: i64,
    /// Rows under a lease.
    pub leased: i64,
}

/// Whether one worker holds a store at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusive {
    /// No: any number of leases.
    No,
    /// One live lease per store.
    ByStore,
}

impl Queue {
    /// The store under whose head a row lies in this queue.
    pub fn store_of(&self, urn: &Urn) -> Option<StoreId> {
        match self.exclusive {
            Exclusive::No => None,
            Exclusive::ByStore => urn.store().cloned(),
        }
    }

    /// Whether the queue declared that it splits parents like this one.
    pub fn splits(&self, item: &SplitItem) -> bool {
        self.shapes.contains(&ParentShape { dto_type: item.dto_type, alias: item.alias })
    }
}

/// Labels (records) and parents are counted, claimed and bounded apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// A record to handle.
    Label,
    /// A parent to split.
    Parent,
}

impl RowKind {
    /// Of an item.
    pub fn of(item: &SplitItem) -> Self {
        if item.target.is_parent() { Self::Parent } else { Self::Label }
    }
}

/// A row before it has an id, or with the one it keeps when it comes back from a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Unique in the platform, only grows; 0 for a row that is not stored yet.
    pub id: i64,
    /// The lane.
    pub lane: i64,
    /// The store of its head; none in a queue that is not exclusive by store.
    pub store: Option<StoreId>,
    /// What about.
    pub item: SplitItem,
    /// When it should be done.
    pub sla: Timestamp,
    /// Of what caused it.
    pub tracking_id: Option<TrackingId>,
    /// Attempts that ended in retry.
    pub attempts: i32,
    /// None: ready. Otherwise deferred or backing off until then.
    pub due_at: Option<Timestamp>,
    /// Whether it is leased in company.
    pub company: Company,
    /// Where an unfinished split goes on.
    pub cursor: String,
}

/// Whether a row may be leased together with others. A row whose lease lapsed is not: if it brought its worker down, it
/// shall not bring down its neighbours again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    /// In a batch.
    Batch,
    /// In a batch, although a restart of the platform ended its last lease: restarts are common and most rows have no part
    /// in them. The next one that ends a lease of it makes it a suspect, leased alone.
    Returned,
    /// Alone, having lapsed so often while alone.
    Alone {
        /// Lapses while leased alone.
        lapses: i32,
    },
}

impl Company {
    /// Whether it is leased together with others.
    pub fn shares(self) -> bool {
        match self {
            Self::Batch | Self::Returned => true,
            Self::Alone { .. } => false,
        }
    }
}

impl Row {
    /// The tenant, which is its URN's.
    pub fn tenant(&self) -> &TenantId {
        self.item.target.urn().tenant()
    }

    /// Label or parent.
    pub fn kind(&self) -> RowKind {
        RowKind::of(&self.item)
    }

    /// The order inside a lane.
    pub fn order(&self) -> (Timestamp, i64) {
        (self.sla, self.id)
    }

    /// As a worker sees it.
    pub fn notification(&self) -> Notification {
        Notification {
            id: self.id,
            lane: self.lane,
            item: self.item.clone(),
            sla: self.sla,
            tracking_id: self.tracking_id.clone(),
            attempts: self.attempts,
            cursor: self.cursor.clone(),
        }
    }
}

/// A record as a key: what undelivered marks and coalescing compare.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// Its type.
    pub dto_type: DtoType,
    /// Its name.
    pub urn: Urn,
}

/// A lane: rows of one tenant that are paused, cancelled, throttled and chosen together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Its id.
    pub id: i64,
    /// Its only tenant.
    pub tenant: TenantId,
    /// What it is for.
    pub kind: LaneKind,
    /// Of an operation, or of the write that fans out; none in an ordinary lane.
    pub tracking_id: Option<TrackingId>,
}

/// A lane to be opened.
#[derive(Debug, Clone)]
pub struct NewLane {
    /// Its only tenant.
    pub tenant: TenantId,
    /// Operation or split; ordinary lanes open themselves.
    pub kind: LaneKind,
    /// Of an operation, or of the write that fans out.
    pub tracking_id: Option<TrackingId>,
}

/// The two kinds of lanes the choice tells apart: operations' and splits' lanes count alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneClass {
    /// A tenant's ordinary lane.
    Ordinary,
    /// An operation's or a split's lane.
    Bulk,
}

impl From<LaneKind> for LaneClass {
    fn from(kind: LaneKind) -> Self {
        match kind {
            LaneKind::Ordinary => Self::Ordinary,
            LaneKind::Operation | LaneKind::Split => Self::Bulk,
        }
    }
}

/// What is claimable first in one lane of one queue (of one store, where the queue is exclusive by store).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The lane.
    pub lane: i64,
    /// The store.
    pub store: Option<StoreId>,
    /// SLA of what would be claimed.
    pub claim_sla: Timestamp,
    /// SLA of the first ready label.
    pub label_sla: Option<Timestamp>,
    /// SLA of the first ready parent, only when a parent may be claimed now.
    pub parent_sla: Option<Timestamp>,
}

/// How a step changes the counts of one head. The head's SLAs are read again from the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadChange {
    /// Ready labels more.
    pub ready_labels: i64,
    /// Ready parents more.
    pub ready_parents: i64,
    /// Deferred and backing-off rows more.
    pub delayed: i64,
    /// Leased parents more.
    pub leased_parents: i64,
}

/// Names a head.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeadKey {
    /// Key of the queue.
    pub queue: i64,
    /// The lane.
    pub lane: i64,
    /// The store.
    pub store: Option<StoreId>,
}

/// A lease as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Only grows; 0 for a lease that is not stored yet.
    pub generation: i64,
    /// Key of the queue.
    pub queue: i64,
    /// The one lane of its rows.
    pub lane: i64,
    /// The store it holds, in a queue that is exclusive by store.
    pub store: Option<StoreId>,
    /// The service that took it.
    pub owner: ServiceName,
    /// The worker's incarnation id, for logs.
    pub worker_id: String,
    /// When it lapses.
    pub expires_at: Timestamp,
}

/// Counts of one kind of rows of one queue under one operation, or a change of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ever came in.
    pub enqueued: i64,
    /// Handled.
    pub done: i64,
    /// Of the handled: nothing had to change.
    pub unchanged: i64,
    /// In the dead letter.
    pub failed: i64,
    /// Merged into a row that waited.
    pub coalesced: i64,
    /// Cancelled.
    pub cancelled: i64,
    /// Waiting, deferred and backing-off ones included.
    pub waiting: i64,
    /// Leased.
    pub leased: i64,
}

impl Counts {
    /// Whether every row is in exactly one place: the ledger's equation.
    pub fn balanced(&self) -> bool {
        self.enqueued == self.done + self.failed + self.coalesced + self.cancelled + self.waiting + self.leased
    }

    /// What is not over yet.
    pub fn open(&self) -> i64 {
        self.waiting + self.leased
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            enqueued: self.enqueued + other.enqueued,
            done: self.done + other.done,
            unchanged: self.unchanged + other.unchanged,
            failed: self.failed + other.failed,
            coalesced: self.coalesced + other.coalesced,
            cancelled: self.cancelled + other.cancelled,
            waiting: self.waiting + other.waiting,
            leased: self.leased + other.leased,
        }
    }
}

impl Counts {
    /// These counts so often.
    #[must_use]
    pub fn times(self, rows: i64) -> Self {
        Self {
            enqueued: self.enqueued * rows,
            done: self.done * rows,
            unchanged: self.unchanged * rows,
            failed: self.failed * rows,
            coalesced: self.coalesced * rows,
            cancelled: self.cancelled * rows,
            waiting: self.waiting * rows,
            leased: self.leased * rows,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Where counts belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerKey {
    /// The operation's lane.
    pub lane: i64,
    /// Key of the queue.
    pub queue: i64,
    /// Labels or parents.
    pub kind: RowKind,
}

/// Counts of one queue under one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    /// The queue.
    pub queue: QueueName,
    /// Of labels.
    pub labels: Counts,
    /// Of parents.
    pub parents: Counts,
}

/// A row that will not be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The row, as it was.
    pub row: Row,
    /// Why.
    pub cause: String,
}

/// Failed items with the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureGroup {
    /// Where.
    pub queue: QueueName,
    /// Why.
    pub cause: String,
    /// How many.
    pub count: i64,
    /// One of them.
    pub sample_urn: String,
}

/// What a `ReEnqueue` call did; remembered for a repeated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitCounts {
    /// Children that wait because of the call.
    pub enqueued: i64,
    /// Children merged into rows that waited already.
    pub coalesced: i64,
}

/// An accepted trigger as it was asked for, without its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Position in lists, only grows; 0 before it is stored.
    pub id: i64,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name within the tenant.
    pub tracking_id: TrackingId,
    /// Its lane.
    pub lane: i64,
    /// The queue it started in.
    pub queue: QueueName,
    /// The trigger's name; empty when the service acted by itself.
    pub trigger: String,
    /// What the trigger named.
    pub scope: Option<Urn>,
    /// Why.
    pub reason: Reason,
    /// On whose behalf.
    pub operator_subject: Option<OperatorSubject>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The SLA timestamp that counts.
    pub sla: Timestamp,
    /// The SLA timestamp somebody chose; none where it is a default.
    pub sla_chosen: Option<Timestamp>,
    /// SHA-256 of the items, 64 hex digits.
    pub items_digest: String,
    /// Parents put into the queue at acceptance.
    pub items_enqueued: i64,
    /// When it was first seen finished.
    pub finished_at: Option<Timestamp>,
}

/// An operation with its ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationReport {
    /// What was asked for.
    pub operation: Operation,
    /// Per queue, in the order of the flow.
    pub queues: Vec<QueueCounts>,
    /// Failed items by cause.
    pub failures: Vec<FailureGroup>,
}

/// What became of an audited call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// Done as asked.
    Accepted,
    /// The same request had been accepted before.
    Replayed,
    /// Refused; nothing was changed.
    Refused,
}

impl AuditOutcome {
    /// The text in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Replayed => "replayed",
            Self::Refused => "refused",
        }
    }
}

/// A row of the audit log. Texts are bounded by who makes the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Position in the log, only grows; 0 before it is stored.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Which service called or appended.
    pub service: ServiceName,
    /// On whose behalf; empty: nobody's.
    pub operator_subject: String,
    /// The tenant concerned, where one is known.
    pub tenant: Option<TenantId>,
    /// What was asked.
    pub action: String,
    /// Of the request; empty where it had none that could be read.
    pub tracking_id: String,
    /// Of the request; empty where it had none that could be read.
    pub reason: String,
    /// SHA-256 of the request, 64 hex digits, or empty.
    pub request_digest: String,
    /// What became of it.
    pub outcome: AuditOutcome,
    /// Code of a refusal, or empty.
    pub error_code: String,
    /// One sentence more.
    pub detail: String,
}

/// The key under which waiting rows of a lane coalesce.
pub type CoalesceKey = (DtoType, Urn, Option<AliasName>);

/// The coalescing key of an item, borrowed.
pub fn coalesce_key_ref(item: &SplitItem) -> (DtoType, &Urn, Option<AliasName>) {
    (item.dto_type, item.target.urn(), item.alias)
}

/// The coalescing key of an item.
pub fn coalesce_key(item: &SplitItem) -> CoalesceKey {
    (item.dto_type, item.target.urn().clone(), item.alias)
}

/// The record an item is about; none for a parent.
pub fn record_key(item: &SplitItem) -> Option<RecordKey> {
    match &item.target {
        Target::Record(urn) => Some(RecordKey { dto_type: item.dto_type, urn: urn.clone() }),
        Target::Parent(_) => None,
    }
}
