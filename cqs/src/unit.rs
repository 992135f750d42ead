//! What a twin's open unit of work can do: single reads and writes of its tables. The steps (`crate::steps`) are written
//! once over these; a twin adds SQL or maps and nothing else.
//!
//! Every function is one statement or a bounded few; none decides anything. Slices are bounded by the callers.

use std::future::Future;

use domain::{QueueName, SplitItem, StoreId, TenantId, Timestamp, TrackingId};

use crate::{
    StoreError,
    model::{
        AuditRow, Backlog, Counts, DeadLetter, FailureGroup, Head, HeadChange, HeadKey, Lane, LaneClass, Lease,
        LedgerKey, NewLane, Operation, Queue, RecordKey, Row, RowKind, SplitCounts,
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// Queues.
pub(crate) trait Queues: Send {
    /// The queue of that name.
    fn queue_find(&mut self, name: &QueueName) -> impl Future<Output = Result<Option<Queue>>> + Send;
    /// Every queue, by key. They are few: one per service.
    fn queue_list(&mut self) -> impl Future<Output = Result<Vec<Queue>>> + Send;
    /// How much waits and is leased in each queue, by key.
    fn queue_backlogs(&mut self) -> impl Future<Output = Result<Vec<Backlog>>> + Send;
    /// Stores a queue by its name; its `id` is not looked at. The store exclusivity of an existing queue stays.
    fn queue_put(&mut self, queue: &Queue) -> impl Future<Output = Result<()>> + Send;
}

/// Lanes and their heads.
pub(crate) trait Lanes: Send {
    /// The lane of that id.
    fn lane_find(&mut self, lane: i64) -> impl Future<Output = Result<Option<Lane>>> + Send;
    /// The tenant's ordinary lane, opened if it is the first time.
    fn lane_ordinary(&mut self, tenant: &TenantId, now: Timestamp) -> impl Future<Output = Result<Lane>> + Send;
    /// Opens a lane.
    fn lane_open(&mut self, lane: NewLane, now: Timestamp) -> impl Future<Output = Result<Lane>> + Send;
    /// Whether nothing of the lane waits or is leased, in any queue.
    fn lane_is_idle(&mut self, lane: i64) -> impl Future<Output = Result<bool>> + Send;
    /// Forgets idle split lanes opened before that time, at most `limit`.
    fn lane_prune(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<()>> + Send;
    /// Makes other units of work on the same lane of the same queue wait for this one's end. Called before the lane's rows
    /// are looked at, except for those of a head or a lease that the unit found for itself.
    fn lane_lock(&mut self, queue: i64, lane: i64) -> impl Future<Output = Result<()>> + Send;
    /// Adds to the counts of heads, reads their SLAs again from the rows, and drops the empty ones. Every key that a step
    /// touched is here, also with a zero change.
    fn head_change(&mut self, changes: &[(HeadKey, LaneClass, HeadChange)]) -> impl Future<Output = Result<()>> + Send;
    /// Marks every head of a store in a queue as held by a lease, or as free again.
    fn head_hold(&mut self, queue: i64, store: &StoreId, held: Held) -> impl Future<Output = Result<()>> + Send;
    /// The earliest claimable head of a class. Where units of work run beside each other, one that another unit found is
    /// passed over until that one's end.
    fn head_first(&mut self, queue: i64, class: LaneClass) -> impl Future<Output = Result<Option<Head>>> + Send;
    /// The earliest claimable head of the first bulk lane whose id is larger than `after`; likewise.
    fn head_in_turn(&mut self, queue: i64, after: i64) -> impl Future<Output = Result<Option<Head>>> + Send;
}

/// Whether a live lease holds a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Yes: its heads are not chosen.
    Held,
    /// No.
    Free,
}

/// Which ready rows of a head.
#[derive(Debug, Clone)]
pub(crate) struct ReadyRange<'a> {
    /// Whose.
    pub(crate) head: &'a HeadKey,
    /// Labels or parents.
    pub(crate) kind: RowKind,
    /// At most so many.
    pub(crate) limit: usize,
}

/// Waiting rows: ready, deferred, backing off.
pub(crate) trait Rows: Send {
    /// The waiting rows of the lane with the coalescing keys of these items.
    fn row_same(
        &mut self,
        queue: i64,
        lane: i64,
        items: &[&SplitItem],
    ) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Inserts rows; a row with id 0 gets the next one, in the order given.
    fn row_insert(&mut self, queue: i64, rows: &[Row]) -> impl Future<Output = Result<()>> + Send;
    /// Overwrites what may change of waiting rows: SLA, tracking id, attempts, due time, company, cursor.
    fn row_update(&mut self, queue: i64, rows: &[Row]) -> impl Future<Output = Result<()>> + Send;
    /// Ready rows of a head in order.
    fn row_ready(&mut self, range: ReadyRange<'_>) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Deferred and backing-off rows whose time has come, earliest first; likewise.
    fn row_due(&mut self, queue: i64, now: Timestamp, limit: usize) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// When the next deferred or backing-off row comes due.
    fn row_next_due(&mut self, queue: i64) -> impl Future<Output = Result<Option<Timestamp>>> + Send;
    /// Which of these records wait in the queue in another lane than `lane`.
    fn row_elsewhere(
        &mut self,
        queue: i64,
        lane: i64,
        records: &[RecordKey],
    ) -> impl Future<Output = Result<Vec<RecordKey>>> + Send;
}

/// Names a `ReEnqueue` call: a row is split at most once under one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SplitKey {
    /// Key of the queue.
    pub(crate) queue: i64,
    /// Generation of the lease.
    pub(crate) generation: i64,
    /// The row that was split.
    pub(crate) id: i64,
}

/// Leased rows that were dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Labels.
    pub(crate) labels: i64,
    /// Parents.
    pub(crate) parents: i64,
}

/// Leases and leased rows.
pub(crate) trait Leases: Send {
    /// Stores a lease and moves the ready rows to it. Gives its generation.
    fn lease_take(&mut self, lease: &Lease, rows: &[Row]) -> impl Future<Output = Result<i64>> + Send;
    /// The lease of that generation, lapsed or not. Other units of work on the same lease wait for this one's end.
    fn lease_find(&mut self, generation: i64) -> impl Future<Output = Result<Option<Lease>>> + Send;
    /// All rows of a lease, by id.
    fn lease_rows(&mut self, generation: i64) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Those rows of a lease that have these ids, by id.
    fn lease_rows_of(&mut self, generation: i64, ids: &[i64]) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Moves the end of a lease.
    fn lease_extend(&mut self, generation: i64, expires_at: Timestamp) -> impl Future<Output = Result<()>> + Send;
    /// Takes rows out of a lease. The lease ends with its last row; true then.
    fn lease_release(&mut self, generation: i64, ids: &[i64]) -> impl Future<Output = Result<bool>> + Send;
    /// Leases of a queue that lapsed by `now`, earliest first. One that another unit of work found is passed over.
    fn lease_lapsed(
        &mut self,
        queue: i64,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Lease>>> + Send;
    /// Drops those rows of a lease that have these ids, without looking at them further; how many they were by kind. The
    /// lease itself stays; [`Leases::lease_release`] ends it.
    fn lease_drop(&mut self, generation: i64, ids: &[i64]) -> impl Future<Output = Result<Dropped>> + Send;
    /// The next lease's generation is larger than `floor`, and than every one before.
    fn lease_generation_raise(&mut self, floor: i64) -> impl Future<Output = Result<()>> + Send;
    /// When the next lease of the queue lapses.
    fn lease_next_lapse(&mut self, queue: i64) -> impl Future<Output = Result<Option<Timestamp>>> + Send;
    /// What a `ReEnqueue` under that generation did for that row.
    fn split_find(&mut self, key: SplitKey) -> impl Future<Output = Result<Option<SplitCounts>>> + Send;
    /// Remembers what a `ReEnqueue` did.
    fn split_put(
        &mut self,
        key: SplitKey,
        counts: SplitCounts,
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Forgets splits from before that time, at most `limit`.
    fn split_prune(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<()>> + Send;
}

/// The ledger and the dead letter.
pub(crate) trait Ledger: Send {
    /// Appends changes of counts.
    fn ledger_append(&mut self, deltas: &[(LedgerKey, Counts)]) -> impl Future<Output = Result<()>> + Send;
    /// The counts of lanes: folded ones and deltas together.
    fn ledger_read(&mut self, lanes: &[i64]) -> impl Future<Output = Result<Vec<(LedgerKey, Counts)>>> + Send;
    /// Folds the oldest deltas, at most `limit`; how many they were.
    fn ledger_fold(&mut self, limit: usize) -> impl Future<Output = Result<usize>> + Send;
    /// Appends to the dead letter; records are marked undelivered.
    fn dead_append(
        &mut self,
        queue: i64,
        dead: &[DeadLetter],
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Failed rows of a lane by queue and cause, the most frequent first.
    fn dead_groups(&mut self, lane: i64, limit: usize) -> impl Future<Output = Result<Vec<FailureGroup>>> + Send;
    /// Whether any record of the lane's tenant is marked undelivered in the queue; a twin may look at all tenants'. Nearly
    /// always none is.
    fn undelivered_any(&mut self, queue: i64, lane: i64) -> impl Future<Output = Result<bool>> + Send;
    /// Which of these records are marked undelivered in the queue.
    fn undelivered_among(
        &mut self,
        queue: i64,
        records: &[RecordKey],
    ) -> impl Future<Output = Result<Vec<RecordKey>>> + Send;
    /// Takes the undelivered marks of these records in the queue away.
    fn undelivered_clear(&mut self, queue: i64, records: &[RecordKey]) -> impl Future<Output = Result<()>> + Send;
}

/// Operations.
pub(crate) trait Operations: Send {
    /// The operation of that name.
    fn operation_find(
        &mut self,
        tenant: &TenantId,
        tracking_id: &TrackingId,
    ) -> impl Future<Output = Result<Option<Operation>>> + Send;
    /// Stores an operation, unless one of its name exists; true when it was stored.
    fn operation_insert(&mut self, operation: &Operation) -> impl Future<Output = Result<bool>> + Send;
    /// Writes when an operation was first seen finished, or that it is not (any more).
    fn operation_settle(
        &mut self,
        lane: i64,
        finished_at: Option<Timestamp>,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Operations of these tenants with an id below `before`, newest first.
    fn operation_page(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Operation>>> + Send;
}

/// Which part of the audit log.
#[derive(Debug, Clone)]
pub struct AuditFilter {
    /// Of these tenants, 1 to 1,000.
    pub tenants: Vec<TenantId>,
    /// Only of this tracking id.
    pub tracking_id: Option<TrackingId>,
    /// Only rows before this position.
    pub before: i64,
    /// At most so many.
    pub limit: usize,
}

/// The audit log.
pub(crate) trait Audit: Send {
    /// Appends rows; their ids are not looked at.
    fn audit_append(&mut self, rows: &[AuditRow]) -> impl Future<Output = Result<()>> + Send;
    /// A part of the log, newest first.
    fn audit_page(&mut self, filter: &AuditFilter) -> impl Future<Output = Result<Vec<AuditRow>>> + Send;
}

/// Whose time counts in a unit of work.
pub(crate) trait Clocked {
    /// The time of the unit, given the caller's: the same, unless the engine has a clock that all its processes share.
    fn time(&self, caller: Timestamp) -> Timestamp {
        caller
    }
}

/// An open unit of work.
pub(crate) trait Unit: Queues + Lanes + Rows + Leases + Ledger + Operations + Audit {}

impl<T: Queues + Lanes + Rows + Leases + Ledger + Operations + Audit> Unit for T {}
