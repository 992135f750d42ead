//! Pausing and resuming.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use domain::{OperatorScope, Refusal};
use proto::cqs::v1::{self as cqs, Operation as WireOperation, control_operation_request::Action};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{ControlBody, answer, plain_body, shown, until};
use crate::{
    auth::Operator,
    problem::{ControlProblems, Problem},
    query::Segments,
    routes::operation_view::Operation,
    state::Gateway,
};

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

plain_body!(PauseRequest, "pause", OperationsControl, |body| Action::Pause(cqs::Pause {
    until: until(body.until.as_deref())?
}));

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

/// Lets a paused or held operation go on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeRequest {
    /// Why, 1 to 500 characters. Stands in the audit log.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

plain_body!(ResumeRequest, "resume", OperationsControl, |_body| Action::Resume(cqs::Resume {}));

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
