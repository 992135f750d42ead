//! Operations and what failed in them.

use domain::{OperatorSubject, QueueName, Reason, TenantId, Timestamp, TrackingId, Urn};

use super::{Blocked, Control, Lineage, QueueCounts, Row, State};

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
    /// Of them taken over by a retry.
    pub retried: i64,
    /// Of them handed over when they failed.
    pub handed_over: i64,
    /// One of them.
    pub sample_urn: String,
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
    /// What it retries, and what retries it.
    pub lineage: Lineage,
    /// What stops or slows it.
    pub control: Control,
    /// Where it stands.
    pub state: State,
    /// Every cause for which something of it waits.
    pub blocked: Vec<Blocked>,
    /// Per queue how fast it goes and since when something has waited.
    pub stages: Vec<StageReport>,
    /// Grows with every change of counts and controls.
    pub revision: i64,
    /// Latest end of a lease of it.
    pub quiet_by: Option<Timestamp>,
    /// It and all retries that come from it, counted as one; none where nothing was retried.
    pub family: Option<Family>,
}

impl OperationReport {
    /// Whether every parent is split and nothing is still to be moved here: only then are the counts final. Parents that were
    /// cancelled are not split, so the counts are not those of the whole scope.
    pub fn expansion_complete(&self) -> bool {
        expansion_complete(&self.queues, &self.lineage)
    }

    /// What of it is counted with its retries.
    pub(crate) fn member(&self) -> Member {
        Member {
            state: self.state,
            expansion_complete: self.expansion_complete(),
            queues: self.queues.clone(),
            stages: self.stages.clone(),
        }
    }
}

pub(crate) fn expansion_complete(queues: &[QueueCounts], lineage: &Lineage) -> bool {
    !lineage.is_filling() && queues.iter().all(|counts| counts.parents.open() + counts.parents.cancelled == 0)
}

/// What of an operation is counted with its retries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where it stands.
    pub state: State,
    /// Whether its counts are final.
    pub expansion_complete: bool,
    /// Per queue.
    pub queues: Vec<QueueCounts>,
    /// Per queue how fast it goes and since when something has waited.
    pub stages: Vec<StageReport>,
}

/// An operation and all retries that come from it, counted as one: a failure that a retry took over counts there only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// How many operations are counted, itself included.
    pub operations: usize,
    /// False: there are more retries than are looked at, and the counts leave them out.
    pub complete: bool,
    /// Where all of them stand together; running until each is over.
    pub state: State,
    /// Whether the counts of each are final.
    pub expansion_complete: bool,
    /// Per queue, in the order of the flow.
    pub queues: Vec<QueueCounts>,
    /// Per queue how fast they go and since when something has waited.
    pub stages: Vec<StageReport>,
}

/// How an operation goes in one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageReport {
    /// The queue.
    pub queue: QueueName,
    /// Since when something of it has waited there without a break; none: nothing waits.
    pub waiting_since: Option<Timestamp>,
    /// Thousandths of labels handled or failed there per second, over the last minute; none: not measured yet.
    pub milli_labels_per_s: Option<i64>,
}
