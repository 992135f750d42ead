//! `/v1/tenants/{tenant}/operations/{tracking_id}/{pause|resume|cancel|approve|decline}` and `PATCH` of its limits.
//!
//! CQS carries each out in one step and writes its audit row, refusals included; what is refused here is written down
//! here. Whoever may not see an operation is told that there is none.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use domain::{ErrorCode, OperatorScope, Reason, Refusal, TenantId, TrackingId};
use proto::cqs::v1::{
    self as cqs, ControlOperationRequest, ControlOperationResponse, Operation as WireOperation,
    control_operation_request::Action,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::ToSchema;

use super::{
    operation_view::{self, Operation},
    operations::find_visible,
};
use crate::{
    audit::{Attempt, AuditedBy, Failure},
    auth::Operator,
    backend::{CallError, Peer, call},
    body,
    problem::{ControlProblems, Problem},
    query::{Segments, segment},
    state::Gateway,
    wire,
};

/// The body of a control action.
trait ControlBody: DeserializeOwned + Send {
    /// As the path says it, for the audit row of a refusal.
    const ACTION: &'static str;
    /// What the token needs.
    fn scope(&self) -> OperatorScope;
    /// The scope that a body needs which could not be read.
    const SCOPE: OperatorScope = OperatorScope::OperationsControl;
    /// Why, as it came.
    fn reason(&self) -> &str;
    /// What CQS is asked; refuses what the operation as it stands does not allow.
    fn action(&self, found: &WireOperation) -> Result<Action, Refusal>;
}

/// Stops an operation until someone resumes it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// When it resumes by itself, RFC 3339, at most 30 days ahead. Left out: only when someone resumes it.
    until: Option<String>,
}

/// Lets a paused or held operation go on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// Why, 1 to 500 characters. Stands in the audit log.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// Ends an operation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// Other limits.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetLimitsRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// Labels a second that may be begun in each stage; 0: no limit; left out: as it is.
    #[schema(minimum = 0, maximum = 1_000_000)]
    throttle_per_s: Option<i32>,
    /// Labels that may be in workers' hands at once in each stage; 0: no limit; left out: as it is.
    #[schema(minimum = 0, maximum = 1_000_000)]
    max_in_flight: Option<i32>,
    /// When the limits of the request hold again, RFC 3339, at most 30 days ahead. Left out: never.
    until: Option<String>,
}

/// Lets an operation start that awaits approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// The number of labels one approves: `controls.approval.labels` of the operation. Another one is refused.
    labels: i64,
    /// `plan` of the operation; required when it has one. Another one is refused.
    plan: Option<String>,
    /// True: go ahead without a second person. Needs `operations:break-glass` instead of `operations:approve`, and is told
    /// in the audit log and by webhook.
    #[serde(default)]
    break_glass: bool,
}

/// Cancels an operation that awaits approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclineRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// How a cancelled operation stands. Labels are counted in the stage where they stood.
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelReceipt {
    /// Labels that were cancelled while they waited.
    not_started: i64,
    /// Labels in workers' hands; they finish.
    in_flight: i64,
    /// Labels that had come through their last stage, with a change.
    already_effective: i64,
    /// Parents that were not split to the end; nobody counted the labels under them.
    unexpanded_parents: i64,
    /// When nothing more happens, RFC 3339, as far as present leases tell; null: now.
    quiet_by: Option<String>,
}

/// A cancelled operation and how it stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cancelled {
    /// How it stands.
    receipt: CancelReceipt,
    /// The operation after the action.
    operation: Operation,
}

macro_rules! plain_body {
    ($request:ident, $action:literal, $scope:ident, |$body:ident| $wire:expr) => {
        impl ControlBody for $request {
            const ACTION: &'static str = $action;

            fn scope(&self) -> OperatorScope {
                OperatorScope::$scope
            }

            const SCOPE: OperatorScope = OperatorScope::$scope;

            fn reason(&self) -> &str {
                &self.reason
            }

            fn action(&self, _: &WireOperation) -> Result<Action, Refusal> {
                let $body = self;
                Ok($wire)
            }
        }
    };
}

plain_body!(PauseRequest, "pause", OperationsControl, |body| Action::Pause(cqs::Pause {
    until: until(body.until.as_deref())?
}));
plain_body!(ResumeRequest, "resume", OperationsControl, |_body| Action::Resume(cqs::Resume {}));
plain_body!(CancelRequest, "cancel", OperationsControl, |_body| Action::Cancel(cqs::Cancel {}));
plain_body!(SetLimitsRequest, "set-limits", OperationsControl, |body| Action::SetLimits(cqs::SetLimits {
    throttle_per_s: body.throttle_per_s,
    max_in_flight: body.max_in_flight,
    until: until(body.until.as_deref())?,
}));
plain_body!(DeclineRequest, "decline", OperationsApprove, |_body| Action::Decline(cqs::Decline {}));

impl ControlBody for ApproveRequest {
    const ACTION: &'static str = "approve";
    const SCOPE: OperatorScope = OperatorScope::OperationsApprove;

    fn scope(&self) -> OperatorScope {
        if self.break_glass { OperatorScope::OperationsBreakGlass } else { OperatorScope::OperationsApprove }
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    /// An approval is of what the approver saw: the number of labels, and the plan.
    fn action(&self, found: &WireOperation) -> Result<Action, Refusal> {
        let approval = found.controls.as_ref().and_then(|controls| controls.approval.as_ref());
        if let Some(approval) = approval
            && approval.label_count != self.labels
        {
            let message = format!("the operation is over {} labels", approval.label_count);
            return Err(Refusal::new(ErrorCode::FailedPrecondition, message).at("labels"));
        }
        if found.plan_id != self.plan.as_deref().unwrap_or_default() {
            let message = "is not the plan that the operation carries out";
            return Err(Refusal::new(ErrorCode::FailedPrecondition, message).at("plan"));
        }
        Ok(Action::Approve(cqs::Approve { break_glass: self.break_glass }))
    }
}

fn until(text: Option<&str>) -> Result<Option<wire::WireTimestamp>, Refusal> {
    text.map(|text| wire::parse_time("until", text).map(proto::timestamp_to_wire)).transpose()
}

/// Answers one control action.
async fn answer<B: ControlBody>(
    gateway: &Arc<Gateway>,
    operator: &Operator,
    (tenant, tracking_id): (String, String),
    request: Request,
) -> Result<ControlOperationResponse, Problem> {
    let mut attempt = Attempt::new(gateway, B::ACTION, operator.subject());
    match attempted::<B>(gateway, operator, (tenant, tracking_id), (request, &mut attempt)).await {
        Ok(response) => Ok(response),
        Err(failure) => {
            attempt.refused(&failure).await;
            Err(failure.problem)
        }
    }
}

async fn attempted<B: ControlBody>(
    gateway: &Gateway,
    operator: &Operator,
    (tenant, tracking_id): (String, String),
    (request, attempt): (Request, &mut Attempt),
) -> Result<ControlOperationResponse, Failure> {
    let named = (segment::<TenantId>("tenant", &tenant), segment::<TrackingId>("tracking_id", &tracking_id));
    attempt.tenant = named.0.as_ref().ok().filter(|tenant| operator.tenant(tenant).is_ok()).cloned();
    attempt.tracking_id = named.1.as_ref().ok().cloned();
    let bytes = body::read(request).await?;
    attempt.body(&bytes);
    let parsed = body::parse::<B>(&bytes);
    if let Ok(body) = &parsed {
        attempt.reason = body.reason().parse().ok();
    }
    operator.require(parsed.as_ref().map_or(B::SCOPE, B::scope))?;
    let (tenant, tracking_id) = (named.0?, named.1?);
    let body = parsed?;
    let reason: Reason = proto::parse_field("reason", body.reason())?;
    let found = find_visible(gateway, operator, (&tenant, &tracking_id)).await?;
    let request = ControlOperationRequest {
        tenant_id: tenant.to_string(),
        tracking_id: tracking_id.to_string(),
        operator_subject: operator.subject().to_string(),
        reason: reason.to_string(),
        action: Some(body.action(&found)?),
    };
    call(Peer::Cqs, gateway.cqs().control_operation(request)).await.map_err(failure)
}

/// CQS writes the row of what it refuses; what it could not be asked is written down here.
pub(super) fn failure(error: CallError) -> Failure {
    let audited_by = match &error {
        CallError::Refused(_) => AuditedBy::Service,
        CallError::Down(_) | CallError::DownBehind(_) | CallError::Fault => AuditedBy::Gateway,
        CallError::NoAnswer(_) => AuditedBy::Nobody,
    };
    let problem = match error {
        // It is the operator who may not, not the gateway: whoever asked for an operation may not approve it.
        CallError::Refused(refusal) if refusal.code == ErrorCode::PermissionDenied => refusal.into(),
        other => other.problem("look at the operation, then repeat"),
    };
    Failure { problem, audited_by }
}

fn shown(response: ControlOperationResponse) -> Result<Operation, Problem> {
    let operation = response.operation.ok_or_else(|| Problem::from(CallError::Fault))?;
    operation_view::operation(operation)
}

/// Pause an operation.
#[utoipa::path(
    post, path = "/v1/tenants/{tenant}/operations/{tracking_id}/pause", operation_id = "pause_operation",
    tag = "operations", description = "Nothing of it is begun any more, within 2 seconds and across restarts; what is in \
    workers' hands finishes. Pausing a paused operation replaces reason and end.",
    security(("operator" = ["operations:control"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = PauseRequest, example = json!({"reason": "CHG-118: prices look wrong", "until": "2030-06-01T06:00:00Z"})),
    responses((status = 200, description = "The operation after the action.", body = Operation), ControlProblems)
)]
pub(crate) async fn pause_operation(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Json<Operation>, Problem> {
    let response = answer::<PauseRequest>(&gateway, &operator, named, request).await?;
    Ok(Json(shown(response)?))
}

/// Resume an operation.
#[utoipa::path(
    post, path = "/v1/tenants/{tenant}/operations/{tracking_id}/resume", operation_id = "resume_operation",
    tag = "operations", description = "A paused or held operation goes on; its failure budget is measured anew. On one \
    that runs it changes nothing.",
    security(("operator" = ["operations:control"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = ResumeRequest, example = json!({"reason": "CHG-118: the prices are right"})),
    responses((status = 200, description = "The operation after the action.", body = Operation), ControlProblems)
)]
pub(crate) async fn resume_operation(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Json<Operation>, Problem> {
    let response = answer::<ResumeRequest>(&gateway, &operator, named, request).await?;
    Ok(Json(shown(response)?))
}

/// Cancel an operation.
#[utoipa::path(
    post, path = "/v1/tenants/{tenant}/operations/{tracking_id}/cancel", operation_id = "cancel_operation",
    tag = "operations", description = "What waits is cancelled at once, what is in workers' hands finishes. On a cancelled \
    operation it changes nothing and tells how it stands; a finished one is refused.",
    security(("operator" = ["operations:control"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = CancelRequest, example = json!({"reason": "CHG-118: wrong model"})),
    responses((status = 200, description = "The receipt, and the operation after the action.", body = Cancelled), ControlProblems)
)]
pub(crate) async fn cancel_operation(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Json<Cancelled>, Problem> {
    let response = answer::<CancelRequest>(&gateway, &operator, named, request).await?;
    let receipt = response.receipt.ok_or_else(|| Problem::from(CallError::Fault))?;
    let receipt = CancelReceipt {
        not_started: receipt.not_started,
        in_flight: receipt.in_flight,
        already_effective: receipt.already_effective,
        unexpanded_parents: receipt.unexpanded_parents,
        quiet_by: wire::time(receipt.quiet_by.as_ref()),
    };
    Ok(Json(Cancelled { receipt, operation: shown(response)? }))
}

/// Throttle an operation.
#[utoipa::path(
    patch, path = "/v1/tenants/{tenant}/operations/{tracking_id}", operation_id = "set_operation_limits",
    tag = "operations", description = "Other limits from the next moment on; what is in workers' hands finishes.",
    security(("operator" = ["operations:control"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = SetLimitsRequest, example = json!({"reason": "CHG-118: the shop is full", "throttle_per_s": 20})),
    responses((status = 200, description = "The operation after the action.", body = Operation), ControlProblems)
)]
pub(crate) async fn set_operation_limits(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Json<Operation>, Problem> {
    let response = answer::<SetLimitsRequest>(&gateway, &operator, named, request).await?;
    Ok(Json(shown(response)?))
}

/// Approve an operation.
#[utoipa::path(
    post, path = "/v1/tenants/{tenant}/operations/{tracking_id}/approve", operation_id = "approve_operation",
    tag = "operations", description = "Lets an operation start that is `AWAITING_APPROVAL`. Refused to the operator who \
    asked for it, unless the glass is broken.",
    security(("operator" = ["operations:approve"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = ApproveRequest, example = json!({"reason": "CHG-121: agreed", "labels": 118_204})),
    responses((status = 200, description = "The operation after the action.", body = Operation), ControlProblems)
)]
pub(crate) async fn approve_operation(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Json<Operation>, Problem> {
    let response = answer::<ApproveRequest>(&gateway, &operator, named, request).await?;
    Ok(Json(shown(response)?))
}

/// Decline an operation.
#[utoipa::path(
    post, path = "/v1/tenants/{tenant}/operations/{tracking_id}/decline", operation_id = "decline_operation",
    tag = "operations", description = "Cancels an operation that is `AWAITING_APPROVAL`. The one who asked may, too.",
    security(("operator" = ["operations:approve"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = DeclineRequest, example = json!({"reason": "CHG-121: not before the sale"})),
    responses((status = 200, description = "The operation after the action.", body = Operation), ControlProblems)
)]
pub(crate) async fn decline_operation(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Json<Operation>, Problem> {
    let response = answer::<DeclineRequest>(&gateway, &operator, named, request).await?;
    Ok(Json(shown(response)?))
}
