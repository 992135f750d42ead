//! Operations are read.

use domain::{ErrorCode, Refusal, ServiceName};
use proto::{cqs::v1 as wire, parse_field, timestamp_to_wire};
use tonic::Request;

use super::{CqsServer, allowed, page_after, page_from, page_size, tenants};
use crate::{
    StoreError,
    model::{Counts, FailureGroup, OperationReport, QueueCounts},
};

/// Operations of a page when the caller names no number, and at most.
const PAGE_DEFAULT: usize = 50;
/// At most: each brings up to four queues' counts and twenty failure groups.
const PAGE_MAX: i32 = 200;

impl CqsServer {
    pub(super) async fn get_operation(
        &self,
        request: Request<wire::GetOperationRequest>,
    ) -> Result<wire::Operation, StoreError> {
        let caller = allowed(&request, "GetOperation")?;
        let request = request.into_inner();
        let tenant = parse_field("tenant_id", &request.tenant_id)?;
        let tracking_id = parse_field("tracking_id", &request.tracking_id)?;
        let found = self.store.operation(tenant, tracking_id).await?;
        // Another service's operation and an unknown one give the same answer.
        found
            .filter(|report| {
                caller.service() == ServiceName::OperatorGateway
                    || caller.queue().as_ref() == Some(&report.operation.queue)
            })
            .map(operation_to_wire)
            .ok_or_else(|| Refusal::new(ErrorCode::NotFound, "no such operation").into())
    }

    pub(super) async fn list_operations(
        &self,
        request: Request<wire::ListOperationsRequest>,
    ) -> Result<wire::ListOperationsResponse, StoreError> {
        allowed(&request, "ListOperations")?;
        let request = request.into_inner();
        let tenants = tenants(&request.tenant_ids)?;
        let size = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)?;
        let before = page_from(&request.page_token)?;
        // One more than shown says whether there is a next page.
        let mut reports = self.store.operations(tenants, before, size + 1).await?;
        let more = reports.len() > size;
        reports.truncate(size);
        let last = reports.last().filter(|_| more).map(|report| report.operation.id);
        Ok(wire::ListOperationsResponse {
            operations: reports.into_iter().map(operation_to_wire).collect(),
            next_page_token: page_after(last),
        })
    }
}

fn operation_to_wire(report: OperationReport) -> wire::Operation {
    let OperationReport { operation, queues, failures } = report;
    let any = |of: fn(&QueueCounts) -> i64| queues.iter().any(|counts| of(counts) > 0);
    let state = if any(|counts| counts.labels.open() + counts.parents.open()) {
        wire::OperationState::Running
    } else if any(|counts| counts.labels.failed + counts.parents.failed) {
        wire::OperationState::FinishedWithFailures
    } else {
        wire::OperationState::Succeeded
    };
    wire::Operation {
        tenant_id: operation.tenant.to_string(),
        tracking_id: operation.tracking_id.to_string(),
        queue_name: operation.queue.to_string(),
        trigger: operation.trigger,
        scope: operation.scope.as_ref().map(ToString::to_string).unwrap_or_default(),
        reason: operation.reason.to_string(),
        operator_subject: operation.operator_subject.as_ref().map(ToString::to_string).unwrap_or_default(),
        accepted_at: Some(timestamp_to_wire(operation.accepted_at)),
        sla_timestamp: Some(timestamp_to_wire(operation.sla)),
        finished_at: operation.finished_at.map(timestamp_to_wire),
        state: state.into(),
        expansion_complete: !any(|counts| counts.parents.open()),
        queues: queues.iter().map(counts_to_wire).collect(),
        failures: failures.into_iter().map(failures_to_wire).collect(),
        items_enqueued: i32::try_from(operation.items_enqueued).unwrap_or(i32::MAX),
    }
}

fn counts_to_wire(counts: &QueueCounts) -> wire::QueueCounts {
    let Counts { enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased } = counts.labels;
    let parents = counts.parents;
    wire::QueueCounts {
        queue_name: counts.queue.to_string(),
        enqueued,
        done,
        unchanged,
        failed,
        coalesced,
        cancelled,
        waiting,
        leased,
        parents_enqueued: parents.enqueued,
        parents_done: parents.done,
        parents_failed: parents.failed,
        parents_coalesced: parents.coalesced,
        parents_cancelled: parents.cancelled,
        parents_waiting: parents.waiting,
        parents_leased: parents.leased,
    }
}

fn failures_to_wire(group: FailureGroup) -> wire::FailureGroup {
    wire::FailureGroup {
        queue_name: group.queue.to_string(),
        cause: group.cause,
        count: group.count,
        sample_urn: group.sample_urn,
    }
}
