//! Approving and declining what awaits it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use domain::{ErrorCode, OperatorScope, Refusal};
use proto::cqs::v1::{self as cqs, Operation as WireOperation, control_operation_request::Action};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{ControlBody, answer, plain_body, shown};
use crate::{
    auth::Operator,
    body,
    problem::{ControlProblems, Problem},
    query::Segments,
    routes::operation_view::Operation,
    state::Gateway,
};

/// Lets an operation start that awaits approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// The number of labels one approves: `controls.approval.labels` of the operation. Another one is refused.
    #[serde(deserialize_with = "body::whole")]
    labels: i64,
    /// `plan` of the operation; required when it has one. Another one is refused.
    plan: Option<String>,
    /// True: go ahead without a second person. Needs `operations:break-glass` instead of `operations:approve`, and is told
    /// in the audit log and by webhook.
    #[serde(default)]
    break_glass: bool,
}

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

/// Cancels an operation that awaits approval.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclineRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

plain_body!(DeclineRequest, "decline", OperationsApprove, |_body| Action::Decline(cqs::Decline {}));

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
