//! `/v1/brake`: the one brake, which stops all operator work of all tenants and leaves ordinary changes alone.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use domain::{OperatorScope, Reason};
use proto::cqs::v1::{Brake as WireBrake, GetBrakeRequest, SetBrakeRequest as WireSetBrake};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::control_view::Act;
use crate::{
    audit::{Attempt, AuditedBy, Failure},
    auth::Operator,
    backend::{CallError, Peer, call},
    body,
    problem::{ControlProblems, Problem, ReadProblems},
    state::Gateway,
};

/// The brake.
#[derive(Serialize, ToSchema)]
pub(crate) struct Brake {
    /// Whether it is on.
    on: bool,
    /// Who put it on, when and why; null while it is off.
    by: Option<Act>,
}

impl Brake {
    pub(super) fn of(wire: &WireBrake) -> Self {
        Self { on: wire.on.is_some(), by: wire.on.as_ref().map(Act::of) }
    }
}

/// Puts the brake on or takes it off.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetBrakeRequest {
    /// True: nothing of any operation of any tenant is begun any more. False: all go on.
    on: bool,
    /// Why, 1 to 500 characters. Stands in the audit log and with the brake.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
}

/// Whether the brake is on.
#[utoipa::path(
    get, path = "/v1/brake", operation_id = "get_brake", tag = "operations",
    security(("operator" = ["operations:read"])),
    responses((status = 200, description = "The brake.", body = Brake), ReadProblems)
)]
pub(crate) async fn get_brake(State(gateway): State<Arc<Gateway>>, operator: Operator) -> Result<Json<Brake>, Problem> {
    operator.require(OperatorScope::OperationsRead)?;
    let brake = call(Peer::Cqs, gateway.cqs().get_brake(GetBrakeRequest {})).await?;
    Ok(Json(Brake::of(&brake)))
}

/// Put the brake on, or take it off.
#[utoipa::path(
    put, path = "/v1/brake", operation_id = "set_brake", tag = "operations",
    description = "Stops all operator work of all tenants within 2 seconds, and leaves ordinary changes alone. What is in \
    workers' hands finishes. Putting it on while it is on changes nothing: repeated by the same person for the same reason, it is \
    answered as before; else it is a conflict that says who has it on, since when and why.",
    security(("operator" = ["operations:brake"])),
    request_body(content = SetBrakeRequest, example = json!({"on": true, "reason": "INC-7: labels show wrong prices"})),
    responses((status = 200, description = "The brake after the action.", body = Brake), ControlProblems)
)]
pub(crate) async fn set_brake(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Json<Brake>, Problem> {
    let mut attempt = Attempt::new(&gateway, "brake", operator.subject());
    match set(&gateway, &operator, request, &mut attempt).await {
        Ok(brake) => Ok(Json(Brake::of(&brake))),
        Err(failure) => {
            attempt.refused(&failure).await;
            Err(failure.problem)
        }
    }
}

async fn set(
    gateway: &Gateway,
    operator: &Operator,
    request: Request,
    attempt: &mut Attempt,
) -> Result<WireBrake, Failure> {
    let bytes = body::read(request).await?;
    attempt.body(&bytes);
    let parsed = body::parse::<SetBrakeRequest>(&bytes);
    if let Ok(body) = &parsed {
        attempt.reason = body.reason.parse().ok();
    }
    // Who was refused is told to the auditors of the operator's own tenant, where that is one. A brake that is put on or
    // taken off concerns every tenant, and CQS writes that down without one.
    let mut tenants = operator.access().map(|(tenant, _)| tenant);
    attempt.tenant = tenants.next().filter(|_| tenants.next().is_none()).cloned();
    operator.require(OperatorScope::OperationsBrake)?;
    let body = parsed?;
    let reason: Reason = proto::parse_field("reason", &body.reason)?;
    let request =
        WireSetBrake { on: body.on, operator_subject: operator.subject().to_string(), reason: reason.to_string() };
    call(Peer::Cqs, gateway.cqs().set_brake(request)).await.map_err(|error| {
        let unknown = matches!(error, CallError::NoAnswer(_));
        let problem = error.problem("look at the brake, then repeat");
        Failure { problem, audited_by: if unknown { AuditedBy::Nobody } else { AuditedBy::Gateway } }
    })
}
