//! Lanes, their heads, leases.

use domain::{LaneKind, ServiceName, StoreId, TenantId, Timestamp, TrackingId};

use super::Gate;

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
    /// What an operation's controls make of it; open without limits in other lanes.
    pub gate: Gate,
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
    /// Labels of the lane that are leased in the queue.
    pub leased_labels: i64,
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
    /// Leased labels more; counted per lane and queue, not per store.
    pub leased_labels: i64,
}

/// Names a head.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// What a `ReEnqueue` call did; remembered for a repeated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitCounts {
    /// Children that wait because of the call.
    pub enqueued: i64,
    /// Children merged into rows that waited already.
    pub coalesced: i64,
}
