//! `/v1/operations` and `/v1/tenants/{tenant}/operations/…`

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use domain::{OperatorScope, TenantId, TrackingId, Urn};
use http::header::RETRY_AFTER;
use proto::cqs::v1::{
    FailureGroup, GetOperationRequest, ListOperationsRequest, Operation as WireOperation, OperationState, QueueCounts,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::triggers::{POLL_AFTER_S, operation_path};
use crate::{
    auth::{Operator, StoreAccess},
    backend::{CallError, Peer, call},
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments, segment},
    state::Gateway,
    wire,
};

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum OperationStateName {
    /// Something of it waits or is being handled.
    Running,
    /// Nothing is left and nothing failed.
    Succeeded,
    /// Nothing is left; at least one item failed.
    FinishedWithFailures,
    /// A person paused it.
    Paused,
    /// It stopped itself, because too much of it failed.
    Held,
    /// Another operator must approve it.
    AwaitingApproval,
    /// Cancelled; some of it is still being handled.
    Cancelling,
    /// Cancelled; nothing of it is being handled.
    Cancelled,
}

/// Counts of labels, or of parents, in one stage. `received` = `done` + `failed` + `coalesced` + `cancelled` +
/// `waiting` + `leased`, at every instant.
#[derive(Serialize, ToSchema)]
pub(crate) struct Counts {
    /// That ever came to the stage.
    received: i64,
    /// Handled, changed or not.
    done: i64,
    /// Given up; see `failures`.
    failed: i64,
    /// Merged into one that waited already.
    coalesced: i64,
    /// Called off.
    cancelled: i64,
    /// Waiting, deferred and backing-off ones included.
    waiting: i64,
    /// In a worker's hands.
    leased: i64,
}

/// One stage of the flow.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Stage {
    /// What a label is once the stage is done with it: `rendered`, `merged` or `exported`.
    #[schema(example = "rendered")]
    stage: &'static str,
    /// The service that does it.
    #[schema(example = "ecc-image-render-service")]
    service: String,
    /// Labels.
    labels: Counts,
    /// Of the labels done: nothing had to change.
    unchanged: i64,
    /// Parents: what leads to labels and is split.
    parents: Counts,
}

/// Failed items with the same cause.
#[derive(Serialize, ToSchema)]
pub(crate) struct Failure {
    /// Where they failed.
    stage: &'static str,
    /// The service that gave up.
    service: String,
    /// Why, as the service says it.
    cause: String,
    /// How many.
    count: i64,
    /// The URN of one of them.
    sample: String,
}

/// The labels of an operation, counted over all stages. Final once `expansion_complete` is true and the state is not
/// `RUNNING`.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Summary {
    /// Labels it concerns, as far as they are known.
    labels: i64,
    /// Rendered to a new picture.
    rendered: i64,
    /// Handled by the first stage with nothing to change.
    unchanged: i64,
    /// Sent to the label and confirmed as far as the driver can tell.
    exported: i64,
    /// Given up in some stage.
    failed: i64,
}

/// One accepted trigger, followed by its tracking id.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Operation {
    /// Its own path.
    operation: String,
    /// The tenant.
    tenant_id: String,
    /// Names it within its tenant.
    tracking_id: String,
    /// The trigger that started it.
    trigger: String,
    /// The service that carries it out.
    service: String,
    /// URN of what was asked for.
    scope: String,
    /// Why.
    reason: String,
    /// Who asked: the token's subject.
    operator: String,
    /// Where it stands. It never says `SUCCEEDED` with failures.
    state: OperationStateName,
    /// Whether every parent is split; only then are the totals final.
    expansion_complete: bool,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<String>,
    /// When it should be done, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    sla_timestamp: Option<String>,
    /// When it was first seen finished, RFC 3339; absent while running.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// The labels, in one glance.
    summary: Summary,
    /// In the order of the flow; a stage appears once something of it came there.
    stages: Vec<Stage>,
    /// Failed items by cause, the most frequent first, at most 20 groups.
    failures: Vec<Failure>,
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
    params(PageParams),
    responses((status = 200, description = "One page.", body = OperationList), ReadProblems)
)]
pub(crate) async fn list_operations(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    parameters: Parameters,
) -> Result<Json<OperationList>, Problem> {
    operator.require(OperatorScope::OperationsRead)?;
    let tenants = operator.tenants().map(ToString::to_string).collect();
    page(&gateway, &operator, tenants, &parameters).await
}

/// Operations of one tenant, newest first.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/operations", operation_id = "list_tenant_operations", tag = "operations",
    security(("operator" = ["operations:read"])),
    params(("tenant" = String, Path, description = "The tenant."), PageParams),
    responses((status = 200, description = "One page.", body = OperationList), ReadProblems)
)]
pub(crate) async fn list_tenant_operations(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(tenant): Segments<String>,
    parameters: Parameters,
) -> Result<Json<OperationList>, Problem> {
    operator.require(OperatorScope::OperationsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    operator.tenant(&tenant)?;
    page(&gateway, &operator, vec![tenant.to_string()], &parameters).await
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
    operator.require(OperatorScope::OperationsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let tracking_id: TrackingId = segment("tracking_id", &tracking_id)?;
    operator.tenant(&tenant)?;
    let request = GetOperationRequest { tenant_id: tenant.to_string(), tracking_id: tracking_id.to_string() };
    let found = call(Peer::Cqs, gateway.cqs().get_operation(request)).await?;
    if !visible(&operator, &found) {
        return Err(Problem::not_found());
    }
    let operation = operation(found)?;
    let running = operation.state == OperationStateName::Running;
    let mut response = Json(operation).into_response();
    if running {
        response.headers_mut().insert(RETRY_AFTER, POLL_AFTER_S.into());
    }
    Ok(response)
}

async fn page(
    gateway: &Gateway,
    operator: &Operator,
    tenant_ids: Vec<String>,
    parameters: &Parameters,
) -> Result<Json<OperationList>, Problem> {
    let page = parameters.page(&[])?;
    if tenant_ids.is_empty() {
        return Ok(Json(OperationList { operations: Vec::new(), next: String::new().into() }));
    }
    let request = ListOperationsRequest { tenant_ids, page_size: page.wire_size(), page_token: page.token };
    let answer = call(Peer::Cqs, gateway.cqs().list_operations(request)).await?;
    let operations =
        answer.operations.into_iter().filter(|found| visible(operator, found)).map(operation).collect::<Result<_, _>>();
    Ok(Json(OperationList { operations: operations?, next: answer.next_page_token.into() }))
}

/// Whether the token reaches what the operation was asked for. A scope that is no URN is the whole tenant's.
pub(super) fn visible(operator: &Operator, found: &WireOperation) -> bool {
    match (found.tenant_id.parse::<TenantId>(), found.scope.parse::<Urn>()) {
        (Ok(tenant), Ok(scope)) => *scope.tenant() == tenant && operator.reaches(&scope),
        (Ok(tenant), Err(_)) => matches!(operator.tenant(&tenant), Ok(StoreAccess::All)),
        (Err(_), _) => false,
    }
}

fn operation(wire: WireOperation) -> Result<Operation, Problem> {
    let broken = |what: &str| {
        tracing::error!(tracking_id = wire.tracking_id, what, "cqs described an operation that cannot be");
        Problem::from(CallError::Fault)
    };
    let tenant: TenantId = wire.tenant_id.parse().map_err(|_| broken("tenant_id"))?;
    let tracking_id: TrackingId = wire.tracking_id.parse().map_err(|_| broken("tracking_id"))?;
    let state = match wire.state() {
        OperationState::Running => OperationStateName::Running,
        OperationState::Succeeded => OperationStateName::Succeeded,
        OperationState::FinishedWithFailures => OperationStateName::FinishedWithFailures,
        OperationState::Paused => OperationStateName::Paused,
        OperationState::Held => OperationStateName::Held,
        OperationState::AwaitingApproval => OperationStateName::AwaitingApproval,
        OperationState::Cancelling => OperationStateName::Cancelling,
        OperationState::Cancelled => OperationStateName::Cancelled,
        OperationState::Unspecified => return Err(broken("state")),
    };
    Ok(Operation {
        operation: operation_path(&tenant, &tracking_id),
        tenant_id: tenant.to_string(),
        tracking_id: tracking_id.to_string(),
        state,
        expansion_complete: wire.expansion_complete,
        accepted_at: wire::time(wire.accepted_at.as_ref()),
        sla_timestamp: wire::time(wire.sla_timestamp.as_ref()),
        finished_at: wire::time(wire.finished_at.as_ref()),
        summary: summary(&wire.queue_name, &wire.queues),
        stages: wire.queues.into_iter().map(stage).collect(),
        failures: wire.failures.into_iter().map(failure).collect(),
        trigger: wire.trigger,
        service: wire.queue_name,
        scope: wire.scope,
        reason: wire.reason,
        operator: wire.operator_subject,
    })
}

/// The first stage says how many labels there are and how many needed nothing; each later one only sees what changed.
fn summary(origin: &str, queues: &[QueueCounts]) -> Summary {
    let changed = |stage: &str| -> i64 {
        queues
            .iter()
            .filter(|queue| wire::stage_of(&queue.queue_name) == stage)
            .map(|queue| queue.done - queue.unchanged)
            .sum()
    };
    let first = queues.iter().find(|queue| queue.queue_name == origin);
    Summary {
        labels: first.map_or(0, |queue| queue.enqueued - queue.coalesced),
        rendered: changed("rendered"),
        unchanged: first.map_or(0, |queue| queue.unchanged),
        exported: changed("exported"),
        failed: queues.iter().map(|queue| queue.failed).sum(),
    }
}

fn stage(wire: QueueCounts) -> Stage {
    Stage {
        stage: wire::stage_of(&wire.queue_name),
        service: wire.queue_name,
        labels: Counts {
            received: wire.enqueued,
            done: wire.done,
            failed: wire.failed,
            coalesced: wire.coalesced,
            cancelled: wire.cancelled,
            waiting: wire.waiting,
            leased: wire.leased,
        },
        unchanged: wire.unchanged,
        parents: Counts {
            received: wire.parents_enqueued,
            done: wire.parents_done,
            failed: wire.parents_failed,
            coalesced: wire.parents_coalesced,
            cancelled: wire.parents_cancelled,
            waiting: wire.parents_waiting,
            leased: wire.parents_leased,
        },
    }
}

fn failure(wire: FailureGroup) -> Failure {
    Failure {
        stage: wire::stage_of(&wire.queue_name),
        service: wire.queue_name,
        cause: wire.cause,
        count: wire.count,
        sample: wire.sample_urn,
    }
}
