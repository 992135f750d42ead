//! `/v1/tenants/{tenant}/operations/{tracking_id}/failures` and `…/retry-failed`: what failed, and doing just that again.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use domain::{OperatorScope, Reason, ServiceName, TenantId, TrackingId};
use http::{
    HeaderValue, StatusCode,
    header::{LOCATION, RETRY_AFTER},
};
use proto::cqs::v1::{Failure as WireFailure, ListFailuresRequest, RetryFailuresRequest, failure::Urn as WireUrn};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    control::failure as refused,
    operations::find_visible,
    triggers::{POLL_AFTER_S, operation_path},
};
use crate::{
    audit::{Attempt, Failure},
    auth::Operator,
    backend::{Peer, call},
    body,
    problem::{ControlProblems, Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments, segment},
    state::Gateway,
    wire,
};

/// Longest cause that is asked for, in characters: as CQS takes it.
const CAUSE_MAX_CHARS: usize = domain::limits::CAUSE_MAX_BYTES;

/// One failed label, or a parent whose labels nobody saw.
#[derive(Serialize, ToSchema)]
pub(crate) struct FailedItem {
    /// What a label would have been once the stage was done with it.
    #[schema(example = "rendered")]
    stage: &'static str,
    /// The service that gave up.
    service: String,
    /// URN of the record, or of the parent.
    urn: String,
    /// True: a parent, and nothing below it was handled from where its split stood.
    parent: bool,
    /// Why, as the service says it.
    cause: String,
    /// Attempts that ended in a retry before it failed.
    attempts: i32,
    /// RFC 3339.
    failed_at: Option<String>,
    /// Tracking id of the retry that took it over; null: none did yet.
    retried_by: Option<String>,
    /// Whether the label's access point had taken its picture, as far as was known when it failed.
    handed_over: bool,
}

/// A page of failures, by stage, then oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct FailureList {
    /// The failures.
    failures: Vec<FailedItem>,
    #[serde(flatten)]
    next: NextPage,
}

/// Which failures, for the document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters that the handler reads")]
pub(crate) struct FailureParams {
    /// Only of this service.
    service: Option<String>,
    /// Only with exactly this cause.
    #[param(min_length = 1, max_length = 1_000, pattern = "^[^\\u0000]*$")]
    cause: Option<String>,
}

/// What failed in an operation.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/operations/{tracking_id}/failures", operation_id = "list_failures",
    tag = "operations",
    security(("operator" = ["operations:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("tracking_id" = String, Path, description = "The operation."),
        FailureParams, PageParams
    ),
    responses((status = 200, description = "One page.", body = FailureList), ReadProblems)
)]
pub(crate) async fn list_failures(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, tracking_id)): Segments<(String, String)>,
    parameters: Parameters,
) -> Result<Json<FailureList>, Problem> {
    let reach = operator.require(OperatorScope::OperationsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let tracking_id: TrackingId = segment("tracking_id", &tracking_id)?;
    let page = parameters.page(&["service", "cause"])?;
    let service = parameters.optional("service")?.map(with_failures).transpose()?;
    let cause: Option<String> = parameters.optional("cause")?;
    find_visible(&gateway, reach, (&tenant, &tracking_id)).await?;
    let request = ListFailuresRequest {
        tenant_id: tenant.to_string(),
        tracking_id: tracking_id.to_string(),
        queue_name: service.map(|service| service.to_string()).unwrap_or_default(),
        cause: bounded(cause.as_deref())?,
        page_size: page.wire_size(),
        page_token: page.token,
    };
    let answer = call(Peer::Cqs, gateway.cqs().list_failures(request)).await?;
    let failures = answer.failures.into_iter().map(item).collect();
    Ok(Json(FailureList { failures, next: answer.next_page_token.into() }))
}

/// A service whose work can fail; the others have none.
fn with_failures(service: ServiceName) -> Result<ServiceName, domain::Refusal> {
    let known = service.queue().is_some();
    if known { Ok(service) } else { Err(domain::Refusal::field("service", "handles no labels, so none fails there")) }
}

fn bounded(cause: Option<&str>) -> Result<String, domain::Refusal> {
    let cause = cause.unwrap_or_default();
    if cause.chars().count() > CAUSE_MAX_CHARS || cause.contains('\0') {
        return Err(domain::Refusal::field(
            "cause",
            format!("must be at most {CAUSE_MAX_CHARS} characters, none of them NUL"),
        ));
    }
    Ok(cause.to_owned())
}

fn item(wire: WireFailure) -> FailedItem {
    let (urn, parent) = match wire.urn {
        Some(WireUrn::DtoId(urn)) => (urn, false),
        Some(WireUrn::ParentId(urn)) => (urn, true),
        None => (String::new(), false),
    };
    FailedItem {
        stage: wire::stage_of(&wire.queue_name),
        service: wire.queue_name,
        urn,
        parent,
        cause: wire.cause,
        attempts: wire.attempts,
        failed_at: wire::time(wire.failed_at.as_ref()),
        retried_by: Some(wire.retried_by).filter(|id| !id.is_empty()),
        handed_over: wire.handed_over,
    }
}

/// Handles again what failed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryFailedRequest {
    /// Why, 1 to 500 characters. Stands in the audit log and with the retry.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// Names the retry, an operation of its own. Repeating a request with the same id repeats its answer.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    tracking_id: String,
    /// Only what failed at this service; left out: everywhere.
    service: Option<String>,
    /// Only what failed with exactly this cause; left out: with any.
    #[schema(max_length = 1_000, pattern = "^[^\\u0000]*$")]
    cause: Option<String>,
}

/// An accepted retry.
#[derive(Serialize, ToSchema)]
pub(crate) struct RetryAccepted {
    /// Where to follow it.
    operation: String,
    /// As the request named it.
    tracking_id: String,
    /// Tracking id of the operation whose failures it handles again.
    parent_id: String,
    /// Failures it takes over.
    items: i64,
    /// RFC 3339.
    accepted_at: Option<String>,
    /// When it should be done, RFC 3339: as the operation should have been.
    sla_timestamp: Option<String>,
    /// True when the same request had been accepted before; then nothing was done now.
    replayed: bool,
}

/// Retry what failed of an operation.
#[utoipa::path(
    post, path = "/v1/tenants/{tenant}/operations/{tracking_id}/retry-failed", operation_id = "retry_failures",
    tag = "operations", description = "Opens an operation of exactly those labels that failed until now and that no other \
    retry took over, each in the stage where it failed. Accepted in the same time whatever their number.",
    security(("operator" = ["operations:control"])),
    params(("tenant" = String, Path, description = "The tenant."), ("tracking_id" = String, Path, description = "The operation.")),
    request_body(content = RetryFailedRequest, example = json!({"reason": "CHG-118: the font is there now", "tracking_id": "CHG-118-retry-1"})),
    responses(
        (status = 202, description = "Accepted; follow `Location`.", body = RetryAccepted,
            headers(("Location" = String, description = "The retry."), ("Retry-After" = u32, description = "Seconds until a first look makes sense."))),
        (status = 200, description = "The same request had been accepted before.", body = RetryAccepted),
        ControlProblems
    )
)]
pub(crate) async fn retry_failures(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(named): Segments<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let mut attempt = Attempt::new(&gateway, "retry-failed", operator.subject());
    match retried(&gateway, &operator, named, (request, &mut attempt)).await {
        Ok(accepted) => Ok(answered(accepted)),
        Err(failure) => {
            attempt.refused(&failure).await;
            Err(failure.problem)
        }
    }
}

async fn retried(
    gateway: &Gateway,
    operator: &Operator,
    (tenant, tracking_id): (String, String),
    (request, attempt): (Request, &mut Attempt),
) -> Result<RetryAccepted, Failure> {
    let named = (segment::<TenantId>("tenant", &tenant), segment::<TrackingId>("tracking_id", &tracking_id));
    attempt.tenant = named.0.as_ref().ok().filter(|tenant| operator.knows(tenant)).cloned();
    let bytes = body::read(request).await?;
    attempt.body(&bytes);
    let parsed = body::parse::<RetryFailedRequest>(&bytes);
    if let Ok(body) = &parsed {
        attempt.reason = body.reason.parse().ok();
        attempt.tracking_id = body.tracking_id.parse().ok();
    }
    let reach = operator.require(OperatorScope::OperationsControl)?;
    let (tenant, parent) = (named.0?, named.1?);
    let body = parsed?;
    let reason: Reason = proto::parse_field("reason", &body.reason)?;
    let retry: TrackingId = proto::parse_field("tracking_id", &body.tracking_id)?;
    let service = body.service.as_deref().map(|service| proto::parse_field("service", service)).transpose()?;
    let service = service.map(with_failures).transpose()?;
    find_visible(gateway, reach, (&tenant, &parent)).await?;
    gateway.rates.tenant_action(&tenant)?;
    let request = RetryFailuresRequest {
        tenant_id: tenant.to_string(),
        tracking_id: parent.to_string(),
        retry_tracking_id: retry.to_string(),
        queue_name: service.map(|service| service.to_string()).unwrap_or_default(),
        cause: bounded(body.cause.as_deref())?,
        reason: reason.to_string(),
        operator_subject: operator.subject().to_string(),
        sla_timestamp: None,
    };
    let answer = call(Peer::Cqs, gateway.cqs().retry_failures(request)).await.map_err(refused)?;
    Ok(RetryAccepted {
        operation: operation_path(&tenant, &retry),
        tracking_id: retry.to_string(),
        parent_id: parent.to_string(),
        items: answer.items,
        accepted_at: wire::time(answer.accepted_at.as_ref()),
        sla_timestamp: wire::time(answer.sla_timestamp.as_ref()),
        replayed: answer.replayed,
    })
}

fn answered(accepted: RetryAccepted) -> Response {
    if accepted.replayed {
        return Json(accepted).into_response();
    }
    let location = HeaderValue::try_from(&accepted.operation);
    let mut response = (StatusCode::ACCEPTED, Json(accepted)).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    response.headers_mut().insert(RETRY_AFTER, POLL_AFTER_S.into());
    response
}
