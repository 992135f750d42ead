//! Control of an operation, a file per action: `/v1/tenants/{tenant}/operations/{tracking_id}/{action}`, and `PATCH` of its
//! limits.
//!
//! CQS carries each out in one step and writes its audit row, refusals included; what is refused here is written down
//! here. Whoever may not see an operation is told that there is none.

pub(crate) mod approval;
pub(crate) mod cancel;
pub(crate) mod limits;
pub(crate) mod pause;

use std::sync::Arc;

use axum::extract::Request;
use domain::{ErrorCode, OperatorScope, Reason, Refusal, TenantId, TrackingId};
use proto::cqs::v1::{
    ControlOperationRequest, ControlOperationResponse, Operation as WireOperation, control_operation_request::Action,
};
use serde::de::DeserializeOwned;

use super::{
    operation_view::{self, Operation},
    operations::find_visible,
};
use crate::{
    audit::{Attempt, AuditedBy, Failure},
    auth::Operator,
    backend::{CallError, Peer, call},
    body,
    problem::Problem,
    query::segment,
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

/// A body whose action is the same however the operation stands.
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
use plain_body;

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
    attempt.tenant = named.0.as_ref().ok().filter(|tenant| operator.knows(tenant)).cloned();
    attempt.tracking_id = named.1.as_ref().ok().cloned();
    let bytes = body::read(request).await?;
    attempt.body(&bytes);
    let parsed = body::parse::<B>(&bytes);
    if let Ok(body) = &parsed {
        attempt.reason = body.reason().parse().ok();
    }
    let reach = operator.require(parsed.as_ref().map_or(B::SCOPE, B::scope))?;
    let (tenant, tracking_id) = (named.0?, named.1?);
    let body = parsed?;
    let reason: Reason = proto::parse_field("reason", body.reason())?;
    let found = find_visible(gateway, reach, (&tenant, &tracking_id)).await?;
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
