//! `/v1/audit`

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{OperatorScope, OperatorSubject, Refusal, TenantId, TrackingId};
use proto::cqs::v1::{AuditEntry as WireEntry, AuditOutcome, ListAuditRequest};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::records::enum_text;
use crate::{
    auth::Operator,
    backend::{Peer, call},
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters},
    state::Gateway,
    wire,
};

/// Longest operator that is asked for, in characters: no shorter than the longest subject.
const OPERATOR_MAX_CHARS: usize = 255;
/// Longest action that is asked for, in bytes: as CQS keeps them.
const ACTION_MAX_BYTES: usize = 64;

/// What the list is narrowed to.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the parameters that `list_audit` reads")]
pub(crate) struct AuditParams {
    /// Only this tenant; left out: all of the token that it may see as a whole. The brake, which concerns every tenant, is
    /// there either way.
    tenant: Option<String>,
    /// Only this tracking id.
    tracking_id: Option<String>,
    /// Only on behalf of exactly this operator.
    #[param(min_length = 1, max_length = 255)]
    operator: Option<String>,
    /// Only this action, e.g. `SelfEnqueue`.
    action: Option<String>,
    /// Only with this outcome: `ACCEPTED`, `REPLAYED` or `REFUSED`.
    outcome: Option<String>,
    /// Only from then on, RFC 3339.
    since: Option<String>,
    /// Only before then, RFC 3339.
    until: Option<String>,
}

/// One row of the audit log.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// Position in the log; only grows.
    id: i64,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// The service that acted or refused, `svc:…`.
    service: String,
    /// The operator's subject; empty when a service acted by itself.
    operator: String,
    /// The tenant concerned; empty where all are: the brake was put on or taken off.
    tenant_id: String,
    /// What was asked.
    action: String,
    /// Of the request; may be empty on refusals.
    tracking_id: String,
    /// Of the request; may be empty on refusals.
    reason: String,
    /// SHA-256 of the request, hex; empty when its body could not be read.
    request_digest: String,
    /// `ACCEPTED`, `REPLAYED` or `REFUSED`.
    outcome: String,
    /// Code of a refusal; empty otherwise.
    error_code: String,
    /// One sentence more.
    detail: String,
    /// Hash of the log's chain at this row, hex; empty for rows from before the chain.
    hash: String,
}

/// A page of the audit log, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// The rows.
    entries: Vec<AuditEntry>,
    #[serde(flatten)]
    next: NextPage,
}

/// Who did what, and what was refused. Rows belong to a whole tenant, so a token narrowed to stores sees none. Who put the
/// brake on or took it off is told to whoever may read any tenant's.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "list_audit", tag = "audit",
    security(("operator" = ["audit:read"])),
    params(AuditParams, PageParams),
    responses((status = 200, description = "One page.", body = AuditList), ReadProblems)
)]
pub(crate) async fn list_audit(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    parameters: Parameters,
) -> Result<Json<AuditList>, Problem> {
    let reach = operator.require(OperatorScope::AuditRead)?;
    let page = parameters.page(&["tenant", "tracking_id", "operator", "action", "outcome", "since", "until"])?;
    let subject: Option<String> = parameters.optional("operator")?;
    let subject = subject.map(|text| named_operator(&text)).transpose()?;
    let action: Option<String> = parameters.optional("action")?;
    if action.as_deref().is_some_and(|action| !is_action(action)) {
        return Err(Refusal::field("action", "must be 1 to 64 letters, spaces and hyphens, a letter first").into());
    }
    let outcome = outcome(parameters.optional::<String>("outcome")?.as_deref())?;
    let time = |name: &str| -> Result<_, Problem> {
        let text: Option<String> = parameters.optional(name)?;
        let at = text.map(|text| wire::parse_time(name, &text)).transpose()?;
        Ok(at.map(proto::timestamp_to_wire))
    };
    let (since, until) = (time("since")?, time("until")?);
    let tracking_id: Option<TrackingId> = parameters.optional("tracking_id")?;
    let tenant: Option<TenantId> = parameters.optional("tenant")?;
    if let Some(tenant) = &tenant {
        reach.whole(tenant)?;
    }
    let tenant_ids: Vec<String> = reach
        .whole_tenants()
        .filter(|known| tenant.as_ref().is_none_or(|asked| asked == *known))
        .map(ToString::to_string)
        .collect();
    // What cannot be anybody's subject has done nothing.
    let nobody = matches!(subject, Some(None));
    if tenant_ids.is_empty() || nobody {
        return Ok(Json(AuditList { entries: Vec::new(), next: String::new().into() }));
    }
    let request = ListAuditRequest {
        tenant_ids,
        tracking_id: tracking_id.map(|id| id.to_string()).unwrap_or_default(),
        operator_subject: subject.flatten().map(|subject| subject.to_string()).unwrap_or_default(),
        action: action.unwrap_or_default(),
        outcome: outcome.into(),
        since,
        until,
        page_size: page.wire_size(),
        page_token: page.token,
    };
    let answer = call(Peer::Cqs, gateway.cqs().list_audit(request)).await?;
    let entries = answer.entries.into_iter().map(entry).collect();
    Ok(Json(AuditList { entries, next: answer.next_page_token.into() }))
}

/// The operator to narrow to; none: a text that is nobody's subject.
fn named_operator(text: &str) -> Result<Option<OperatorSubject>, Refusal> {
    if text.chars().count() > OPERATOR_MAX_CHARS {
        return Err(Refusal::field("operator", format!("must be at most {OPERATOR_MAX_CHARS} characters long")));
    }
    Ok(text.parse().ok())
}

/// Whether a text may be the name of an action: those of RPCs and of this API.
fn is_action(text: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphabetic() || c == ' ' || c == '-';
    text.len() <= ACTION_MAX_BYTES && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(rest)
}

/// The outcome to narrow to; unspecified: any.
fn outcome(text: Option<&str>) -> Result<AuditOutcome, Problem> {
    match text {
        None => Ok(AuditOutcome::Unspecified),
        Some("ACCEPTED") => Ok(AuditOutcome::Accepted),
        Some("REPLAYED") => Ok(AuditOutcome::Replayed),
        Some("REFUSED") => Ok(AuditOutcome::Refused),
        Some(_) => Err(Refusal::field("outcome", "must be ACCEPTED, REPLAYED or REFUSED").into()),
    }
}

fn entry(wire: WireEntry) -> AuditEntry {
    let outcome: AuditOutcome = wire.outcome();
    AuditEntry {
        id: wire.id,
        at: wire::time(wire.at.as_ref()),
        outcome: enum_text("AUDIT_OUTCOME_", outcome.as_str_name()).unwrap_or_default(),
        service: wire.service,
        operator: wire.operator_subject,
        tenant_id: wire.tenant_id,
        action: wire.action,
        tracking_id: wire.tracking_id,
        reason: wire.reason,
        request_digest: wire.request_digest,
        error_code: wire.error_code,
        detail: wire.detail,
        hash: wire.hash,
    }
}
