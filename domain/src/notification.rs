//! Notifications, their leases and outcomes: the words of the change queue service.

use crate::{
    AliasName, DtoType, QueueName, Timestamp, TrackingId, Urn, dto_type::UnknownName, dto_type::closed_text_enum,
};
use std::{fmt, str::FromStr};

/// Bounds of the change queue service, each with its reason.
pub mod limits {
    /// Children of one `ReEnqueue` call: one transaction stays well under 100 ms, so urgent changes get between.
    pub const SPLIT_CHILDREN_MAX: usize = 4_096;
    /// Items of one `SelfEnqueue` call: parents only, so a trigger never needs more (a tenant's stores at worst).
    pub const SELF_ENQUEUE_ITEMS_MAX: usize = 1_000;
    /// Label rows ready in one lane of one queue at which its next parent stays unclaimed.
    pub const LANE_READY_MAX: i64 = 10_000;
    /// Items of one `Dequeue` answer.
    pub const DEQUEUE_ITEMS_MAX: i32 = 2_000;
    /// Longest long-poll of a `Dequeue`, in milliseconds: below common proxy time-outs.
    pub const DEQUEUE_WAIT_MS_MAX: i32 = 30_000;
    /// Shortest and longest lease, in milliseconds.
    pub const LEASE_MS_MIN: i32 = 100;
    /// Longest lease: a stuck worker holds its items no longer than this without a heartbeat.
    pub const LEASE_MS_MAX: i32 = 600_000;
    /// Attempts (first try included) before a retried item goes to the dead letter.
    pub const ATTEMPTS_MAX: i32 = 8;
    /// Lapses of an item leased alone before it goes to the dead letter.
    pub const LAPSES_ALONE_MAX: i32 = 3;
    /// Longest cause of a retry, defer or failure, in bytes; longer ones are cut.
    pub const CAUSE_MAX_BYTES: usize = 1_000;
    /// Records of one `TouchDto` or one touch request.
    pub const TOUCH_MAX: usize = 1_000;
    /// Records of one write, read or delete call of DTOflow.
    pub const RECORDS_PER_CALL_MAX: usize = 4_096;
    /// Bytes of one record's payload: the largest picture plus its frame.
    pub const PAYLOAD_MAX_BYTES: usize = 320 * 1024;
    /// Bytes of one message between systems: a batch of pictures, with room.
    pub const MESSAGE_MAX_BYTES: usize = 64 * 1024 * 1024;
}

/// What a notification is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// One record: handle it.
    Record(Urn),
    /// A parent: split it.
    Parent(Urn),
}

impl Target {
    /// The URN, of either kind.
    pub fn urn(&self) -> &Urn {
        match self {
            Self::Record(urn) | Self::Parent(urn) => urn,
        }
    }

    /// Whether this is a parent.
    pub fn is_parent(&self) -> bool {
        matches!(self, Self::Parent(_))
    }
}

/// One child of a split, or one injected parent (the decision record's `SplitItem`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SplitItem {
    /// The type of the records it leads to.
    pub dto_type: DtoType,
    /// Record or parent.
    pub target: Target,
    /// The alias a parent is split by; none where the parent itself says it (a tenant's design), and for records.
    pub alias: Option<AliasName>,
}

/// A shape of parent that a queue declared that it splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParentShape {
    /// The type of the records below the parent.
    pub dto_type: DtoType,
    /// The alias, if the shape names one.
    pub alias: Option<AliasName>,
}

/// A leased notification as a worker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Unique within the platform; only grows.
    pub id: i64,
    /// The lane it lies in.
    pub lane: i64,
    /// What about.
    pub item: SplitItem,
    /// When it should be done.
    pub sla: Timestamp,
    /// The tracking id of what caused it; none where the first writer gave none.
    pub tracking_id: Option<TrackingId>,
    /// Attempts that ended in `retry` so far.
    pub attempts: i32,
    /// Where an unfinished split goes on; empty at its start.
    pub cursor: String,
}

/// A lease as its holder names it: later ones have larger generations, and a smaller one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    /// The queue it was taken in.
    pub queue: QueueName,
    /// Its generation.
    pub generation: i64,
}

/// What became of a leased item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Handled; something changed.
    Done,
    /// Handled; nothing had to change.
    Unchanged,
    /// Handled, as with [`Outcome::Done`] or [`Outcome::Unchanged`]; and what lies behind the service confirmed it.
    Confirmed {
        /// Whether something changed.
        changed: bool,
        /// The proof.
        evidence: Evidence,
    },
    /// Try again with backoff; counts an attempt.
    Retry {
        /// Why.
        cause: String,
    },
    /// Not now; counts nothing.
    Defer {
        /// Not before.
        until: Timestamp,
        /// Why.
        cause: String,
    },
    /// Not now, as with [`Outcome::Defer`]; and how far the item is by then.
    Follow {
        /// Not before.
        until: Timestamp,
        /// Why.
        cause: String,
        /// Whether the item was handed over to what lies behind the service and waits for its confirmation. A defer, a
        /// retry and a lapse leave this as it was; a newer change of the record ends it.
        handed_over: bool,
    },
    /// Will never work: straight to the dead letter.
    Failed {
        /// Why.
        cause: String,
    },
}

closed_text_enum!(
    /// How well what lies behind a service can prove that a picture arrived, weakest first.
    Evidence, "evidence" {
        /// Written to a file or handed over; nobody looked at a panel.
        Written = "written",
        /// The label holds the bytes.
        Transferred = "transferred",
        /// The panel reported a refresh.
        Displayed = "displayed",
    }
);

closed_text_enum!(
    /// The kind of a lane.
    LaneKind, "lane kind" {
        /// A tenant's ordinary changes.
        Ordinary = "ordinary",
        /// An operator's operation.
        Operation = "operation",
        /// A real change that fans out (a design write).
        Split = "split",
    }
);
