//! An operation and its retries, and theirs, counted as one: what failed and was handled again is no failure any more.

use std::collections::BTreeSet;

use domain::TenantId;
use proto::cqs::v1::{EvidenceCounts, Operation as WireOperation, OperationState, QueueCounts};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    funnel::{self, FunnelStage},
    operation_view::{OperationStateName, Summary, summary},
    operations::named,
};
use crate::{backend::CallError, state::Gateway};

/// Operations of a family that are looked at, itself included: one look-up by names holds as many.
const MEMBERS_MAX: usize = 200;
/// Retries of retries that are looked at: one call each.
const GENERATIONS_MAX: usize = 8;

/// An operation and all retries that come from it, counted as one. A failure that a retry took over counts there only.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Totals {
    /// How many operations are counted, itself included.
    operations: usize,
    /// False: there are more retries than are looked at (200, over 8 generations), and the counts leave them out.
    complete: bool,
    /// Where all of them stand together: `RUNNING` until each is over.
    state: OperationStateName,
    /// The labels, in one glance.
    summary: Summary,
    /// How far the labels are, in the order of the flow.
    funnel: Vec<FunnelStage>,
    /// Share of the labels that are through, in percent; null until every label is known, below 100 until the end.
    percent: Option<f64>,
}

/// The family of an operation as found: itself first.
pub(super) struct Family {
    members: Vec<WireOperation>,
    complete: bool,
}

impl Family {
    /// Gathers an operation's retries, generation by generation: one call each, none where there are no retries.
    pub(super) async fn of(gateway: &Gateway, tenant: &TenantId, first: WireOperation) -> Result<Self, CallError> {
        let mut seen = BTreeSet::from([first.tracking_id.clone()]);
        let mut next = retries(std::slice::from_ref(&first), &seen);
        let mut members = vec![first];
        for _ in 0..GENERATIONS_MAX {
            let room = MEMBERS_MAX.saturating_sub(members.len());
            if next.is_empty() || next.len() > room {
                break;
            }
            seen.extend(next.iter().cloned());
            let generation = named(gateway, tenant, next).await?;
            next = retries(&generation, &seen);
            members.extend(generation);
        }
        Ok(Self { members, complete: next.is_empty() })
    }

    /// All of it counted as one; none where nothing was retried.
    pub(super) fn totals(&self) -> Option<Totals> {
        let (first, retries) = self.members.split_first()?;
        if retries.is_empty() {
            return None;
        }
        let mut queues: Vec<QueueCounts> = Vec::new();
        for counts in self.members.iter().flat_map(|member| &member.queues) {
            match queues.iter_mut().find(|known| known.queue_name == counts.queue_name) {
                Some(sum) => add(sum, counts),
                None => queues.push(counts.clone()),
            }
        }
        queues.iter_mut().for_each(moved);
        let state = self.state(&queues);
        let whole = WireOperation {
            queue_name: first.queue_name.clone(),
            state: state.1.into(),
            expansion_complete: self.members.iter().all(|member| member.expansion_complete),
            queues,
            ..WireOperation::default()
        };
        Some(Totals {
            operations: self.members.len(),
            complete: self.complete,
            state: state.0,
            summary: summary(&whole.queue_name, &whole.queues),
            funnel: funnel::funnel(&whole),
            percent: funnel::percent(&whole),
        })
    }

    fn state(&self, queues: &[QueueCounts]) -> (OperationStateName, OperationState) {
        let of = |state: OperationState| self.members.iter().any(|member| member.state() == state);
        let is_over = self.members.iter().all(|member| funnel::is_over(member.state()));
        let failed = queues.iter().any(|queue| queue.failed + queue.parents_failed > 0);
        if !is_over {
            (OperationStateName::Running, OperationState::Running)
        } else if failed {
            (OperationStateName::FinishedWithFailures, OperationState::FinishedWithFailures)
        } else if of(OperationState::Cancelled) {
            (OperationStateName::Cancelled, OperationState::Cancelled)
        } else {
            (OperationStateName::Succeeded, OperationState::Succeeded)
        }
    }
}

/// Names of the retries of these operations, without those known already.
fn retries(operations: &[WireOperation], known: &BTreeSet<String>) -> BTreeSet<String> {
    let named = operations.iter().flat_map(|operation| &operation.retries).map(|retry| retry.tracking_id.clone());
    named.filter(|name| !known.contains(name)).collect()
}

fn add(sum: &mut QueueCounts, more: &QueueCounts) {
    sum.enqueued += more.enqueued;
    sum.done += more.done;
    sum.unchanged += more.unchanged;
    sum.failed += more.failed;
    sum.coalesced += more.coalesced;
    sum.cancelled += more.cancelled;
    sum.waiting += more.waiting;
    sum.leased += more.leased;
    sum.handed_over += more.handed_over;
    sum.retried += more.retried;
    sum.failed_handed_over += more.failed_handed_over;
    sum.retried_handed_over += more.retried_handed_over;
    sum.confirmed_by = match (sum.confirmed_by, more.confirmed_by) {
        (Some(one), Some(other)) => Some(EvidenceCounts {
            written: one.written + other.written,
            transferred: one.transferred + other.transferred,
            displayed: one.displayed + other.displayed,
        }),
        (one, other) => one.or(other),
    };
    sum.parents_enqueued += more.parents_enqueued;
    sum.parents_done += more.parents_done;
    sum.parents_failed += more.parents_failed;
    sum.parents_coalesced += more.parents_coalesced;
    sum.parents_cancelled += more.parents_cancelled;
    sum.parents_waiting += more.parents_waiting;
    sum.parents_leased += more.parents_leased;
    sum.parents_retried += more.parents_retried;
    sum.labels_per_s = match (sum.labels_per_s, more.labels_per_s) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    };
    sum.waiting_since = match (sum.waiting_since, more.waiting_since) {
        (Some(one), Some(other)) => {
            Some(if (one.seconds, one.nanos) <= (other.seconds, other.nanos) { one } else { other })
        }
        (one, other) => one.or(other),
    };
}

/// What a retry took over was enqueued twice, and did not fail in the end where it failed first.
fn moved(sum: &mut QueueCounts) {
    sum.enqueued -= sum.retried;
    sum.failed -= sum.retried;
    sum.failed_handed_over -= sum.retried_handed_over;
    sum.parents_enqueued -= sum.parents_retried;
    sum.parents_failed -= sum.parents_retried;
}

#[cfg(test)]
mod tests {
    use domain::ServiceName;
    use proto::cqs::v1::Retry;

    use super::*;

    fn queue(service: ServiceName, (enqueued, done, failed, retried): (i64, i64, i64, i64)) -> QueueCounts {
        let waiting = enqueued - done - failed;
        QueueCounts {
            queue_name: service.to_string(),
            enqueued,
            done,
            failed,
            retried,
            waiting,
            ..QueueCounts::default()
        }
    }

    fn member(id: &str, state: OperationState, queues: Vec<QueueCounts>) -> WireOperation {
        WireOperation {
            tracking_id: id.to_owned(),
            queue_name: ServiceName::EccImageRender.to_string(),
            state: state.into(),
            expansion_complete: true,
            queues,
            ..WireOperation::default()
        }
    }

    use ServiceName::{EccImageRender as Ecc, EslImageMerger as Merger, HardwareExporter as Exporter};

    /// 100 labels: 10 cannot be rendered, 5 more cannot be exported; all are retried, and 2 fail again.
    fn family() -> Vec<WireOperation> {
        vec![
            member(
                "CHG-1",
                OperationState::FinishedWithFailures,
                vec![queue(Ecc, (100, 90, 10, 10)), queue(Merger, (90, 90, 0, 0)), queue(Exporter, (90, 85, 5, 5))],
            ),
            member(
                "CHG-1-b",
                OperationState::FinishedWithFailures,
                vec![queue(Ecc, (10, 8, 2, 0)), queue(Merger, (8, 8, 0, 0)), queue(Exporter, (13, 13, 0, 0))],
            ),
        ]
    }

    #[test]
    fn what_was_handled_again_is_no_failure_any_more() {
        let totals = Family { members: family(), complete: true }.totals().unwrap();
        assert_eq!(totals.state, OperationStateName::FinishedWithFailures);
        assert_eq!(totals.operations, 2);
        let json = serde_json::to_value(&totals).unwrap();
        let expected = serde_json::json!({"labels": 100, "rendered": 98, "unchanged": 0, "exported": 98, "confirmed": 98, "failed": 2});
        assert_eq!(json["summary"], expected);
        assert_eq!((&json["funnel"][3]["done"], &json["funnel"][3]["failed"]), (&98.into(), &0.into()), "{json}");
        assert_eq!(totals.percent, Some(100.0));
    }

    #[test]
    fn it_runs_until_each_is_over_and_succeeds_without_failures_only() {
        let mut members = family();
        members[1].queues[0].retried = 2;
        members.push(member("CHG-1-c", OperationState::Running, vec![queue(Ecc, (2, 0, 0, 0))]));
        let running = Family { members: members.clone(), complete: true }.totals().unwrap();
        assert_eq!((running.state, running.percent), (OperationStateName::Running, Some(98.0)));
        members[2] = member("CHG-1-c", OperationState::Succeeded, vec![queue(Ecc, (2, 2, 0, 0))]);
        let over = Family { members, complete: true }.totals().unwrap();
        assert_eq!((over.state, over.percent), (OperationStateName::Succeeded, Some(100.0)));
        let alone = Family { members: family()[..1].to_vec(), complete: true };
        assert_eq!(alone.totals(), None, "nothing was retried");
    }

    #[test]
    fn a_retry_is_met_once() {
        let mut first = family().remove(0);
        first.retries =
            ["CHG-1-b", "CHG-1-c"].map(|id| Retry { tracking_id: id.to_owned(), ..Retry::default() }).into();
        let known = BTreeSet::from(["CHG-1-c".to_owned()]);
        assert_eq!(retries(&[first], &known), BTreeSet::from(["CHG-1-b".to_owned()]));
    }
}
