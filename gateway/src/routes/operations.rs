//! `/v1/operations` and `/v1/tenants/{tenant}/operations/…`: reading them.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use domain::{OperatorScope, Refusal, TenantId, TrackingId, Urn};
use http::header::RETRY_AFTER;
use proto::cqs::v1::{GetOperationRequest, ListOperationsRequest, Operation as WireOperation, OperationState};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{
    funnel,
    operation_view::{Operation, operation},
    triggers::POLL_AFTER_S,
};
use crate::{
    auth::{Operator, Reach},
    backend::{CallError, Peer, call},
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments, segment},
    state::Gateway,
};

/// What the wire's names of states begin with.
const STATE_PREFIX: &str = "OPERATION_STATE_";

/// What the list is narrowed to.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters that `page` reads")]
pub(crate) struct OperationParams {
    /// Only those that stand there now: states as `state` of an operation tells them, with commas between, e.g.
    /// `RUNNING,HELD,PAUSED,AWAITING_APPROVAL`. A request looks at 201 operations at most, so a page may hold fewer than asked for,
    /// even none, before the last one; what is over is not looked at unless a state of it is named.
    state: Option<String>,
}

/// A page of operations, newest first. A page may hold fewer than asked for, even none, before the last one.
#[derive(Serialize, ToSchema)]
pub(crate) struct OperationList {
    /// The operations.
    operations: Vec<Operation>,
    #[serde(flatten)]
    next: NextPage,
}

/// Operations over all tenants of the token, newest first.
#[utoipa::path(
    get, path = "/v1/operations", operation_id = "list_operations", tag = "operations",
    security(("operator" = ["operations:read"])),
    params(OperationParams, PageParams),
    responses((status = 200, description = "One page.", body = OperationList), ReadProblems)
)]
pub(crate) async fn list_operations(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    parameters: Parameters,
) -> Result<Json<OperationList>, Problem> {
    let reach = operator.require(OperatorScope::OperationsRead)?;
    let tenants = reach.tenants().map(ToString::to_string).collect();
    page(&gateway, reach, tenants, &parameters).await
}

/// Operations of one tenant, newest first.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/operations", operation_id = "list_tenant_operations", tag = "operations",
    security(("operator" = ["operations:read"])),
    params(("tenant" = String, Path, description = "The tenant."), OperationParams, PageParams),
    responses((status = 200, description = "One page.", body = OperationList), ReadProblems)
)]
pub(crate) async fn list_tenant_operations(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(tenant): Segments<String>,
    parameters: Parameters,
) -> Result<Json<OperationList>, Problem> {
    let reach = operator.require(OperatorScope::OperationsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    reach.tenant(&tenant)?;
    page(&gateway, reach, vec![tenant.to_string()], &parameters).await
}

/// One operation with its counts.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/operations/{tracking_id}", operation_id = "get_operation", tag = "operations",
    security(("operator" = ["operations:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("tracking_id" = String, Path, description = "As the trigger's request named it.")
    ),
    responses(
        (status = 200, description = "Where it stands. `Retry-After` while it runs.", body = Operation,
            headers(("Retry-After" = u32, description = "Seconds until the next look makes sense; absent once finished."))),
        ReadProblems
    )
)]
pub(crate) async fn get_operation(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, tracking_id)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let reach = operator.require(OperatorScope::OperationsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let tracking_id: TrackingId = segment("tracking_id", &tracking_id)?;
    let found = find_visible(&gateway, reach, (&tenant, &tracking_id)).await?;
    let over = funnel::is_over(found.state());
    let mut response = Json(operation(found)?).into_response();
    if !over {
        response.headers_mut().insert(RETRY_AFTER, POLL_AFTER_S.into());
    }
    Ok(response)
}

/// The operation of that name; for a token that does not reach it there is none.
pub(super) async fn find_visible(
    gateway: &Gateway,
    reach: Reach<'_>,
    (tenant, tracking_id): (&TenantId, &TrackingId),
) -> Result<WireOperation, Problem> {
    reach.tenant(tenant)?;
    let request = GetOperationRequest { tenant_id: tenant.to_string(), tracking_id: tracking_id.to_string() };
    let found = call(Peer::Cqs, gateway.cqs().get_operation(request)).await?;
    reached(reach, &found)?;
    Ok(found)
}

/// Those operations of a tenant that have one of these names, in one call; what has none of them is left out.
pub(super) async fn named(
    gateway: &Gateway,
    tenant: &TenantId,
    names: BTreeSet<String>,
) -> Result<Vec<WireOperation>, CallError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let request = ListOperationsRequest {
        tenant_ids: vec![tenant.to_string()],
        tracking_ids: names.into_iter().collect(),
        ..ListOperationsRequest::default()
    };
    Ok(call(Peer::Cqs, gateway.cqs().list_operations(request)).await?.operations)
}

async fn page(
    gateway: &Gateway,
    reach: Reach<'_>,
    tenant_ids: Vec<String>,
    parameters: &Parameters,
) -> Result<Json<OperationList>, Problem> {
    let page = parameters.page(&["state"])?;
    let states = states(parameters.optional::<String>("state")?.as_deref())?;
    if tenant_ids.is_empty() {
        return Ok(Json(OperationList { operations: Vec::new(), next: String::new().into() }));
    }
    let request = ListOperationsRequest {
        tenant_ids,
        page_size: page.wire_size(),
        page_token: page.token,
        states,
        ..ListOperationsRequest::default()
    };
    let answer = call(Peer::Cqs, gateway.cqs().list_operations(request)).await?;
    let operations = answer
        .operations
        .into_iter()
        .filter(|found| reached(reach, found).is_ok())
        .map(operation)
        .collect::<Result<_, _>>();
    Ok(Json(OperationList { operations: operations?, next: answer.next_page_token.into() }))
}

/// The states to narrow to; empty: any.
fn states(text: Option<&str>) -> Result<Vec<i32>, Refusal> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let named: BTreeSet<&str> = text.split(',').collect();
    let state = |name: &&str| {
        OperationState::from_str_name(&format!("{STATE_PREFIX}{name}"))
            .filter(|state| *state != OperationState::Unspecified)
            .map(i32::from)
            .ok_or_else(|| {
                Refusal::field("state", "must be states of operations with commas between, e.g. RUNNING,HELD")
            })
    };
    named.iter().map(state).collect()
}

/// Refuses unless the token reaches what the operation was asked for. A scope that is no URN is the whole tenant's.
pub(super) fn reached(reach: Reach<'_>, found: &WireOperation) -> Result<(), Problem> {
    match (found.tenant_id.parse::<TenantId>(), found.scope.parse::<Urn>()) {
        (Ok(tenant), Ok(scope)) if *scope.tenant() == tenant => reach.record(&scope),
        (Ok(tenant), Err(_)) => reach.whole(&tenant),
        (Ok(_), Ok(_)) | (Err(_), _) => Err(Problem::not_found()),
    }
}
