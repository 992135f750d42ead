//! What a twin's open unit of work can do: single reads and writes of its tables. The steps (`crate::steps`) are written
//! once over these; a twin adds SQL or maps and nothing else.
//!
//! Every function is one statement or a bounded few; none decides anything. Slices are bounded by the callers.

mod audit;

pub use audit::AuditFilter;
pub(crate) use audit::{AUDIT_DISORDER_MS, Audit};

use std::future::Future;

use domain::{LaneKind, QueueName, SplitItem, StoreId, TenantId, Timestamp, TrackingId, Urn};

use crate::{
    StoreError,
    model::{
        Act, Control, Counts, DeadLetter, DeadRange, DeadRow, FailureGroup, Head, HeadChange, HeadKey, Lane, Lease,
        LedgerKey, Load, NewLane, Operation, OperationTally, Pace, PlaceReport, Queue, RecordFate, RecordKey,
        RetryRule, Row, RowKind, SplitCounts,
    },
};

type Result<T> = std::result::Result<T, StoreError>;

/// Queues.
pub(crate) trait Queues: Send {
    /// The queue of that name.
    fn queue_find(&mut self, name: &QueueName) -> impl Future<Output = Result<Option<Queue>>> + Send;
    /// Every queue, by key. They are few: one per service.
    fn queue_list(&mut self) -> impl Future<Output = Result<Vec<Queue>>> + Send;
    /// Notes that a worker of the queue asked for work now.
    fn queue_polled(&mut self, queue: i64, now: Timestamp) -> impl Future<Output = Result<()>> + Send;
    /// Stores a queue by its name; its `id` and `polled_at` are not looked at. The store exclusivity of an existing queue
    /// stays.
    fn queue_put(&mut self, queue: &Queue) -> impl Future<Output = Result<()>> + Send;
}

/// Lanes, their heads, and their places: a lane in a queue. The choice goes over places, so it costs the same however
/// many heads (stores) a closed lane has: a control action touches the lane's few places, never its heads or rows.
pub(crate) trait Lanes: Send {
    /// The lane of that id, with its gate. What it says holds to the unit's end: where units of work run beside each
    /// other, a [`Controls::control_put`] on the lane waits for this one's end, and this one for that one's. (A row that
    /// is put into a lane cancelled meanwhile would be lost to the ledger.)
    fn lane_find(&mut self, lane: i64) -> impl Future<Output = Result<Option<Lane>>> + Send;
    /// The tenant's ordinary lane, opened if it is the first time.
    fn lane_ordinary(&mut self, tenant: &TenantId, now: Timestamp) -> impl Future<Output = Result<Lane>> + Send;
    /// Opens a lane.
    fn lane_open(&mut self, lane: NewLane, now: Timestamp) -> impl Future<Output = Result<Lane>> + Send;
    /// Whether nothing of the lane waits or is leased, in any queue, and no retry rule that fills it is unfinished. In a
    /// cancelled lane nothing waits: rows that are not removed yet, or not moved, do not count.
    fn lane_is_idle(&mut self, lane: i64) -> impl Future<Output = Result<bool>> + Send;
    /// Forgets idle split lanes opened before that time, at most `limit`.
    fn lane_prune(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<()>> + Send;
    /// Adds to the counts of heads and places, reads the heads' SLAs again from the rows and the places' first SLA from
    /// the heads, and drops the empty ones. Every key that a step touched is here, also with a zero change. A place stays
    /// while labels are leased there or [`Lanes::place_close`] keeps it closed, also without a head. It notes since when
    /// something waits there.
    fn head_change(
        &mut self,
        changes: &[(HeadKey, LaneKind, HeadChange)],
        now: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Marks every head of a store in a queue as held by a lease, or as free again.
    fn head_hold(&mut self, queue: i64, store: &StoreId, held: Held) -> impl Future<Output = Result<()>> + Send;
    /// What heads need from time to time, a bounded piece of it. Nothing, unless the twin says so.
    fn head_upkeep(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
    /// The earliest claimable head of the lanes of a kind. A head of a lane whose gate is closed, whose place is closed
    /// for now, or that has as many leased labels in the queue as its limit allows, is no claimable one, and costs
    /// nothing: it is not met on the way. Where units of work run beside each other, a head that another unit found is
    /// passed over until that one's end.
    fn head_first(&mut self, queue: i64, kind: LaneKind) -> impl Future<Output = Result<Option<Head>>> + Send;
    /// The earliest claimable head of the first lane of a kind whose id is larger than `after`; likewise.
    fn head_in_turn(
        &mut self,
        queue: i64,
        kind: LaneKind,
        after: i64,
    ) -> impl Future<Output = Result<Option<Head>>> + Send;
    /// What would be claimable at a head of a store, were it not held, if anything. Called by a unit that has the lease in hand.
    fn head_held(&mut self, head: &HeadKey) -> impl Future<Output = Result<Option<Head>>> + Send;
    /// Whether something of a store may be claimable in another lane than `lane`, were the store not held.
    fn head_elsewhere(&mut self, queue: i64, store: &StoreId, lane: i64) -> impl Future<Output = Result<bool>> + Send;
    /// Lets nothing of the lane be claimed in the queue until then: its throttle. For the unit that just leased there.
    fn place_close(&mut self, queue: i64, lane: i64, until: Timestamp) -> impl Future<Output = Result<()>> + Send;
    /// Opens the places of a queue that were closed until `now` or earlier.
    fn place_open(&mut self, queue: i64, now: Timestamp) -> impl Future<Output = Result<()>> + Send;
    /// When the next closed place of the queue opens.
    fn place_next_open(&mut self, queue: i64) -> impl Future<Output = Result<Option<Timestamp>>> + Send;
    /// The lane's places, by queue.
    fn place_list(&mut self, lane: i64) -> impl Future<Output = Result<Vec<PlaceReport>>> + Send;
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
    /// Overwrites what may change of waiting rows: SLA, tracking id, attempts, due time, company, cursor, cause, and whether they are
    /// handed over.
    fn row_update(&mut self, queue: i64, rows: &[Row]) -> impl Future<Output = Result<()>> + Send;
    /// Ready rows of a head in order.
    fn row_ready(&mut self, range: ReadyRange<'_>) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Deferred and backing-off rows whose time has come, earliest first; likewise.
    fn row_due(&mut self, queue: i64, now: Timestamp, limit: usize) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// When the next deferred or backing-off row comes due.
    fn row_next_due(&mut self, queue: i64) -> impl Future<Output = Result<Option<Timestamp>>> + Send;
    /// Some waiting rows of the lane in the queue, at most `limit`: ready ones first, by store, then labels before parents,
    /// SLA and id; then the delayed ones by due time and id.
    fn row_of_lane(&mut self, queue: i64, lane: i64, limit: usize) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Takes waiting rows of a lane away.
    fn row_remove(&mut self, queue: i64, lane: i64, ids: &[i64]) -> impl Future<Output = Result<()>> + Send;
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// How many labels.
    pub(crate) labels: i64,
    /// Which were parents; nearly always none.
    pub(crate) parents: Vec<i64>,
    /// Of the labels: were handed over.
    pub(crate) handed_over: i64,
}

/// Leases and leased rows.
pub(crate) trait Leases: Send {
    /// Stores a lease and moves the ready rows to it. Gives its generation.
    fn lease_take(&mut self, lease: &Lease, rows: &[Row]) -> impl Future<Output = Result<i64>> + Send;
    /// Moves ready rows to a stored lease.
    fn lease_add(&mut self, lease: &Lease, rows: &[Row]) -> impl Future<Output = Result<()>> + Send;
    /// The lease of that generation, lapsed or not. Other units of work on the same lease wait for this one's end.
    fn lease_find(&mut self, generation: i64) -> impl Future<Output = Result<Option<Lease>>> + Send;
    /// All rows of a lease, by id.
    fn lease_rows(&mut self, generation: i64) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// Those rows of a lease that have these ids, by id.
    fn lease_rows_of(&mut self, generation: i64, ids: &[i64]) -> impl Future<Output = Result<Vec<Row>>> + Send;
    /// How many leased rows of the lane are handed over, in all queues.
    fn lease_handed_over(&mut self, lane: i64) -> impl Future<Output = Result<i64>> + Send;
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
    /// Remembers which rows of a lease went back when it lapsed.
    fn lapse_put(&mut self, lease: &Lease, ids: &[i64], now: Timestamp) -> impl Future<Output = Result<()>> + Send;
    /// Takes what was remembered of a lapsed lease: its lane, and the rows that went back. None: it did not lapse, or
    /// that was taken already.
    fn lapse_take(&mut self, generation: i64) -> impl Future<Output = Result<Option<(i64, Vec<i64>)>>> + Send;
    /// Forgets lapses from before that time, at most `limit`.
    fn lapse_prune(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<()>> + Send;
    /// Takes one lapse away from those of these rows of a lane that are leased alone, whether they wait or are leased: one
    /// that lapsed in a batch only may share a lease again.
    fn lapse_pardon(&mut self, lane: i64, ids: &[i64]) -> impl Future<Output = Result<()>> + Send;
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
    /// How often the counts of each of these lanes changed so far: the number of deltas ever appended, folded or not.
    fn ledger_revision(&mut self, lanes: &[i64]) -> impl Future<Output = Result<Vec<(i64, i64)>>> + Send;
    /// Folds the oldest deltas, at most `limit`; how many they were.
    fn ledger_fold(&mut self, limit: usize) -> impl Future<Output = Result<usize>> + Send;
    /// Appends to the dead letter; records are marked undelivered, by which failure, and
    /// an operation's failures counted by cause.
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
    /// Marks these records undelivered in the queue; some may be already.
    fn undelivered_put(&mut self, queue: i64, records: &[RecordKey]) -> impl Future<Output = Result<()>> + Send;
    /// Takes the undelivered marks of the records of these rows of a lease in its queue away, without looking at the rows
    /// further: after a cancellation there may be a million marks, and each `Complete` passes here.
    fn undelivered_clear_leased(
        &mut self,
        queue: i64,
        generation: i64,
        ids: &[i64],
    ) -> impl Future<Output = Result<()>> + Send;
    /// Takes the undelivered marks of these records in the queue away.
    fn undelivered_clear(&mut self, queue: i64, records: &[RecordKey]) -> impl Future<Output = Result<()>> + Send;
}

/// Failures, their retries, and where a record is.
pub(crate) trait Failures: Send {
    /// The last position in the dead letter; 0 while it is empty.
    fn dead_last(&mut self) -> impl Future<Output = Result<i64>> + Send;
    /// How many failures of an operation's lane in a queue nobody took over yet; with a cause, only those with exactly it.
    /// From the counts by cause, not from the rows.
    fn dead_open(&mut self, lane: i64, queue: i64, cause: Option<&str>) -> impl Future<Output = Result<i64>> + Send;
    /// Failures of a lane in a queue by position, taken over or not.
    fn dead_page(&mut self, range: &DeadRange) -> impl Future<Output = Result<Vec<DeadRow>>> + Send;
    /// Notes that the operation of `lane` took over the failures at these positions, also in the counts by cause.
    fn dead_retried(&mut self, positions: &[i64], lane: i64) -> impl Future<Output = Result<()>> + Send;
    /// What the operation of `lane` took over of these items in the queue is open again where it failed, also in the counts
    /// by cause and in the retry's own.
    fn dead_given_back(
        &mut self,
        lane: i64,
        queue: i64,
        items: &[&SplitItem],
    ) -> impl Future<Output = Result<()>> + Send;
    /// Stores retry rules; one of the same lane and queue is overwritten.
    fn retry_put(&mut self, rules: &[RetryRule]) -> impl Future<Output = Result<()>> + Send;
    /// Unfinished rules, those of older lanes first. One that another unit of work found is passed over until that one's
    /// end.
    fn retry_pending(&mut self, limit: usize) -> impl Future<Output = Result<Vec<RetryRule>>> + Send;
    /// Rules that fill one of these lanes or take from one of them, by lane and queue.
    fn retry_of(&mut self, lanes: &[i64]) -> impl Future<Output = Result<Vec<RetryRule>>> + Send;
    /// Where something about these records waits, is leased, or failed and was neither taken over nor handled since: what
    /// an undelivered mark names.
    fn record_fates(&mut self, urns: &[Urn]) -> impl Future<Output = Result<Vec<RecordFate>>> + Send;
}

/// What is forgotten after its time.
pub(crate) trait Retention: Send {
    /// Lanes of operations that finished before that time and whose failures no unfinished rule takes, oldest first.
    fn operation_expired(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<Vec<i64>>> + Send;
    /// Forgets at most `limit` failures of an operation's lane, and with the last of them the operation, its counts, its
    /// rules and its lane; true then. Marks of undelivered records stay.
    fn operation_forget(&mut self, lane: i64, limit: usize) -> impl Future<Output = Result<bool>> + Send;
    /// Forgets failures from before that time in lanes that are no operation's, at most `limit`; how many. Marks of
    /// undelivered records stay.
    fn dead_prune(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<usize>> + Send;
}

/// Operations.
pub(crate) trait Operations: Send {
    /// The operation of that name.
    fn operation_find(
        &mut self,
        tenant: &TenantId,
        tracking_id: &TrackingId,
    ) -> impl Future<Output = Result<Option<Operation>>> + Send;
    /// The operation of that lane.
    fn operation_of_lane(&mut self, lane: i64) -> impl Future<Output = Result<Option<Operation>>> + Send;
    /// Lanes of operations that are not seen finished, smallest first.
    fn operation_running(&mut self, limit: usize) -> impl Future<Output = Result<Vec<i64>>> + Send;
    /// Stores an operation, unless one of its name exists; true when it was stored.
    fn operation_insert(&mut self, operation: &Operation) -> impl Future<Output = Result<bool>> + Send;
    /// Writes when an operation was first seen finished, or that it is not (any more).
    fn operation_settle(
        &mut self,
        lane: i64,
        finished_at: Option<Timestamp>,
    ) -> impl Future<Output = Result<()>> + Send;
    /// Those operations of a tenant that have one of these names, newest first.
    fn operation_named(
        &mut self,
        tenant: &TenantId,
        names: &[TrackingId],
    ) -> impl Future<Output = Result<Vec<Operation>>> + Send;
    /// Operations of these tenants with an id below `before`, newest first.
    fn operation_page(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Operation>>> + Send;
    /// As `operation_page`, of those that are not finished.
    fn operation_unfinished(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Operation>>> + Send;
}

/// Controls of operations, and the brake.
pub(crate) trait Controls: Send {
    /// Where units of work run beside each other: waits for those that are in the lane ([`Lanes::lane_find`]) and makes
    /// later ones wait for this one's end, so that what is read of its controls and ledger from now on stays so.
    fn control_lock(&mut self, lane: i64) -> impl Future<Output = Result<()>> + Send {
        let _ = lane;
        async { Ok(()) }
    }
    /// The controls of these lanes, by lane; lanes that are no operation's have none.
    fn control_find(&mut self, lanes: &[i64]) -> impl Future<Output = Result<Vec<(i64, Control)>>> + Send;
    /// Stores the controls of a lane, and what follows for the choice ([`Control::gate`]): from this unit's end on, no
    /// head of a closed lane is claimable and every head of an opened one is. The lane's places are open again for its
    /// new throttle. A few rows, whatever waits in the lane. A cancelled lane is to be cleared from then on.
    fn control_put(&mut self, lane: i64, control: &Control) -> impl Future<Output = Result<()>> + Send;
    /// Lanes of whose controls something ended by itself by `now` ([`Control::ends_at`]), earliest first.
    fn control_ending(&mut self, now: Timestamp, limit: usize) -> impl Future<Output = Result<Vec<i64>>> + Send;
    /// The cancelled lane of the smallest id that may have waiting rows left to be removed.
    fn lane_clearing(&mut self) -> impl Future<Output = Result<Option<i64>>> + Send;
    /// Nothing of the cancelled lane waits any more.
    fn lane_cleared(&mut self, lane: i64) -> impl Future<Output = Result<()>> + Send;
    /// Who put the brake on; none: it is off.
    fn brake_find(&mut self) -> impl Future<Output = Result<Option<Act>>> + Send;
    /// Puts the brake on or takes it off. Where units of work run beside each other: a claim that began before may end
    /// after; no later one misses it.
    fn brake_put(&mut self, brake: Option<&Act>) -> impl Future<Output = Result<()>> + Send;
}

/// Samples of how far operations were, for their rates.
pub(crate) trait Paces: Send {
    /// When the last samples were taken.
    fn pace_last(&mut self) -> impl Future<Output = Result<Option<Timestamp>>> + Send;
    /// Keeps samples.
    fn pace_put(&mut self, paces: &[Pace]) -> impl Future<Output = Result<()>> + Send;
    /// The samples of these lanes since then, oldest first.
    fn pace_find(&mut self, lanes: &[i64], since: Timestamp) -> impl Future<Output = Result<Vec<Pace>>> + Send;
    /// Forgets samples from before that time, at most `limit`.
    fn pace_prune(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<()>> + Send;
}

/// Whose time counts in a unit of work.
pub(crate) trait Clocked {
    /// The time of the unit, given the caller's: the same, unless the engine has a clock that all its processes share.
    fn time(&self, caller: Timestamp) -> Timestamp {
        caller
    }
}

/// How all of it stands, over all tenants. Only reads; costs as much as there are lanes with something in them.
pub(crate) trait Overviews: Send {
    /// What each queue holds in lanes of each kind; nothing of a kind may be missing. Of one lane at least so many waiting
    /// rows are counted.
    fn load_list(&mut self, counted: i64) -> impl Future<Output = Result<Vec<Load>>> + Send;
    /// Per queue the failures that no retry took over; of all queues at most `limit` are looked at.
    fn failed_list(&mut self, limit: i64) -> impl Future<Output = Result<Vec<(i64, i64)>>> + Send;
    /// Operations that are not seen finished, by what stops them.
    fn operation_tally(&mut self) -> impl Future<Output = Result<OperationTally>> + Send;
}

/// An open unit of work.
pub(crate) trait Unit:
    Queues + Lanes + Rows + Leases + Ledger + Failures + Retention + Operations + Controls + Paces + Audit + Overviews
{
}

impl<T> Unit for T where
    T: Queues
        + Lanes
        + Rows
        + Leases
        + Ledger
        + Failures
        + Retention
        + Operations
        + Controls
        + Paces
        + Audit
        + Overviews
{
}
