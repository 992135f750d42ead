//! Other limits.

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
    body,
    problem::{ControlProblems, Problem},
    query::Segments,
    routes::operation_view::Operation,
    state::Gateway,
};

/// Other limits.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetLimitsRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// Labels a second that may be begun in each stage; 0: no limit; left out: as it is.
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default, deserialize_with = "body::whole_or_none")]
    throttle_per_s: Option<i32>,
    /// Labels that may be in workers' hands at once in each stage; 0: no limit; left out: as it is.
    #[schema(minimum = 0, maximum = 1_000_000)]
    #[serde(default, deserialize_with = "body::whole_or_none")]
    max_in_flight: Option<i32>,
    /// When the limits of the request hold again, RFC 3339, at most 30 days ahead. Left out: never.
    until: Option<String>,
}

plain_body!(SetLimitsRequest, "set-limits", OperationsControl, |body| Action::SetLimits(cqs::SetLimits {
    throttle_per_s: body.throttle_per_s,
    max_in_flight: body.max_in_flight,
    until: until(body.until.as_deref())?,
}));

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
