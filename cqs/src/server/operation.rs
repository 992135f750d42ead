//! Operations are read.

use domain::{ErrorCode, Refusal, ServiceName, TenantId};
use proto::{cqs::v1 as wire, parse_field, timestamp_to_wire};
use tonic::Request;

use super::{
    CqsServer, allowed,
    control::{act_to_wire, limits_to_wire},
    page_after, page_from, page_size, tenants,
};
use crate::{
    StoreError,
    model::{
        Act, ActionKind, Approval, ApprovalState, BlockCause, Blocked, ByEvidence, Counts, FailureGroup, Family, Hold,
        OperationReport, QueueCounts, RetryRule, StageReport, State, StopWhen,
    },
    policy::control,
};

/// Operations of a page when the caller names no number, and at most.
const PAGE_DEFAULT: usize = 50;
/// At most: each brings up to four queues' counts and twenty failure groups.
const PAGE_MAX: i32 = 200;
/// Names of one look-up by name: as many operations as a page has at most.
const NAMES_MAX: usize = 200;
/// Operations that one answer looks at where states are asked for: as the largest page costs, and one.
const LOOK: usize = 201;
/// States of one request: as many as there are.
const STATES_MAX: usize = 8;

impl CqsServer {
    pub(super) async fn get_operation(
        &self,
        request: Request<wire::GetOperationRequest>,
    ) -> Result<wire::Operation, StoreError> {
        let caller = allowed(&request, "GetOperation")?;
        let request = request.into_inner();
        let tenant = parse_field("tenant_id", &request.tenant_id)?;
        let tracking_id = parse_field("tracking_id", &request.tracking_id)?;
        let found = self.store.operation(tenant, tracking_id, self.parts.clock.now()).await?;
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
        let states = states(&request)?;
        if !request.tracking_ids.is_empty() {
            if !states.is_empty() {
                return Err(Refusal::field("states", "must be empty where tracking_ids are named").into());
            }
            return self.named(tenants, &request.tracking_ids).await;
        }
        let size = page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)?;
        let before = page_from(&request.page_token)?;
        if !states.is_empty() {
            return self.in_states(tenants, &states, (before, size)).await;
        }
        // One more than shown says whether there is a next page.
        let mut reports = self.store.operations(tenants, (before, size + 1), self.parts.clock.now()).await?;
        let more = reports.len() > size;
        reports.truncate(size);
        let last = reports.last().filter(|_| more).map(|report| report.operation.id);
        Ok(wire::ListOperationsResponse {
            operations: reports.into_iter().map(operation_to_wire).collect(),
            next_page_token: page_after(last),
        })
    }
}

impl CqsServer {
    /// A state is counted, not stored, so no index finds it: a bounded look is narrowed, and the token names its end. What is
    /// over is not looked at unless it is asked for.
    async fn in_states(
        &self,
        tenants: Vec<TenantId>,
        states: &[wire::OperationState],
        (before, size): (i64, usize),
    ) -> Result<wire::ListOperationsResponse, StoreError> {
        let now = self.parts.clock.now();
        let mut reports = if states.iter().any(|state| is_over(*state)) {
            self.store.operations(tenants, (before, LOOK), now).await?
        } else {
            self.store.operations_unfinished(tenants, (before, LOOK), now).await?
        };
        let looked_to = reports.last().filter(|_| reports.len() == LOOK).map(|report| report.operation.id);
        reports.retain(|report| states.contains(&state_to_wire(report.state)));
        let more = reports.len() > size;
        reports.truncate(size);
        let last = if more { reports.last().map(|report| report.operation.id) } else { looked_to };
        Ok(wire::ListOperationsResponse {
            operations: reports.into_iter().map(operation_to_wire).collect(),
            next_page_token: page_after(last),
        })
    }

    async fn named(
        &self,
        tenants: Vec<TenantId>,
        names: &[String],
    ) -> Result<wire::ListOperationsResponse, StoreError> {
        let [tenant] = <[TenantId; 1]>::try_from(tenants)
            .map_err(|_| Refusal::field("tenant_ids", "must have one entry where tracking_ids are named"))?;
        if names.len() > NAMES_MAX {
            return Err(Refusal::field("tracking_ids", format!("must have at most {NAMES_MAX} entries")).into());
        }
        let names = names.iter().enumerate().map(|(index, name)| parse_field(&format!("tracking_ids[{index}]"), name));
        let reports =
            self.store.operations_named(tenant, names.collect::<Result<_, _>>()?, self.parts.clock.now()).await?;
        let operations = reports.into_iter().map(operation_to_wire).collect();
        Ok(wire::ListOperationsResponse { operations, next_page_token: String::new() })
    }
}

/// The states a list is narrowed to; none: it is not.
fn states(request: &wire::ListOperationsRequest) -> Result<Vec<wire::OperationState>, Refusal> {
    if request.states.len() > STATES_MAX {
        return Err(Refusal::field("states", format!("must have at most {STATES_MAX} entries")));
    }
    let state = |(index, number): (usize, &i32)| match wire::OperationState::try_from(*number) {
        Ok(wire::OperationState::Unspecified) | Err(_) => {
            Err(Refusal::field(format!("states[{index}]"), "is no state of an operation"))
        }
        Ok(state) => Ok(state),
    };
    request.states.iter().enumerate().map(state).collect()
}

/// Whether an operation that stands there is finished. One that is unknown here is looked for among all.
fn is_over(state: wire::OperationState) -> bool {
    use wire::OperationState as S;
    match state {
        S::AwaitingApproval | S::Running | S::Paused | S::Held | S::Cancelling => false,
        S::Unspecified | S::Cancelled | S::Succeeded | S::FinishedWithFailures => true,
    }
}

pub(super) fn operation_to_wire(report: OperationReport) -> wire::Operation {
    let (controls, expansion_complete) = (controls_to_wire(&report), report.expansion_complete());
    let OperationReport {
        operation,
        queues,
        failures,
        lineage,
        control,
        state,
        blocked,
        stages,
        revision,
        family,
        quiet_by: _,
    } = report;
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
        state: state_to_wire(state).into(),
        expansion_complete,
        queues: queues_to_wire(&queues, &stages),
        failures: failures.into_iter().map(failures_to_wire).collect(),
        items_enqueued: i32::try_from(operation.items_enqueued).unwrap_or(i32::MAX),
        controls: Some(controls),
        revision,
        blocked_on: blocked.into_iter().map(blocked_to_wire).collect(),
        allowed: control::allowed(state).iter().map(|kind| kind_to_wire(*kind).into()).collect(),
        stop_when: control.terms.stop_when.map(stop_when_to_wire),
        plan_id: control.terms.plan_id,
        parent_tracking_id: lineage.rules.first().map(|rule| rule.parent_tracking_id.to_string()).unwrap_or_default(),
        retries: retries_to_wire(&lineage.retries),
        family: family.as_ref().map(family_to_wire),
    }
}

fn family_to_wire(family: &Family) -> wire::Family {
    wire::Family {
        operations: i32::try_from(family.operations).unwrap_or(i32::MAX),
        complete: family.complete,
        state: state_to_wire(family.state).into(),
        expansion_complete: family.expansion_complete,
        queues: queues_to_wire(&family.queues, &family.stages),
    }
}

fn queues_to_wire(queues: &[QueueCounts], stages: &[StageReport]) -> Vec<wire::QueueCounts> {
    let stage = |counts: &QueueCounts| stages.iter().find(|stage| stage.queue == counts.queue);
    queues.iter().map(|counts| counts_to_wire(counts, stage(counts))).collect()
}

fn state_to_wire(state: State) -> wire::OperationState {
    match state {
        State::AwaitingApproval => wire::OperationState::AwaitingApproval,
        State::Running => wire::OperationState::Running,
        State::Paused => wire::OperationState::Paused,
        State::Held => wire::OperationState::Held,
        State::Cancelling => wire::OperationState::Cancelling,
        State::Cancelled => wire::OperationState::Cancelled,
        State::Succeeded => wire::OperationState::Succeeded,
        State::FinishedWithFailures => wire::OperationState::FinishedWithFailures,
    }
}

fn kind_to_wire(kind: ActionKind) -> wire::ControlAction {
    match kind {
        ActionKind::Pause => wire::ControlAction::Pause,
        ActionKind::Resume => wire::ControlAction::Resume,
        ActionKind::Cancel => wire::ControlAction::Cancel,
        ActionKind::SetLimits => wire::ControlAction::SetLimits,
        ActionKind::Approve => wire::ControlAction::Approve,
        ActionKind::Decline => wire::ControlAction::Decline,
    }
}

fn blocked_to_wire(blocked: Blocked) -> wire::Blocked {
    let cause = match blocked.cause {
        BlockCause::AwaitingApproval => wire::BlockCause::AwaitingApproval,
        BlockCause::Brake => wire::BlockCause::Brake,
        BlockCause::Paused => wire::BlockCause::Paused,
        BlockCause::Held => wire::BlockCause::Held,
        BlockCause::Throttled => wire::BlockCause::Throttled,
        BlockCause::InFlightLimit => wire::BlockCause::InFlightLimit,
        BlockCause::NoWorker => wire::BlockCause::NoWorker,
        BlockCause::NotDue => wire::BlockCause::NotDue,
    };
    wire::Blocked {
        cause: cause.into(),
        queue_name: blocked.queue.as_ref().map(ToString::to_string).unwrap_or_default(),
        until: blocked.until.map(timestamp_to_wire),
        detail: blocked.detail,
    }
}

fn controls_to_wire(report: &OperationReport) -> wire::OperationControls {
    let control = &report.control;
    let held = |hold: &Hold| Act { at: hold.at, by: None, reason: hold.cause.clone() };
    wire::OperationControls {
        paused: control.paused.as_ref().map(|pause| act_to_wire(&pause.act)),
        paused_until: control.paused.as_ref().and_then(|pause| pause.until).map(timestamp_to_wire),
        cancelled: control.cancelled.as_ref().map(act_to_wire),
        quiet_by: report.quiet_by.filter(|_| report.state == State::Cancelling).map(timestamp_to_wire),
        held: control.held.as_ref().map(|hold| act_to_wire(&held(hold))),
        limits: Some(limits_to_wire(control.limits)),
        limited: control.limited.as_ref().map(|limited| act_to_wire(&limited.act)),
        limited_until: control.limited.as_ref().and_then(|limited| limited.until).map(timestamp_to_wire),
        approval: control.approval.as_ref().map(approval_to_wire),
    }
}

fn approval_to_wire(approval: &Approval) -> wire::Approval {
    let state = match approval.state {
        ApprovalState::Awaiting => wire::ApprovalState::Awaiting,
        ApprovalState::Approved => wire::ApprovalState::Approved,
        ApprovalState::Declined => wire::ApprovalState::Declined,
        ApprovalState::Expired => wire::ApprovalState::Expired,
    };
    wire::Approval {
        state: state.into(),
        label_count: approval.label_count,
        expires_at: Some(timestamp_to_wire(approval.expires_at)),
        decided: approval.decided.as_ref().map(act_to_wire),
    }
}

fn stop_when_to_wire(stop_when: StopWhen) -> wire::StopWhen {
    wire::StopWhen {
        failure_ratio_percent: i32::try_from(stop_when.failure_ratio_percent).unwrap_or(i32::MAX),
        min_sample: i32::try_from(stop_when.min_sample).unwrap_or(i32::MAX),
    }
}

fn counts_to_wire(counts: &QueueCounts, stage: Option<&StageReport>) -> wire::QueueCounts {
    let Counts { enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased, .. } = counts.labels;
    let Counts { handed_over, confirmed_by, failed_handed_over, .. } = counts.labels;
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
        waiting_since: stage.and_then(|stage| stage.waiting_since).map(timestamp_to_wire),
        labels_per_s: stage.and_then(|stage| stage.milli_labels_per_s).map(rate_to_wire),
        retried: counts.labels_retried,
        parents_retried: counts.parents_retried,
        handed_over,
        confirmed_by: (confirmed_by != ByEvidence::default()).then(|| evidence_to_wire(confirmed_by)),
        failed_handed_over,
        retried_handed_over: counts.retried_handed_over,
        given_back: counts.labels_given_back,
        parents_given_back: counts.parents_given_back,
    }
}

fn evidence_to_wire(ByEvidence { written, transferred, displayed }: ByEvidence) -> wire::EvidenceCounts {
    wire::EvidenceCounts { written, transferred, displayed }
}

/// Labels per second. A rate is far below the 2^53 thousandths up to which this is exact.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
fn rate_to_wire(milli_labels_per_s: i64) -> f64 {
    milli_labels_per_s as f64 / 1e3
}

fn failures_to_wire(group: FailureGroup) -> wire::FailureGroup {
    wire::FailureGroup {
        queue_name: group.queue.to_string(),
        cause: group.cause,
        count: group.count,
        sample_urn: group.sample_urn,
        retried: group.retried,
        handed_over: group.handed_over,
    }
}

/// One entry per retry; it has a rule per queue.
fn retries_to_wire(rules: &[RetryRule]) -> Vec<wire::Retry> {
    let mut retries: Vec<wire::Retry> = Vec::new();
    for of_one in rules.chunk_by(|a, b| a.lane == b.lane) {
        retries.extend(of_one.first().map(|rule| wire::Retry {
            tracking_id: rule.tracking_id.to_string(),
            items: of_one.iter().map(|rule| rule.labels + rule.parents).sum(),
            complete: of_one.iter().all(|rule| rule.done),
        }));
    }
    retries
}
