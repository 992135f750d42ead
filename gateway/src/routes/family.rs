//! An operation and its retries, and theirs, counted as one: what failed and was handled again is no failure any more.

use proto::cqs::v1::{Family, Operation as WireOperation};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    funnel::{self, FunnelStage},
    operation_view::{self, OperationStateName, Summary, summary},
};

/// An operation and all retries that come from it, counted as one. A failure that a retry took over counts there only.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Totals {
    /// How many operations are counted, itself included.
    operations: i32,
    /// False: there are more retries than are looked at (1,000 of a page of operations, over 8 generations), and the counts
    /// leave them out.
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

impl Totals {
    /// Of an operation that was retried, which started at `origin`; none for a state that is none.
    pub(super) fn of(origin: &str, family: Family) -> Option<Self> {
        let state = operation_view::state(family.state())?;
        let whole = WireOperation {
            queue_name: origin.to_owned(),
            state: family.state,
            expansion_complete: family.expansion_complete,
            queues: family.queues,
            ..WireOperation::default()
        };
        Some(Self {
            operations: family.operations,
            complete: family.complete,
            state,
            summary: summary(&whole.queue_name, &whole.queues),
            funnel: funnel::funnel(&whole),
            percent: funnel::percent(&whole),
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::ServiceName;
    use proto::cqs::v1::{OperationState, QueueCounts};

    use super::*;

    fn queue(service: ServiceName, (enqueued, done, failed): (i64, i64, i64)) -> QueueCounts {
        let waiting = enqueued - done - failed;
        QueueCounts { queue_name: service.to_string(), enqueued, done, failed, waiting, ..QueueCounts::default() }
    }

    #[test]
    fn totals_are_told_as_an_operation_is() {
        use ServiceName::{EccImageRender as Ecc, EslImageMerger as Merger, HardwareExporter as Exporter};
        let family = Family {
            operations: 2,
            complete: true,
            state: OperationState::FinishedWithFailures.into(),
            expansion_complete: true,
            queues: vec![queue(Ecc, (100, 98, 2)), queue(Merger, (98, 98, 0)), queue(Exporter, (98, 98, 0))],
        };
        let totals = Totals::of(Ecc.as_str(), family).unwrap();
        assert_eq!((totals.state, totals.operations), (OperationStateName::FinishedWithFailures, 2));
        let json = serde_json::to_value(&totals).unwrap();
        let expected = serde_json::json!({"labels": 100, "rendered": 98, "unchanged": 0, "exported": 98, "confirmed": 98, "failed": 2});
        assert_eq!(json["summary"], expected);
        assert_eq!((&json["funnel"][3]["done"], &json["funnel"][3]["failed"]), (&98.into(), &0.into()), "{json}");
        assert_eq!(totals.percent, Some(100.0));
        assert_eq!(Totals::of(Ecc.as_str(), Family::default()), None, "a state that is none");
    }
}
