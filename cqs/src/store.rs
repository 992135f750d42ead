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
    model::{AuditRow, Exclusive, Lease, OperationReport},
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

/// Storage of the change queue service. `now` is the service's time; an engine with a clock of its own may use that.
pub trait CqsStore: Send + Sync + 'static {
    /// Makes or changes a queue; true when it was made.
    fn configure_queue(&self, ask: ConfigureAsk) -> Step<'_, bool>;

    /// Ends lapsed leases (some), makes due rows ready (some), and leases the next batch of the queue.
    fn dequeue(&self, ask: DequeueAsk, now: Timestamp) -> Step<'_, Dequeued>;

    /// Applies outcomes to rows of a live lease, all or none.
    fn complete(&self, ask: CompleteAsk, now: Timestamp) -> Step<'_, Completed>;

    /// Moves the end of a live lease to `expires_at`.
    fn extend_lease(&self, lease: LeaseRef, expires_at: Timestamp, now: Timestamp) -> Step<'_, ()>;

    /// Puts a leased row's children into the queue and completes or returns the row.
    fn re_enqueue(&self, ask: SplitAsk, now: Timestamp) -> Step<'_, Splitted>;

    /// Opens an operation and puts its parents into the queue.
    fn self_enqueue(&self, ask: InjectAsk, now: Timestamp) -> Step<'_, Injected>;

    /// An operation with its ledger, exact at this instant.
    fn operation(&self, tenant: TenantId, tracking_id: TrackingId) -> Step<'_, Option<OperationReport>>;

    /// Operations of these tenants with an id below `before`, newest first.
    fn operations(&self, tenants: Vec<TenantId>, before: i64, limit: usize) -> Step<'_, Vec<OperationReport>>;

    /// Appends to the audit log.
    fn append_audit(&self, rows: Vec<AuditRow>) -> Step<'_, ()>;

    /// A part of the audit log, newest first.
    fn audit(&self, filter: AuditFilter) -> Step<'_, Vec<AuditRow>>;

    /// One bounded round of upkeep: folds the ledger, forgets old splits and idle lanes. True when more is to be done.
    fn maintain(&self, now: Timestamp) -> Step<'_, bool>;

    /// Ends every lease as if it had lapsed. At start-up, where one process holds the store.
    fn end_all_leases(&self, now: Timestamp) -> Step<'_, Woken>;
}
