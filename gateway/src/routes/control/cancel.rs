//! Cancelling, with a receipt of how the operation stands.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use domain::{OperatorScope, Refusal};
use proto::cqs::v1::{self as cqs, Operation as WireOperation, control_operation_request::Action};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ControlBody, answer, plain_body, shown};
use crate::{
    auth::Operator,
    backend::CallError,
    problem::{ControlProblems, Problem},
    query::Segments,
    routes::operation_view::Operation,
    state::Gateway,
    wire,
};

/// Ends an operation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the operation.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

plain_body!(CancelRequest, "cancel", OperationsControl, |_body| Action::Cancel(cqs::Cancel {}));

/// How a cancelled operation stands. Labels are counted in the stage where they stood.
#[derive(Serialize, ToSchema)]
pub(crate) struct CancelReceipt {
    /// Labels that were cancelled while they waited, but for those handed over.
    not_started: i64,
    /// Labels in workers' hands; they finish.
    in_flight: i64,
    /// Labels whose access points had taken their pictures, which nobody had seen arrive yet: they may still show them.
    handed_over: i64,
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
        handed_over: receipt.handed_over,
        already_effective: receipt.already_effective,
        unexpanded_parents: receipt.unexpanded_parents,
        quiet_by: wire::time(receipt.quiet_by.as_ref()),
    };
    Ok(Json(Cancelled { receipt, operation: shown(response)? }))
}
