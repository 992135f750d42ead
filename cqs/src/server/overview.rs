//! How the platform stands, for people on call and for metrics.

use domain::LaneKind;
use proto::{cqs::v1 as wire, timestamp_to_wire};
use tonic::Request;

use super::{CqsServer, allowed, control::act_to_wire};
use crate::{
    StoreError,
    model::{Load, OperationTally, QueueReport},
};

impl CqsServer {
    pub(super) async fn get_overview(
        &self,
        request: Request<wire::GetOverviewRequest>,
    ) -> Result<wire::Overview, StoreError> {
        allowed(&request, "GetOverview")?;
        let overview = self.store.overview().await?;
        Ok(wire::Overview {
            queues: overview.queues.iter().map(queue_to_wire).collect(),
            operations: Some(tally_to_wire(overview.operations)),
            brake: Some(wire::Brake { on: overview.brake.as_ref().map(act_to_wire) }),
        })
    }
}

fn queue_to_wire(report: &QueueReport) -> wire::QueueOverview {
    let load = |kind: LaneKind| {
        let found = report.loads.iter().find(|load| load.kind == kind);
        Some(found.map(load_to_wire).unwrap_or_default())
    };
    wire::QueueOverview {
        queue_name: report.queue.name.to_string(),
        polled_at: report.queue.polled_at.map(timestamp_to_wire),
        ordinary: load(LaneKind::Ordinary),
        fan_out: load(LaneKind::Split),
        operations: load(LaneKind::Operation),
        failed: report.failed,
    }
}

fn load_to_wire(load: &Load) -> wire::QueueLoad {
    wire::QueueLoad {
        ready: load.ready,
        delayed: load.delayed,
        leased: load.leased,
        first_sla: load.first_sla.map(timestamp_to_wire),
    }
}

fn tally_to_wire(tally: OperationTally) -> wire::OperationTally {
    wire::OperationTally {
        cancelling: tally.cancelling,
        awaiting_approval: tally.awaiting_approval,
        held: tally.held,
        paused: tally.paused,
        running: tally.running,
    }
}
