//! What DTOflow and the queues say to each other, in plain types. The functions are per engine ([`crate::memory`],
//! [`crate::sqlite`]) so that a write and its notifications are one transaction.

use std::collections::BTreeSet;

use domain::{DtoType, LaneKind, LeaseRef, QueueName, TenantId, Timestamp, TrackingId, Urn};

/// Under what a record is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteAuthority {
    /// Under a live lease: the write's notifications take the lease's lane, and an operation's tracking id is allowed.
    Lease(LeaseRef),
    /// Without a lease: the tenant's ordinary lane; a write under an operation's tracking id is refused.
    Unleased,
}

/// The lane that a live lease stands for, as `lease_check` found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseLane {
    /// The lane. Notifications of writes under the lease lie in it.
    pub lane: i64,
    /// The only tenant whose records may be written under the lease.
    pub tenant: TenantId,
    /// What kind of lane it is.
    pub kind: LaneKind,
    /// The lane's tracking id; none in an ordinary lane, whose rows each have their own.
    pub tracking_id: Option<TrackingId>,
}

/// When a change is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announce {
    /// To every subscribed queue.
    Always,
    /// Only to queues in which an earlier notification of the record is undelivered: waiting in another lane, cancelled
    /// or dead. For writes that change nothing.
    OnlyIfUndelivered,
}

/// A record that was written, deleted or touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its type: decides which queues are told.
    pub dto_type: DtoType,
    /// Its name; also says the tenant.
    pub urn: Urn,
    /// When the change should be handled. Clamped to now … now + 30 days.
    pub sla: Timestamp,
    /// Of the write. In an operation's or a split's lane the lane's own id counts instead.
    pub tracking_id: Option<TrackingId>,
    /// The lane, from [`LeaseLane`]; none: the tenant's ordinary lane.
    pub lane: Option<i64>,
    /// When to announce at all.
    pub announce: Announce,
}

/// The queues in which something became ready. To be given to [`crate::Wakeups::wake`] after the commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Woken(pub(crate) BTreeSet<QueueName>);

impl Woken {
    /// The queues, in order of their names.
    pub fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.0.iter()
    }

    /// Adds the queues of another step of the same transaction.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}
