//! What there is to tell: rows of the audit log that somebody should hear of.

use std::{fmt, str::FromStr};

use domain::{ErrorCode, TenantId, TrackingId};
use proto::cqs::v1::{AuditEntry, AuditOutcome, GetOperationRequest, Operation, OperationState};
use serde::Serialize;

use crate::{
    backend::{CallError, Peer, call},
    routes::operation_path,
    state::Gateway,
    wire,
};

/// Types of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventType {
    /// An operation is over, without failures, or was cancelled.
    Finished,
    /// An operation is over, with failures.
    Failed,
    /// An operation stopped itself.
    Held,
    /// An operation waits for a second operator.
    ApprovalNeeded,
    /// A second operator approved an operation.
    Approved,
    /// An operator declined an operation, which is cancelled by that.
    Declined,
    /// An operation went ahead without a second operator.
    BreakGlass,
    /// The brake was put on.
    BrakeOn,
    /// The brake was taken off.
    BrakeOff,
}

impl EventType {
    const ALL: [Self; 9] = [
        Self::Finished,
        Self::Failed,
        Self::Held,
        Self::ApprovalNeeded,
        Self::Approved,
        Self::Declined,
        Self::BreakGlass,
        Self::BrakeOn,
        Self::BrakeOff,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "operation.finished",
            Self::Failed => "operation.failed",
            Self::Held => "operation.held",
            Self::ApprovalNeeded => "operation.approval_needed",
            Self::Approved => "operation.approved",
            Self::Declined => "operation.declined",
            Self::BreakGlass => "operation.break_glass",
            Self::BrakeOn => "brake.on",
            Self::BrakeOff => "brake.off",
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name is no type of event.
#[derive(Debug, thiserror::Error)]
#[error(
    "is none of operation.finished, .failed, .held, .approval_needed, .approved, .declined, .break_glass, brake.on, \
     brake.off"
)]
pub(super) struct UnknownType;

impl FromStr for EventType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<Self, UnknownType> {
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or(UnknownType)
    }
}

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    /// The same however often it is told.
    pub(super) id: String,
    pub(super) kind: EventType,
    /// The JSON that is told.
    pub(super) body: String,
}

#[derive(Serialize)]
struct Body<'e> {
    r#type: &'static str,
    timestamp: Option<String>,
    data: Data<'e>,
}

#[derive(Serialize)]
struct Data<'e> {
    audit_id: i64,
    tenant_id: Option<&'e str>,
    tracking_id: Option<&'e str>,
    operation: Option<String>,
    state: Option<&'static str>,
    operator: Option<&'e str>,
    reason: Option<&'e str>,
    detail: &'e str,
    labels: Option<i64>,
    failed: Option<i64>,
}

/// What a row of the audit log tells; none: nothing that is worth a call.
pub(super) async fn event(gateway: &Gateway, entry: &AuditEntry) -> Result<Option<Event>, CallError> {
    if entry.outcome() != AuditOutcome::Accepted {
        return Ok(None);
    }
    let kind = match entry.action.as_str() {
        "brake on" => return Ok(Some(told(entry, EventType::BrakeOn, None))),
        "brake off" => return Ok(Some(told(entry, EventType::BrakeOff, None))),
        "hold" => EventType::Held,
        "approve" => EventType::Approved,
        "decline" => EventType::Declined,
        "break glass" => EventType::BreakGlass,
        "finish" => EventType::Finished,
        "SelfEnqueue" => EventType::ApprovalNeeded,
        _ => return Ok(None),
    };
    let operation = operation_of(gateway, entry).await?;
    let needs_approval =
        |operation: &Operation| operation.controls.as_ref().is_some_and(|controls| controls.approval.is_some());
    let failed = operation.as_ref().is_some_and(|operation| operation.state() == OperationState::FinishedWithFailures);
    let kind = match kind {
        EventType::ApprovalNeeded if !operation.as_ref().is_some_and(needs_approval) => return Ok(None),
        EventType::Finished if failed => EventType::Failed,
        kind => kind,
    };
    Ok(Some(told(entry, kind, operation.as_ref())))
}

async fn operation_of(gateway: &Gateway, entry: &AuditEntry) -> Result<Option<Operation>, CallError> {
    let request = GetOperationRequest { tenant_id: entry.tenant_id.clone(), tracking_id: entry.tracking_id.clone() };
    match call(Peer::Cqs, gateway.cqs().get_operation(request)).await {
        Ok(operation) => Ok(Some(operation)),
        // It is no longer kept.
        Err(CallError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn told(entry: &AuditEntry, kind: EventType, operation: Option<&Operation>) -> Event {
    fn given(text: &str) -> Option<&str> {
        Some(text).filter(|text| !text.is_empty())
    }
    let named = (entry.tenant_id.parse::<TenantId>(), entry.tracking_id.parse::<TrackingId>());
    let first =
        operation.and_then(|operation| operation.queues.iter().find(|queue| queue.queue_name == operation.queue_name));
    let body = Body {
        r#type: kind.as_str(),
        timestamp: wire::time(entry.at.as_ref()),
        data: Data {
            audit_id: entry.id,
            tenant_id: given(&entry.tenant_id),
            tracking_id: given(&entry.tracking_id),
            operation: match &named {
                (Ok(tenant), Ok(tracking_id)) => Some(operation_path(tenant, tracking_id)),
                _ => None,
            },
            state: operation.map(|operation| state_name(operation.state())),
            operator: given(&entry.operator_subject)
                .or_else(|| operation.and_then(|operation| given(&operation.operator_subject))),
            reason: given(&entry.reason).or_else(|| operation.and_then(|operation| given(&operation.reason))),
            detail: &entry.detail,
            labels: first.map(|queue| queue.enqueued - queue.coalesced),
            failed: operation.map(|operation| operation.queues.iter().map(|queue| queue.failed).sum()),
        },
    };
    // A struct of texts and numbers always serialises.
    Event { id: format!("evt_{}", entry.id), kind, body: serde_json::to_string(&body).unwrap_or_default() }
}

fn state_name(state: OperationState) -> &'static str {
    let name = state.as_str_name();
    name.strip_prefix("OPERATION_STATE_").unwrap_or(name)
}
