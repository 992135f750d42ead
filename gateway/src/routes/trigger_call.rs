//! The way every trigger's request takes: validate, ask the service for a dry run, decide, and only then, unless a dry
//! run was all that was wanted, call it live.
//!
//! So a dry run is the live call cut off before its last step: what refuses the live call refused the dry run, too.
//!
//! A trigger's own file holds its body ([`TriggerBody`]), its documentation, and the one call that is its own.

use std::{fmt, sync::Arc};

use axum::{
    Json,
    body::Bytes,
    extract::Request,
    response::{IntoResponse as _, Response},
};
use domain::{ErrorCode, Reason, Refusal, TenantId, Timestamp, TrackingId, Trigger};
use proto::cqs::v1::{ApprovalRequired, OperationLimits, StopWhen as WireStopWhen};

use super::{
    admission::{self, Admission},
    control_view::{Limits, StopWhen},
    estimate,
    trigger_body::{Common, Place, TriggerBody},
    triggers::{Accepted, DryRun, PlanMade, StoreLabels, TriggerAnswer, operation_path},
};
use crate::{
    audit::{Attempt, AuditedBy, Failure},
    auth::Operator,
    backend::{CallError, Peer},
    body, plan,
    problem::Problem,
    query,
    state::Gateway,
    wire::{self, WireTimestamp},
};

/// The plan a request names.
#[derive(Debug, Clone)]
pub(super) struct NamedPlan {
    /// As it came; read when it is held against what is counted now.
    pub(super) id: String,
    /// Labels that may have come or gone since.
    pub(super) max_drift: i64,
}

/// The request once every field is valid.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) trigger: Trigger,
    pub(super) tenant: TenantId,
    pub(super) place: Place,
    pub(super) operator: domain::OperatorSubject,
    pub(super) reason: Reason,
    pub(super) tracking_id: TrackingId,
    pub(super) dry_run: bool,
    pub(super) sla: Timestamp,
    pub(super) sla_is_default: bool,
    pub(super) page_token: String,
    pub(super) plan: Option<NamedPlan>,
    pub(super) limits: Option<OperationLimits>,
    pub(super) stop_when: Option<WireStopWhen>,
    /// That a second operator must approve it; decided once the service has counted.
    pub(super) approval: Option<ApprovalRequired>,
}

/// What the service answered.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) items_enqueued: i32,
    pub(super) labels: i64,
    pub(super) sample_label_ids: Vec<String>,
    pub(super) replayed: bool,
    pub(super) sla_timestamp: Option<WireTimestamp>,
    pub(super) accepted_at: Option<WireTimestamp>,
    /// A page of the breakdown by store, where there is more than one.
    pub(super) stores: Vec<(String, i64)>,
    pub(super) next_page_token: String,
    /// Stores in all; 0 where that was not counted.
    pub(super) store_count: i64,
}

/// A request message of a trigger service out of [`Asked`]: the common fields, which have the same names in each, and
/// those given.
macro_rules! request_to_wire {
    ($message:ident, $asked:expr, { $($field:ident: $value:expr),* $(,)? }) => {
        $message {
            tenant_id: $asked.tenant.to_string(),
            reason: $asked.reason.to_string(),
            tracking_id: $asked.tracking_id.to_string(),
            dry_run: $asked.dry_run,
            operator_subject: $asked.operator.to_string(),
            sla_timestamp: Some(proto::timestamp_to_wire($asked.sla)),
            sla_is_default: $asked.sla_is_default,
            limits: $asked.limits,
            stop_when: $asked.stop_when,
            approval: $asked.approval,
            plan_id: $asked.plan_digest(),
            $($field: $value),*
        }
    };
}

/// An [`Answer`] out of the response message of a trigger service: the fields that all have, and the page of stores
/// where there is one.
macro_rules! answer_from_wire {
    ($response:expr) => {
        answer_from_wire!($response, Vec::new(), String::new(), 1)
    };
    ($response:expr, $stores:expr, $next_page_token:expr, $store_count:expr) => {
        $crate::routes::trigger_call::Answer {
            items_enqueued: $response.items_enqueued,
            labels: $response.labels,
            sample_label_ids: $response.sample_label_ids,
            replayed: $response.replayed,
            sla_timestamp: $response.sla_timestamp,
            accepted_at: $response.accepted_at,
            stores: $stores,
            next_page_token: $next_page_token,
            store_count: $store_count,
        }
    };
}
pub(super) use {answer_from_wire, request_to_wire};

impl Asked {
    /// The store's id as text; empty for what is the tenant's.
    pub(super) fn store_id(&self) -> String {
        self.place.store.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// What an approval names of the plan: its digest; empty without one.
    pub(super) fn plan_digest(&self) -> String {
        self.plan.as_ref().map(|plan| plan::digest(&plan.id)).unwrap_or_default()
    }

    /// The id of its model, design, access point or label as text; empty for a whole store.
    pub(super) fn record_id(&self) -> String {
        self.place.record.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// No address of the service's triggers is configured.
pub(super) fn not_configured(trigger: Trigger) -> CallError {
    tracing::error!(service = %trigger.service(), "no address of its triggers is configured");
    CallError::Down(Peer::Trigger(trigger.service()))
}

/// Answers one request.
pub(super) async fn answer<B: TriggerBody>(
    gateway: Arc<Gateway>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    let mut attempt = Attempt::new(&gateway, format!("trigger {}", B::TRIGGER), operator.subject());
    match attempted::<B>(&gateway, &operator, request, &mut attempt).await {
        Ok(response) => Ok(response),
        Err(failure) => {
            attempt.refused(&failure).await;
            Err(failure.problem)
        }
    }
}

async fn attempted<B: TriggerBody>(
    gateway: &Gateway,
    operator: &Operator,
    request: Request,
    attempt: &mut Attempt,
) -> Result<Response, Failure> {
    let bytes = body::read(request).await?;
    let asked = asked::<B>(gateway, operator, &bytes, attempt)?;
    gateway.rates.tenant_action(&asked.tenant)?;
    let seen = B::call(gateway, &Asked { dry_run: true, ..asked.clone() }).await.map_err(failure::<B>)?;
    let admission = admission::decide(gateway, &asked, &seen)?;
    let answer = if asked.dry_run {
        seen
    } else {
        let asked = Asked { approval: admission.approval_required(gateway.clock.now()), ..asked.clone() };
        B::call(gateway, &asked).await.map_err(failure::<B>)?
    };
    tracing::info!(
        tracking_id = %asked.tracking_id, operator = %operator.subject(), trigger = %B::TRIGGER, scope = %asked,
        dry_run = asked.dry_run, labels = answer.labels, replayed = answer.replayed, reason = %asked.reason,
        "trigger answered"
    );
    if asked.dry_run {
        let seen = Seen { answer, admission };
        return Ok(Json(TriggerAnswer::DryRun(dry_run(gateway, operator, &asked, seen).await?)).into_response());
    }
    Ok(accepted(&asked, &answer, admission).into_response())
}

/// What a dry run found.
struct Seen {
    answer: Answer,
    admission: Admission,
}

/// Validates in the order an operator would: shape, scope, each field, then whether the token reaches it. What is valid
/// goes to the audit row even when the rest is not.
fn asked<B: TriggerBody>(
    gateway: &Gateway,
    operator: &Operator,
    bytes: &Bytes,
    attempt: &mut Attempt,
) -> Result<Asked, Problem> {
    attempt.body(bytes);
    let parsed = body::parse::<B>(bytes);
    if let Ok(request) = &parsed {
        let common = request.common();
        attempt.tracking_id = common.tracking_id.parse().ok();
        attempt.reason = common.reason.parse().ok();
        attempt.tenant = common.tenant_id.parse().ok().filter(|tenant| operator.knows(tenant));
    }
    let reach = operator.require(B::TRIGGER.scope())?;
    let request = parsed?;
    let common = request.common();
    let sla = common.sla_timestamp.map(|text| wire::parse_time("sla_timestamp", text)).transpose()?;
    if request.page_token().is_some() && !common.dry_run {
        return Err(Refusal::field("page_token", "belongs to a dry run: nothing else answers pages").into());
    }
    let asked = Asked {
        trigger: B::TRIGGER,
        tenant: proto::parse_field("tenant_id", common.tenant_id)?,
        place: request.place()?,
        operator: operator.subject().clone(),
        reason: proto::parse_field("reason", common.reason)?,
        tracking_id: proto::parse_field("tracking_id", common.tracking_id)?,
        dry_run: common.dry_run,
        sla: sla.unwrap_or_else(|| gateway.clock.now().plus_ms(B::TRIGGER.bulk_allowance_ms())),
        sla_is_default: sla.is_none(),
        page_token: query::token_from(request.page_token().unwrap_or_default())?,
        plan: named_plan(&common)?,
        limits: common.terms.0.map(Limits::to_wire).transpose()?,
        stop_when: common.terms.1.map(StopWhen::to_wire).transpose()?,
        approval: None,
    };
    match &asked.place.store {
        Some(store) => reach.store(&asked.tenant, store),
        // What is the tenant's does not exist for a token of single stores.
        None => reach.whole(&asked.tenant),
    }
    .map_err(|problem| problem.about(B::NAMED))?;
    Ok(asked)
}

fn named_plan(common: &Common<'_>) -> Result<Option<NamedPlan>, Refusal> {
    match common.plan {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Refusal::field("max_drift", "belongs to a plan_id: without one nothing can differ")),
        (Some(_), Some(max)) if max < 0 => Err(Refusal::field("max_drift", "must be a number of labels, 0 or more")),
        (Some(id), max) => Ok(Some(NamedPlan { id: id.to_owned(), max_drift: max.unwrap_or(0) })),
    }
}

/// It is unknown, or its tenant or store is none of this token: one answer for all.
fn unknown<B: TriggerBody>() -> Problem {
    Problem::not_found().at(B::NAMED)
}

/// A refusal that came back from the service was written down there; everything else is ours to write down.
fn failure<B: TriggerBody>(error: CallError) -> Failure {
    let audited_by = match &error {
        CallError::Refused(_) => AuditedBy::Service,
        CallError::Down(_) | CallError::DownBehind(_) | CallError::Fault => AuditedBy::Gateway,
        CallError::NoAnswer(_) => AuditedBy::Nobody,
    };
    let problem = match error {
        CallError::Refused(refusal) if refusal.code == ErrorCode::NotFound => unknown::<B>(),
        CallError::Refused(refusal) if refusal.code == ErrorCode::AlreadyExists => conflict::<B>(refusal).into(),
        other => other.problem("repeat with the same tracking_id"),
    };
    Failure { problem, audited_by }
}

/// The service may name a field of its own call to CQS; the operator reads those of this request.
fn conflict<B: TriggerBody>(mut refusal: Refusal) -> Refusal {
    let ours = [
        "tenant_id",
        "store_id",
        "reason",
        "tracking_id",
        "dry_run",
        "sla_timestamp",
        "limits",
        "stop_when",
        "plan_id",
        B::NAMED,
    ];
    if !ours.contains(&refusal.field.as_str()) {
        let field = match refusal.field.as_str() {
            "operator_subject" => "operator",
            "trigger" => "tracking_id",
            _ => B::NAMED,
        };
        field.clone_into(&mut refusal.field);
    }
    refusal
}

/// The answer of a dry run: counts, samples, estimate, and the plan that the run can be held to.
async fn dry_run(gateway: &Gateway, operator: &Operator, asked: &Asked, seen: Seen) -> Result<DryRun, Problem> {
    let Seen { answer, admission } = seen;
    let stores = match &asked.place.store {
        Some(store) => vec![(store.to_string(), answer.labels)],
        None => answer.stores,
    };
    // A plan is made of the first page alone: it names the first stores, and all labels.
    let plan = if asked.page_token.is_empty() {
        let signed = gateway.plans.sign(&asked.plan_scope(), admission.counted, gateway.clock.now())?;
        Some(PlanMade { plan_id: signed.0, plan_expires_at: signed.1.to_string() })
    } else {
        None
    };
    Ok(DryRun {
        dry_run: true,
        labels: answer.labels,
        store_count: Some(answer.store_count).filter(|count| *count > 0 || answer.labels == 0),
        sample_label_ids: answer.sample_label_ids,
        stores: stores.into_iter().map(|(store_id, labels)| StoreLabels { store_id, labels }).collect(),
        next: answer.next_page_token.into(),
        would_run_on: asked.trigger.service().as_str(),
        would_have_sla_timestamp: asked.sla.to_string(),
        would_replay: answer.replayed,
        plan,
        drift: admission.drift,
        approval: admission.approval,
        estimate: estimate::estimate(gateway, operator, (&asked.tenant, asked.trigger), answer.labels).await,
    })
}

fn accepted(asked: &Asked, answer: &Answer, admission: Admission) -> Accepted {
    Accepted {
        operation: operation_path(&asked.tenant, &asked.tracking_id),
        tracking_id: asked.tracking_id.to_string(),
        labels: answer.labels,
        items_enqueued: answer.items_enqueued,
        accepted_at: wire::time(answer.accepted_at.as_ref()),
        sla_timestamp: wire::time(answer.sla_timestamp.as_ref()),
        replayed: answer.replayed,
        drift: admission.drift,
        awaits_approval: admission.approval.needed,
    }
}

/// What it is about, for the log.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tenant {}", self.tenant)?;
        if let Some(store) = &self.place.store {
            write!(f, ", store {store}")?;
        }
        self.place.record.as_ref().map_or(Ok(()), |record| write!(f, ", {record}"))
    }
}
