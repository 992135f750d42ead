//! How far an operation's labels are: the ledger of its services, in the words of the domain. Pure.
//!
//! A label is expanded (found under a parent), rendered or found unchanged, exported, confirmed. Each count is the
//! ledger's own; what the ledger cannot tell is left out, never guessed.

use domain::ServiceName;
use proto::cqs::v1::{BlockCause, EvidenceCounts, Operation as WireOperation, OperationState, QueueCounts};
use serde::Serialize;
use utoipa::ToSchema;

use crate::wire;

/// How far labels can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FunnelName {
    /// Found under the trigger's scope. `waiting` and `failed` count parents here: what is below them is not known yet.
    Expanded,
    /// Rendered to a new picture.
    Rendered,
    /// Handled with nothing to change; these labels go no further.
    Unchanged,
    /// Taken by the label's access point, or found to show the picture already.
    Exported,
    /// Confirmed by the strongest evidence that the label's driver can give: see `confirmed_by`, and `delivery` of each label.
    Confirmed,
}

/// One stage of the funnel.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct FunnelStage {
    /// Which.
    stage: FunnelName,
    /// Labels that came this far.
    done: i64,
    /// Labels on their way to it: waiting for this stage, or in its hands.
    waiting: i64,
    /// Labels given up on the way to it. What the exporter gave up counts under `exported` as long as its access point had not
    /// taken it, and under `confirmed` from then on.
    failed: i64,
    /// Only at `confirmed`: by which evidence. The sum is `done`.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_by: Option<ConfirmedBy>,
    /// Labels a second over the last minute; null when nothing was measured.
    labels_per_second: Option<f64>,
    /// Since when something has waited for it without a break, RFC 3339; null when nothing waits.
    waiting_since: Option<String>,
}

/// Confirmed labels by evidence: what their drivers could prove at best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ConfirmedBy {
    /// Written to a file or handed to a system that says no more; nobody looked at a panel.
    written: i64,
    /// The label holds the bytes.
    transferred: i64,
    /// The panel reported a refresh.
    displayed: i64,
    /// Nothing was to be proved: the label is gone or no picture is meant for it. So counts what was confirmed before
    /// evidence was counted.
    none: i64,
}

impl ConfirmedBy {
    fn of(exporter: &QueueCounts) -> Self {
        let EvidenceCounts { written, transferred, displayed } = exporter.confirmed_by.unwrap_or_default();
        Self { written, transferred, displayed, none: exporter.done - written - transferred - displayed }
    }
}

/// When it will be finished, as the present rates have it.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Eta {
    /// Seconds from now; null when nobody can say.
    seconds: Option<i64>,
    /// Why nobody can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Eta {
    fn unknown(reason: impl Into<String>) -> Self {
        Self { seconds: None, reason: Some(reason.into()) }
    }
}

/// Queues of an operation by the part they play.
struct Parts<'o> {
    first: Option<&'o QueueCounts>,
    renders: bool,
    merger: Option<&'o QueueCounts>,
    exporter: Option<&'o QueueCounts>,
}

impl<'o> Parts<'o> {
    fn of(operation: &'o WireOperation) -> Self {
        let of = |service: ServiceName| operation.queues.iter().find(|queue| queue.queue_name == service.as_str());
        Self {
            first: operation.queues.iter().find(|queue| queue.queue_name == operation.queue_name),
            renders: wire::stage_of(&operation.queue_name) == "rendered",
            merger: of(ServiceName::EslImageMerger),
            exporter: of(ServiceName::HardwareExporter),
        }
    }
}

fn open(queue: Option<&QueueCounts>) -> i64 {
    queue.map_or(0, |queue| queue.waiting + queue.leased)
}

fn failed(queue: Option<&QueueCounts>) -> i64 {
    queue.map_or(0, |queue| queue.failed)
}

/// The funnel, in the order of the flow.
pub(super) fn funnel(operation: &WireOperation) -> Vec<FunnelStage> {
    let parts = Parts::of(operation);
    let none = QueueCounts::default();
    let first = parts.first.unwrap_or(&none);
    let stage = |stage, queue: Option<&QueueCounts>| FunnelStage {
        stage,
        done: 0,
        waiting: 0,
        failed: 0,
        confirmed_by: None,
        labels_per_second: queue.and_then(|queue| queue.labels_per_s),
        waiting_since: queue.and_then(|queue| wire::time(queue.waiting_since.as_ref())),
    };
    let mut funnel = vec![FunnelStage {
        done: first.enqueued - first.coalesced,
        waiting: first.parents_waiting + first.parents_leased,
        failed: first.parents_failed,
        ..stage(FunnelName::Expanded, None)
    }];
    if parts.renders {
        funnel.push(FunnelStage {
            done: first.done - first.unchanged,
            waiting: open(parts.first),
            failed: first.failed,
            ..stage(FunnelName::Rendered, parts.first)
        });
        funnel.push(FunnelStage { done: first.unchanged, ..stage(FunnelName::Unchanged, None) });
    }
    // The exporter is done with a label once its driver confirmed it. Those handed over wait there for that, or were cancelled
    // while they did.
    let exporter = parts.exporter.unwrap_or(&none);
    let QueueCounts { done, handed_over, failed_handed_over, .. } = *exporter;
    let unconfirmed = handed_over.min(open(parts.exporter));
    let confirmed = FunnelStage {
        done,
        waiting: unconfirmed,
        failed: failed_handed_over,
        confirmed_by: Some(ConfirmedBy::of(exporter)),
        ..stage(FunnelName::Confirmed, parts.exporter)
    };
    funnel.push(FunnelStage {
        stage: FunnelName::Exported,
        done: done + handed_over + failed_handed_over,
        waiting: open(parts.merger) + open(parts.exporter) - unconfirmed,
        failed: failed(parts.merger) + failed(parts.exporter) - failed_handed_over,
        confirmed_by: None,
        // What is measured is how many are confirmed.
        labels_per_second: confirmed.labels_per_second.filter(|_| handed_over == 0),
        ..confirmed.clone()
    });
    funnel.push(confirmed);
    for stage in funnel.iter_mut().filter(|stage| stage.waiting == 0) {
        stage.waiting_since = None;
    }
    funnel
}

/// Labels still under way in any stage.
fn under_way(operation: &WireOperation) -> i64 {
    operation.queues.iter().map(|queue| open(Some(queue))).sum()
}

/// Share of its labels that are through, in percent with one decimal; none before all are known. Never 100 before
/// the end, nor where some were cancelled.
pub(super) fn percent(operation: &WireOperation) -> Option<f64> {
    let first = Parts::of(operation).first?;
    let labels = first.enqueued - first.coalesced;
    if !operation.expansion_complete || labels <= 0 {
        return None;
    }
    // Where they stood: a label that is cancelled in a later stage went through the ones before.
    let cancelled: i64 = operation.queues.iter().map(|queue| queue.cancelled).sum();
    let through = (labels - under_way(operation) - cancelled).max(0);
    #[expect(clippy::cast_precision_loss, reason = "labels stay far below 2^52")]
    let tenths = (through as f64 * 1000.0 / labels as f64).floor();
    let most = if is_over(operation.state()) && cancelled == 0 { 1000.0 } else { 999.0 };
    Some(tenths.min(most) / 10.0)
}

/// Whether nothing more can happen to an operation in that state.
pub(super) fn is_over(state: OperationState) -> bool {
    matches!(state, OperationState::Succeeded | OperationState::FinishedWithFailures | OperationState::Cancelled)
}

/// When it will be finished.
pub(super) fn eta(operation: &WireOperation) -> Eta {
    if is_over(operation.state()) {
        return Eta::unknown("it is over");
    }
    if operation.state() == OperationState::Cancelling {
        return Eta::unknown("it is being cancelled; see controls.quiet_by");
    }
    let stops = |cause: BlockCause| {
        matches!(
            cause,
            BlockCause::Paused
                | BlockCause::Held
                | BlockCause::Brake
                | BlockCause::AwaitingApproval
                | BlockCause::NoWorker
        )
    };
    if let Some(blocked) = operation.blocked_on.iter().find(|blocked| stops(blocked.cause())) {
        return Eta::unknown(format!("it does not move: {}", blocked.detail));
    }
    if !operation.expansion_complete {
        return Eta::unknown("its labels are still being counted");
    }
    slowest(operation)
}

/// Every label still has to pass each stage at or after the one where it is; the slowest stage decides.
fn slowest(operation: &WireOperation) -> Eta {
    let mut before = 0;
    let mut longest: f64 = 0.0;
    for queue in &operation.queues {
        before += open(Some(queue));
        if before == 0 {
            continue;
        }
        let Some(rate) = queue.labels_per_s.filter(|rate| *rate > 0.0) else {
            return Eta::unknown(format!("no rate was measured yet at {}", queue.queue_name));
        };
        #[expect(clippy::cast_precision_loss, reason = "labels stay far below 2^52")]
        let seconds = before as f64 / rate;
        longest = longest.max(seconds);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a float-to-integer cast saturates")]
    let seconds = longest.ceil() as i64;
    Eta { seconds: Some(seconds), reason: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::cqs::v1::Blocked;

    fn queue(name: ServiceName, enqueued: i64, done: i64) -> QueueCounts {
        QueueCounts {
            queue_name: name.to_string(),
            enqueued,
            done,
            waiting: enqueued - done,
            labels_per_s: Some(10.0),
            ..QueueCounts::default()
        }
    }

    fn operation(queues: Vec<QueueCounts>) -> WireOperation {
        WireOperation {
            queue_name: ServiceName::EccImageRender.to_string(),
            state: OperationState::Running.into(),
            expansion_complete: true,
            queues,
            ..WireOperation::default()
        }
    }

    fn counts(operation: &WireOperation) -> Vec<(FunnelName, i64, i64, i64)> {
        funnel(operation).iter().map(|stage| (stage.stage, stage.done, stage.waiting, stage.failed)).collect()
    }

    #[test]
    fn the_funnel_of_a_refresh_has_every_stage() {
        let first = QueueCounts {
            unchanged: 20,
            failed: 5,
            waiting: 35,
            parents_enqueued: 1,
            parents_done: 1,
            ..queue(ServiceName::EccImageRender, 100, 60)
        };
        let merger = queue(ServiceName::EslImageMerger, 40, 30);
        let exporter = QueueCounts {
            failed: 2,
            failed_handed_over: 1,
            waiting: 8,
            handed_over: 5,
            confirmed_by: Some(EvidenceCounts { written: 1, transferred: 12, displayed: 5 }),
            ..queue(ServiceName::HardwareExporter, 30, 20)
        };
        let asked = operation(vec![first, merger, exporter]);
        assert_eq!(
            counts(&asked),
            [
                (FunnelName::Expanded, 100, 0, 0),
                (FunnelName::Rendered, 40, 35, 5),
                (FunnelName::Unchanged, 20, 0, 0),
                (FunnelName::Exported, 26, 13, 1),
                (FunnelName::Confirmed, 20, 5, 1),
            ]
        );
        let by: Vec<_> = funnel(&asked).iter().filter_map(|stage| stage.confirmed_by).collect();
        assert_eq!(by, [ConfirmedBy { written: 1, transferred: 12, displayed: 5, none: 2 }]);
        assert_eq!(percent(&asked), Some(47.0), "100 labels, 35 + 10 + 8 under way");
    }

    #[test]
    fn there_is_no_percentage_before_all_labels_are_known_and_no_hundred_before_the_end() {
        let mut asked = operation(vec![queue(ServiceName::EccImageRender, 10, 10)]);
        assert_eq!(percent(&asked), Some(99.9));
        asked.state = OperationState::Succeeded.into();
        assert_eq!(percent(&asked), Some(100.0));
        asked.queues.push(QueueCounts { cancelled: 4, ..queue(ServiceName::EslImageMerger, 8, 4) });
        asked.queues[1].waiting = 0;
        asked.state = OperationState::Cancelled.into();
        assert_eq!(percent(&asked), Some(60.0), "what was cancelled did not get through");
        asked.expansion_complete = false;
        assert_eq!(percent(&asked), None);
        assert_eq!(percent(&operation(vec![])), None);
    }

    #[test]
    fn the_slowest_stage_decides_and_what_cannot_be_said_has_its_reason() {
        let first = queue(ServiceName::EccImageRender, 100, 40);
        let exporter = QueueCounts { labels_per_s: Some(2.0), ..queue(ServiceName::HardwareExporter, 40, 20) };
        let mut asked = operation(vec![first.clone(), exporter]);
        assert_eq!(eta(&asked), Eta { seconds: Some(40), reason: None }, "60 + 20 labels at 2 a second");

        asked.queues[1].labels_per_s = None;
        assert!(eta(&asked).reason.unwrap().contains("hardware-exporter"));
        asked.blocked_on =
            vec![Blocked { cause: BlockCause::Paused.into(), detail: "ann: wrong price".into(), ..Blocked::default() }];
        assert!(eta(&asked).reason.unwrap().contains("ann: wrong price"));
        let mut counting = operation(vec![first]);
        counting.expansion_complete = false;
        assert!(eta(&counting).reason.unwrap().contains("counted"));
        counting.state = OperationState::Cancelled.into();
        assert_eq!(eta(&counting), Eta::unknown("it is over"));
    }
}
