//! How the platform stands: what the queues hold, and what stops operations.

use domain::{LaneKind, Timestamp};

use super::{Act, Queue};

/// Waiting rows of one lane, and failures of all queues, are counted to here: beyond it only "many" matters, and an
/// engine that keeps no counts has to look at each.
pub const COUNTED_MAX: i64 = 100_000;
/// Waiting rows of one lane are counted to here where how many they are is what was asked. An engine that keeps no counts
/// needs some hundred milliseconds for a million.
pub const BACKLOG_MAX: i64 = 1_000_000;

/// What there is to do in a queue in lanes of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Key of the queue.
    pub queue: i64,
    /// Of which lanes.
    pub kind: LaneKind,
    /// Rows that may be leased; in one lane counted to the asked number at least.
    pub ready: i64,
    /// Deferred and backing-off rows; likewise.
    pub delayed: i64,
    /// Rows of cancelled operations that are not removed yet; likewise. Everywhere else they count as cancelled.
    pub cancelled: i64,
    /// Rows under a lease.
    pub leased: i64,
    /// The earliest SLA of ready rows of lanes that are not closed.
    pub first_sla: Option<Timestamp>,
}

/// Operations that are not over, each counted once, under the first that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationTally {
    /// Cancelled, with something in workers' hands.
    pub cancelling: i64,
    /// Not approved yet.
    pub awaiting_approval: i64,
    /// Stopped by the system.
    pub held: i64,
    /// Stopped by a person.
    pub paused: i64,
    /// Stopped by nothing of its own.
    pub running: i64,
}

/// A queue with what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReport {
    /// The queue.
    pub queue: Queue,
    /// By kind of lane; kinds with nothing are missing.
    pub loads: Vec<Load>,
    /// Items that failed and that no retry took over, as far as they are kept; see [`COUNTED_MAX`].
    pub failed: i64,
}

/// How the platform stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// Every queue, by key.
    pub queues: Vec<QueueReport>,
    /// Operations that are not over.
    pub operations: OperationTally,
    /// Who put the brake on; none: it is off.
    pub brake: Option<Act>,
}
