//! Failures, their retries, and where a record is.

use domain::{DtoType, QueueName, Timestamp, TrackingId, Urn};

use super::Row;

/// A row that failed, as it lies in the dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadRow {
    /// Position in the dead letter, only grows.
    pub position: i64,
    /// Key of the queue in which it failed.
    pub queue: i64,
    /// The row, as it was.
    pub row: Row,
    /// Why.
    pub cause: String,
    /// When.
    pub at: Timestamp,
    /// The lane of the operation that took it over; none: nobody did.
    pub retried_by: Option<i64>,
}

/// A part of what failed in one lane of one queue, oldest first.
#[derive(Debug, Clone)]
pub struct DeadRange {
    /// The lane.
    pub lane: i64,
    /// Key of the queue.
    pub queue: i64,
    /// Only with exactly this cause.
    pub cause: Option<String>,
    /// Only later positions.
    pub after: i64,
    /// Only up to this position.
    pub up_to: i64,
    /// At most so many.
    pub limit: usize,
}

/// Moves the failures of one queue of an operation into another one's lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryRule {
    /// The retry's lane.
    pub lane: i64,
    /// Key of the queue.
    pub queue: i64,
    /// The lane whose failures it takes.
    pub parent_lane: i64,
    /// The retry's name.
    pub tracking_id: TrackingId,
    /// The name of the operation whose failures it takes.
    pub parent_tracking_id: TrackingId,
    /// Only with exactly this cause.
    pub cause: Option<String>,
    /// Last position in the dead letter that it covers.
    pub up_to: i64,
    /// Last position looked at.
    pub position: i64,
    /// Labels moved so far.
    pub labels: i64,
    /// Parents moved so far.
    pub parents: i64,
    /// Of the labels moved: were handed over when they failed.
    pub handed_over: i64,
    /// Labels moved, and open again since where they failed, as this retry was cancelled before. Not among those moved any more.
    pub labels_given_back: i64,
    /// Parents of that kind.
    pub parents_given_back: i64,
    /// Whether it has moved everything.
    pub done: bool,
}

/// One failed item of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Position in the dead letter.
    pub position: i64,
    /// Where it failed.
    pub queue: QueueName,
    /// Type of the record, or of the records below the parent.
    pub dto_type: DtoType,
    /// The record or parent.
    pub urn: Urn,
    /// Whether it is a parent: then every label below it is missing.
    pub is_parent: bool,
    /// Why.
    pub cause: String,
    /// Attempts that ended in retry before it failed.
    pub attempts: i32,
    /// When.
    pub at: Timestamp,
    /// The operation that took it over.
    pub retried_by: Option<TrackingId>,
    /// Whether it was handed over when it failed.
    pub handed_over: bool,
}

/// How something about a record stands in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FateState {
    /// It waits: ready, or until `due_at`.
    Waiting {
        /// Not before; none: ready.
        due_at: Option<Timestamp>,
        /// Why it waits until then.
        cause: String,
    },
    /// A worker has it.
    Leased,
    /// It failed, and nothing about the record was handled in the queue since.
    Dead {
        /// Why.
        cause: String,
        /// When.
        at: Timestamp,
    },
}

/// Where something about a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFate {
    /// The queue.
    pub queue: QueueName,
    /// Type of the record.
    pub dto_type: DtoType,
    /// The record.
    pub urn: Urn,
    /// How it stands.
    pub state: FateState,
    /// Attempts that ended in retry.
    pub attempts: i32,
    /// When it should be (have been) done.
    pub sla: Timestamp,
    /// Of the operation or write that caused it.
    pub tracking_id: Option<TrackingId>,
}

/// How an operation stands in a family of retries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// Of a retry: what it takes from where, one rule per queue.
    pub rules: Vec<RetryRule>,
    /// Of retries of this operation: what they take, one rule per queue each.
    pub retries: Vec<RetryRule>,
}

impl Lineage {
    /// Whether failures are still to be moved into this operation.
    pub fn is_filling(&self) -> bool {
        self.rules.iter().any(|rule| !rule.done)
    }
}
