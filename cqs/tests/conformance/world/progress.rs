//! An operation's progress, from whichever side it was read.

use cqs::model::{ByEvidence, Counts, FailureGroup, OperationReport, QueueCounts};
use domain::Timestamp;
use proto::{cqs::v1 as wire, timestamp_from_wire};

/// An operation's progress, from whichever side it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub queues: Vec<QueueCounts>,
    pub failures: Vec<FailureGroup>,
    pub finished_at: Option<Timestamp>,
    pub items_enqueued: i64,
    pub sla: Timestamp,
}

impl Progress {
    pub fn of(&self, queue: &str) -> QueueCounts {
        self.queues.iter().find(|counts| counts.queue.as_str() == queue).cloned().unwrap_or(QueueCounts {
            queue: queue.parse().unwrap(),
            labels: Counts::default(),
            parents: Counts::default(),
            labels_retried: 0,
            parents_retried: 0,
            retried_handed_over: 0,
            labels_given_back: 0,
            parents_given_back: 0,
        })
    }

    pub fn assert_balanced(&self) {
        for counts in &self.queues {
            assert!(counts.labels.balanced(), "{counts:?}");
            assert!(counts.parents.balanced(), "{counts:?}");
        }
    }
}

pub fn progress_from_report(report: OperationReport) -> Progress {
    Progress {
        queues: report.queues,
        failures: report.failures,
        finished_at: report.operation.finished_at,
        items_enqueued: report.operation.items_enqueued,
        sla: report.operation.sla,
    }
}

pub fn progress_from_wire(wire: wire::Operation) -> Progress {
    let time = |at: Option<prost_types::Timestamp>| at.map(|at| timestamp_from_wire("at", &at).unwrap());
    Progress {
        queues: wire
            .queues
            .iter()
            .map(|counts| QueueCounts {
                queue: counts.queue_name.parse().unwrap(),
                labels: Counts {
                    enqueued: counts.enqueued,
                    done: counts.done,
                    unchanged: counts.unchanged,
                    failed: counts.failed,
                    coalesced: counts.coalesced,
                    cancelled: counts.cancelled,
                    waiting: counts.waiting,
                    leased: counts.leased,
                    handed_over: counts.handed_over,
                    confirmed_by: counts.confirmed_by.map(evidence).unwrap_or_default(),
                    failed_handed_over: counts.failed_handed_over,
                },
                parents: Counts {
                    enqueued: counts.parents_enqueued,
                    done: counts.parents_done,
                    unchanged: 0,
                    failed: counts.parents_failed,
                    coalesced: counts.parents_coalesced,
                    cancelled: counts.parents_cancelled,
                    waiting: counts.parents_waiting,
                    leased: counts.parents_leased,
                    ..Counts::default()
                },
                labels_retried: counts.retried,
                parents_retried: counts.parents_retried,
                retried_handed_over: counts.retried_handed_over,
                labels_given_back: counts.given_back,
                parents_given_back: counts.parents_given_back,
            })
            .collect(),
        failures: wire
            .failures
            .into_iter()
            .map(|group| FailureGroup {
                queue: group.queue_name.parse().unwrap(),
                cause: group.cause,
                count: group.count,
                retried: group.retried,
                handed_over: group.handed_over,
                sample_urn: group.sample_urn,
            })
            .collect(),
        finished_at: time(wire.finished_at),
        items_enqueued: i64::from(wire.items_enqueued),
        sla: time(wire.sla_timestamp).unwrap(),
    }
}

fn evidence(wire: wire::EvidenceCounts) -> ByEvidence {
    ByEvidence { written: wire.written, transferred: wire.transferred, displayed: wire.displayed }
}
