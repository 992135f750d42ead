//! The store trait: the few atomic steps that the service needs. Each runs to its end or changes nothing, whether or not
//! its caller still waits.

use domain::{
    DtoType, LeaseRef, Notification, OperatorSubject, Outcome, ParentShape, QueueName, Reason, ServiceName, SplitItem,
    TenantId, Timestamp, TrackingId, Urn,
};
use futures::future::BoxFuture;

use crate::{
    StoreError,
    announce::Woken,
    audit_store::AuditStore,
    failure_store::FailureStore,
    model::{
        Act, AuditRow, Backlog, ControlAsk, Exclusive, Lease, OperationReport, Overview, Receipt, SealedRow, Terms,
    },
    policy::choice::Tally,
    unit::AuditFilter,
};
use std::sync::{Arc, Mutex};

/// What a step answers with.
pub type Step<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A queue to be made or changed.
#[derive(Debug, Clone)]
pub struct ConfigureAsk {
    /// Its name.
    pub queue: QueueName,
    /// Whose writes are announced there, at most 32.
    pub subscriptions: Vec<DtoType>,
    /// What it splits, at most 32.
    pub shapes: Vec<ParentShape>,
    /// Whether one worker holds a store at a time; must be what it was for an existing queue.
    pub exclusive: Exclusive,
}

/// A `Dequeue`.
#[derive(Debug, Clone)]
pub struct DequeueAsk {
    /// The queue.
    pub queue: QueueName,
    /// The service that leases.
    pub owner: ServiceName,
    /// The worker's incarnation id.
    pub worker_id: String,
    /// Most items, 1 to [`domain::limits::DEQUEUE_ITEMS_MAX`].
    pub max_items: usize,
    /// Length of the lease, in milliseconds.
    pub lease_ms: i64,
    /// The queue's answers so far; read and noted inside the step.
    pub tally: Arc<Mutex<Tally>>,
}

/// What a `Dequeue` found.
#[derive(Debug, Clone, Default)]
pub struct Dequeued {
    /// The lease and its rows in order; none when nothing is claimable now.
    pub lease: Option<(Lease, Vec<Notification>)>,
    /// When something may become claimable by itself: the next due row or lapsing lease.
    pub look_again_at: Option<Timestamp>,
    /// Queues in which something became ready by the way.
    pub woken: Woken,
}

/// A `Dequeue` of further rows for a live lease.
#[derive(Debug, Clone)]
pub struct FurtherAsk {
    /// The lease; it holds a store.
    pub lease: LeaseRef,
    /// Most items, 1 to [`domain::limits::DEQUEUE_ITEMS_MAX`].
    pub max_items: usize,
}

/// What joined a lease.
#[derive(Debug, Clone)]
pub struct Further {
    /// The lease, as it stands.
    pub lease: Lease,
    /// The rows that joined it, in order; maybe none.
    pub rows: Vec<Notification>,
    /// Nothing joined because the holder is to let the store go: others wait for it, or the lane was stopped.
    pub give_way: bool,
    /// Queues in which something became ready by the way.
    pub woken: Woken,
}

/// A `Complete`.
#[derive(Debug, Clone)]
pub struct CompleteAsk {
    /// The lease.
    pub lease: LeaseRef,
    /// Outcomes by row id, each row once.
    pub outcomes: Vec<(i64, Outcome)>,
    /// Random bits for backoff.
    pub jitter: u64,
}

/// What a `Complete` did.
#[derive(Debug, Clone, Default)]
pub struct Completed {
    /// Rows that went to the dead letter.
    pub dead: i32,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// A `ReEnqueue`.
#[derive(Debug, Clone)]
pub struct SplitAsk {
    /// The lease.
    pub lease: LeaseRef,
    /// The row to split.
    pub id: i64,
    /// Its children, at most [`domain::limits::SPLIT_CHILDREN_MAX`].
    pub children: Vec<SplitItem>,
    /// Empty: the row is done. Otherwise it waits again, at this cursor.
    pub next_cursor: String,
    /// SLA of the lane that parents of an ordinary row open.
    pub sla: Option<Timestamp>,
}

/// What a `ReEnqueue` did.
#[derive(Debug, Clone, Default)]
pub struct Splitted {
    /// Children that wait because of it.
    pub enqueued: i64,
    /// Children merged into rows that waited already.
    pub coalesced: i64,
    /// True when it had been done before.
    pub replayed: bool,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// A `SelfEnqueue` whose texts are parsed and whose caller owns the queue.
#[derive(Debug, Clone)]
pub struct InjectAsk {
    /// The service.
    pub service: ServiceName,
    /// Its queue.
    pub queue: QueueName,
    /// The parents, 1 to [`domain::limits::SELF_ENQUEUE_ITEMS_MAX`].
    pub items: Vec<SplitItem>,
    /// Why.
    pub reason: Reason,
    /// Its name.
    pub tracking_id: TrackingId,
    /// SLA as asked.
    pub sla: Option<Timestamp>,
    /// Whether that SLA was computed, not chosen.
    pub sla_is_default: bool,
    /// On whose behalf.
    pub operator_subject: Option<OperatorSubject>,
    /// The trigger, or empty.
    pub trigger: String,
    /// What the trigger named.
    pub scope: Option<Urn>,
    /// Limits, failure budget, plan: part of the request.
    pub terms: Terms,
    /// That a second person must approve; computed, so no part of the request.
    pub approval: Option<ApprovalAsk>,
    /// SHA-256 of the request, for the audit log.
    pub request_digest: String,
    /// Every gate, nothing else.
    pub check_only: bool,
}

/// That a second person must approve.
#[derive(Debug, Clone)]
pub struct ApprovalAsk {
    /// Labels the request was counted for.
    pub label_count: i64,
    /// When it expires undecided.
    pub expires_at: Timestamp,
}

/// The brake put on or taken off.
#[derive(Debug, Clone)]
pub struct BrakeAsk {
    /// Whether it shall be on.
    pub on: bool,
    /// The service that asks.
    pub service: ServiceName,
    /// Who.
    pub by: OperatorSubject,
    /// Why.
    pub reason: Reason,
    /// SHA-256 of the request, for the audit log.
    pub request_digest: String,
}

/// What a `SelfEnqueue` did.
#[derive(Debug, Clone)]
pub struct Injected {
    /// The tenant of the items.
    pub tenant: TenantId,
    /// Parents put into the queue (a replay: had put).
    pub items_enqueued: i64,
    /// True when it had been accepted before.
    pub replayed: bool,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The SLA that counts.
    pub sla: Timestamp,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// What a control action did.
#[derive(Debug, Clone)]
pub struct Controlled {
    /// The operation as it stands now.
    pub report: OperationReport,
    /// Only for a cancellation.
    pub receipt: Option<Receipt>,
    /// Queues in which something became claimable.
    pub woken: Woken,
}

/// A reader of the audit log asks for more.
#[derive(Debug, Clone)]
pub struct FollowAsk {
    /// Its name.
    pub reader: String,
    /// Position of the last row it is done with; smaller than what it said before: no news.
    pub done: i64,
    /// At most so many rows.
    pub limit: usize,
}

/// Storage of the change queue service. `now` is the service's time; an engine with a clock of its own may use that.
pub trait CqsStore: FailureStore + AuditStore + Send + Sync + 'static {
    /// Makes or changes a queue; true when it was made.
    fn configure_queue(&self, ask: ConfigureAsk) -> Step<'_, bool>;

    /// How much is to be done in each queue, at this instant.
    fn backlogs(&self) -> Step<'_, Vec<Backlog>>;

    /// Ends lapsed leases (some), makes due rows ready (some), and leases the next batch of the queue.
    fn dequeue(&self, ask: DequeueAsk, now: Timestamp) -> Step<'_, Dequeued>;

    /// Leases further rows of its lane and store to a live lease, unless others wait for the store.
    fn further(&self, ask: FurtherAsk, now: Timestamp) -> Step<'_, Further>;

    /// Applies outcomes to rows of a live lease, all or none.
    fn complete(&self, ask: CompleteAsk, now: Timestamp) -> Step<'_, Completed>;

    /// Moves the end of a live lease to `expires_at`.
    fn extend_lease(&self, lease: LeaseRef, expires_at: Timestamp, now: Timestamp) -> Step<'_, ()>;

    /// The holder of a lease that is over lives: nothing is held against the rows that it had.
    fn lease_outlived(&self, lease: LeaseRef, now: Timestamp) -> Step<'_, Woken>;

    /// Puts a leased row's children into the queue and completes or returns the row.
    fn re_enqueue(&self, ask: SplitAsk, now: Timestamp) -> Step<'_, Splitted>;

    /// Opens an operation and puts its parents into the queue.
    fn self_enqueue(&self, ask: InjectAsk, now: Timestamp) -> Step<'_, Injected>;

    /// An operation with its ledger, exact at this instant.
    fn operation(&self, tenant: TenantId, tracking_id: TrackingId, now: Timestamp)
    -> Step<'_, Option<OperationReport>>;

    /// Those operations of a tenant that have one of these names, newest first.
    fn operations_named(
        &self,
        tenant: TenantId,
        names: Vec<TrackingId>,
        now: Timestamp,
    ) -> Step<'_, Vec<OperationReport>>;

    /// Operations of these tenants with an id below `page.0`, newest first, at most `page.1`.
    fn operations(&self, tenants: Vec<TenantId>, page: (i64, usize), now: Timestamp) -> Step<'_, Vec<OperationReport>>;

    /// As `operations`, of those that are not over. Looks at no finished one, however many there are.
    fn operations_unfinished(
        &self,
        tenants: Vec<TenantId>,
        page: (i64, usize),
        now: Timestamp,
    ) -> Step<'_, Vec<OperationReport>>;

    /// Carries out a person's action on an operation. Rows written do not depend on its size.
    fn control(&self, ask: ControlAsk, now: Timestamp) -> Step<'_, Controlled>;

    /// Puts the brake on or takes it off; who put it on, and the queues in which something became claimable.
    fn set_brake(&self, ask: BrakeAsk, now: Timestamp) -> Step<'_, (Option<Act>, Woken)>;

    /// Who put the brake on; none: it is off.
    fn brake(&self) -> Step<'_, Option<Act>>;

    /// What the queues hold, and what stops operations, over all tenants, at this instant.
    fn overview(&self) -> Step<'_, Overview>;

    /// Removes one bounded chunk of what cancelled operations left waiting; false when nothing is left.
    fn clear(&self, now: Timestamp) -> Step<'_, bool>;

    /// Units of work on this database that this process began so far, whosever they are. It tells upkeep whether anybody
    /// else is at work.
    fn units_begun(&self) -> u64;

    /// Appends to the audit log.
    fn append_audit(&self, rows: Vec<AuditRow>) -> Step<'_, ()>;

    /// A part of the audit log, newest first.
    fn audit(&self, filter: AuditFilter) -> Step<'_, Vec<SealedRow>>;

    /// What a reader of the audit log has not seen yet, oldest first.
    fn follow_audit(&self, ask: FollowAsk) -> Step<'_, Vec<SealedRow>>;

    /// One bounded round of upkeep: ends pauses and limits whose time is over, folds the ledger, forgets old splits and
    /// idle lanes. True when more is to be done.
    fn maintain(&self, now: Timestamp) -> Step<'_, (Woken, bool)>;

    /// Ends every lease as if it had lapsed. At start-up, where one process holds the store.
    fn end_all_leases(&self, now: Timestamp) -> Step<'_, Woken>;
}
