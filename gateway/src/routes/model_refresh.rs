//! `/v1/triggers/model-refresh`

use std::sync::Arc;

use axum::{
    Json,
    body::Bytes,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use domain::{ErrorCode, Reason, RecordId, Refusal, StoreId, TenantId, Timestamp, TrackingId, Trigger};
use proto::ecc_image_render::v1::{TriggerModelRefreshRequest, TriggerModelRefreshResponse};
use serde::Deserialize;
use utoipa::ToSchema;

use super::triggers::{Accepted, DryRun, StoreLabels, TriggerAnswer, operation_path};
use crate::{
    audit::{Attempt, AuditedBy, Failure},
    auth::Operator,
    backend::{CallError, Peer, call},
    body,
    problem::{Problem, TriggerProblems},
    state::Gateway,
    wire,
};

const TRIGGER: Trigger = Trigger::ModelRefresh;

/// Renders every label linked to one ECC model of a store again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelRefreshRequest {
    /// The tenant.
    #[schema(example = "demo")]
    tenant_id: String,
    /// The store.
    #[schema(example = "berlin")]
    store_id: String,
    /// The model.
    #[schema(example = "standard")]
    model_id: String,
    /// Why, 1 to 500 characters without control characters. Stands in the audit log.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// Names the operation within its tenant. Repeating a request with the same id repeats its answer.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    tracking_id: String,
    /// True: validate and count, enqueue nothing. Never assumed.
    dry_run: bool,
    /// When it should be done, RFC 3339. Left out: now plus the trigger's bulk allowance, so that ordinary changes go
    /// first.
    sla_timestamp: Option<String>,
}

/// The request once every field is valid.
struct Asked {
    tenant: TenantId,
    store: StoreId,
    model: RecordId,
    reason: Reason,
    tracking_id: TrackingId,
    dry_run: bool,
    sla: Timestamp,
    sla_is_default: bool,
}

/// Render every label of a model again.
#[utoipa::path(
    post, path = "/v1/triggers/model-refresh", operation_id = "trigger_model_refresh", tag = "triggers",
    security(("operator" = ["trigger:model-refresh"])),
    request_body(
        content = ModelRefreshRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin", "model_id": "standard",
            "reason": "CHG-118: the price font was fixed", "tracking_id": "CHG-118", "dry_run": true
        })
    ),
    responses(
        (status = 200, description = "A dry run's counts, or the answer of before with `replayed: true`.", body = TriggerAnswer),
        (status = 202, description = "Accepted; follow `Location`.", body = Accepted,
            headers(("Location" = String, description = "The operation."), ("Retry-After" = u32, description = "Seconds until a first look makes sense."))),
        TriggerProblems
    )
)]
pub(crate) async fn trigger_model_refresh(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    let mut attempt = Attempt::new(&gateway, "trigger model-refresh", operator.subject());
    match refresh(&gateway, &operator, request, &mut attempt).await {
        Ok(response) => Ok(response),
        Err(failure) => {
            attempt.refused(&failure).await;
            Err(failure.problem)
        }
    }
}

async fn refresh(
    gateway: &Gateway,
    operator: &Operator,
    request: Request,
    attempt: &mut Attempt,
) -> Result<Response, Failure> {
    let bytes = body::read(request).await?;
    let asked = asked(gateway, operator, &bytes, attempt)?;
    let mut client = gateway
        .ecc_triggers()
        .ok_or_else(|| CallError::Down(Peer::Trigger(TRIGGER.service())).problem("its address is not configured"))?;
    let answer = call(
        Peer::Trigger(TRIGGER.service()),
        client.trigger_model_refresh(TriggerModelRefreshRequest {
            tenant_id: asked.tenant.to_string(),
            store_id: asked.store.to_string(),
            model_id: asked.model.to_string(),
            reason: asked.reason.to_string(),
            tracking_id: asked.tracking_id.to_string(),
            dry_run: asked.dry_run,
            operator_subject: operator.subject().to_string(),
            sla_timestamp: Some(proto::timestamp_to_wire(asked.sla)),
            sla_is_default: asked.sla_is_default,
        }),
    )
    .await
    .map_err(failure)?;
    tracing::info!(
        tracking_id = %asked.tracking_id, operator = %operator.subject(), trigger = %TRIGGER, tenant = %asked.tenant,
        store = %asked.store, model = %asked.model, dry_run = asked.dry_run, labels = answer.labels,
        replayed = answer.replayed, reason = %asked.reason, "trigger answered"
    );
    Ok(response(&asked, answer))
}

/// Validates in the order an operator would: shape, scope, each field, then whether the token reaches it. What is valid
/// goes to the audit row even when the rest is not.
fn asked(gateway: &Gateway, operator: &Operator, bytes: &Bytes, attempt: &mut Attempt) -> Result<Asked, Problem> {
    attempt.body(bytes);
    let parsed = body::parse::<ModelRefreshRequest>(bytes);
    if let Ok(request) = &parsed {
        attempt.tracking_id = request.tracking_id.parse().ok();
        attempt.reason = request.reason.parse().ok();
        attempt.tenant = request.tenant_id.parse().ok().filter(|tenant| operator.tenant(tenant).is_ok());
    }
    operator.require(TRIGGER.scope())?;
    let request = parsed?;
    let sla = request.sla_timestamp.as_deref().map(|text| wire::parse_time("sla_timestamp", text)).transpose()?;
    let asked = Asked {
        tenant: proto::parse_field("tenant_id", &request.tenant_id)?,
        store: proto::parse_field("store_id", &request.store_id)?,
        model: proto::parse_field("model_id", &request.model_id)?,
        reason: proto::parse_field("reason", &request.reason)?,
        tracking_id: proto::parse_field("tracking_id", &request.tracking_id)?,
        dry_run: request.dry_run,
        sla: sla.unwrap_or_else(|| gateway.clock.now().plus_ms(TRIGGER.bulk_allowance_ms())),
        sla_is_default: sla.is_none(),
    };
    operator.store(&asked.tenant, &asked.store).map_err(|_| unknown_model())?;
    Ok(asked)
}

/// The model is unknown, or its tenant or store is none of this token: one answer for all.
fn unknown_model() -> Problem {
    Problem::not_found().at("model_id")
}

/// A refusal that came back from the service was written down there; everything else is ours to write down.
fn failure(error: CallError) -> Failure {
    let audited_by = match &error {
        CallError::Refused(_) => AuditedBy::Service,
        CallError::Down(_) | CallError::DownBehind(_) | CallError::Fault => AuditedBy::Gateway,
        CallError::NoAnswer(_) => AuditedBy::Nobody,
    };
    let problem = match error {
        CallError::Refused(refusal) if refusal.code == ErrorCode::NotFound => unknown_model(),
        CallError::Refused(refusal) if refusal.code == ErrorCode::AlreadyExists => conflict(refusal).into(),
        other => other.problem("repeat with the same tracking_id"),
    };
    Failure { problem, audited_by }
}

/// The service may name a field of its own call to CQS; the operator reads those of this request.
fn conflict(mut refusal: Refusal) -> Refusal {
    let ours = ["tenant_id", "store_id", "model_id", "reason", "tracking_id", "dry_run", "sla_timestamp"];
    if !ours.contains(&refusal.field.as_str()) {
        let field = match refusal.field.as_str() {
            "operator_subject" => "operator",
            "trigger" => "tracking_id",
            _ => "model_id",
        };
        field.clone_into(&mut refusal.field);
    }
    refusal
}

fn response(asked: &Asked, answer: TriggerModelRefreshResponse) -> Response {
    if asked.dry_run {
        return Json(TriggerAnswer::DryRun(DryRun {
            dry_run: true,
            labels: answer.labels,
            sample_label_ids: answer.sample_label_ids,
            stores: vec![StoreLabels { store_id: asked.store.to_string(), labels: answer.labels }],
            would_run_on: TRIGGER.service().as_str(),
            would_have_sla_timestamp: asked.sla.to_string(),
        }))
        .into_response();
    }
    Accepted {
        operation: operation_path(&asked.tenant, &asked.tracking_id),
        tracking_id: asked.tracking_id.to_string(),
        labels: answer.labels,
        items_enqueued: answer.items_enqueued,
        accepted_at: wire::time(answer.accepted_at.as_ref()),
        sla_timestamp: wire::time(answer.sla_timestamp.as_ref()),
        replayed: answer.replayed,
    }
    .into_response()
}
