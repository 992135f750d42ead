//! `SelfEnqueue`: an operation is opened and its parents injected.

use domain::{ErrorCode, LaneKind, Refusal, SplitItem, TenantId, Timestamp, sla_clamp};
use sha2::{Digest as _, Sha256};

use crate::{
    StoreError,
    model::{Approval, ApprovalState, AuditOutcome, AuditRow, Control, NewLane, Operation, Terms},
    policy::{coalesce::Arrival, control as policy, gates},
    store::{InjectAsk, Injected},
    unit::Unit,
};

use super::{
    arrive::{Origin, arrive, fresh_row},
    changes::{Changes, Place},
    control::control_of,
    queue::existing,
};

/// The action's name in the audit log.
pub(crate) const ACTION: &str = "SelfEnqueue";

/// Opens an operation, or answers again what it answered to the same request.
pub(crate) async fn self_enqueue<U: Unit>(
    unit: &mut U,
    ask: InjectAsk,
    now: Timestamp,
) -> Result<Injected, StoreError> {
    let queue = existing(unit, &ask.queue).await?;
    let tenant = gates::injected(&queue, &ask.items, ask.scope.as_ref())?;
    let mut operation = operation_asked(&ask, &tenant, now);
    if let Some(accepted) = unit.operation_find(&tenant, &ask.tracking_id).await? {
        let terms = control_of(unit, accepted.lane).await?.terms;
        return replay(unit, &ask, ((accepted, terms), operation)).await;
    }
    let control = control_asked(&ask, now)?;
    if ask.check_only {
        return Ok(checked(tenant, &operation));
    }
    let new = NewLane { tenant: tenant.clone(), kind: LaneKind::Operation, tracking_id: Some(ask.tracking_id.clone()) };
    let mut lane = unit.lane_open(new, now).await?;
    lane.gate = control.gate();
    unit.control_put(lane.id, &control).await?;
    let place = Place { queue: &queue, lane: &lane };
    let origin = Origin { sla: operation.sla, tracking_id: None };
    let rows = ask.items.iter().map(|item| fresh_row(place, item.clone(), &origin)).collect();
    let mut changes = Changes::default();
    let arrived = arrive(unit, place, rows, (Arrival::Fresh, &mut changes)).await?;
    operation.lane = lane.id;
    operation.items_enqueued = arrived.enqueued;
    if !unit.operation_insert(&operation).await? {
        // Only where two processes raced for the name; the other one's answer comes with the repeated call.
        return Err(Refusal::new(ErrorCode::Unavailable, "the same tracking id is being accepted; repeat").into());
    }
    let woken = changes.write(unit, now).await?;
    let detail = format!("{} of {} parents enqueued", arrived.enqueued, ask.items.len());
    unit.audit_append(&[audit_row(&ask, Some(tenant.clone()), (AuditOutcome::Accepted, detail), now)]).await?;
    Ok(Injected {
        tenant,
        items_enqueued: arrived.enqueued,
        replayed: false,
        accepted_at: now,
        sla: operation.sla,
        woken,
    })
}

async fn replay<U: Unit>(
    unit: &mut U,
    ask: &InjectAsk,
    ((accepted, terms), asked): ((Operation, Terms), Operation),
) -> Result<Injected, StoreError> {
    let difference = gates::difference(&accepted, &asked).or_else(|| gates::terms_difference(&terms, &ask.terms));
    if let Some(field) = difference {
        let message = format!("the tracking id names another request, which differs in {field}");
        return Err(Refusal::new(ErrorCode::AlreadyExists, message).at(field).into());
    }
    if !ask.check_only {
        let detail = format!("accepted at {}", accepted.accepted_at);
        let row = audit_row(ask, Some(accepted.tenant.clone()), (AuditOutcome::Replayed, detail), asked.accepted_at);
        unit.audit_append(&[row]).await?;
    }
    Ok(Injected {
        tenant: accepted.tenant,
        items_enqueued: accepted.items_enqueued,
        replayed: true,
        accepted_at: accepted.accepted_at,
        sla: accepted.sla,
        woken: crate::announce::Woken::default(),
    })
}

/// What a check answers where the request itself would open an operation.
fn checked(tenant: TenantId, operation: &Operation) -> Injected {
    Injected {
        tenant,
        items_enqueued: 0,
        replayed: false,
        accepted_at: operation.accepted_at,
        sla: operation.sla,
        woken: crate::announce::Woken::default(),
    }
}

/// The operation that the request would open now.
fn operation_asked(ask: &InjectAsk, tenant: &TenantId, now: Timestamp) -> Operation {
    Operation {
        id: 0,
        tenant: tenant.clone(),
        tracking_id: ask.tracking_id.clone(),
        lane: 0,
        queue: ask.queue.clone(),
        trigger: ask.trigger.clone(),
        scope: ask.scope.clone(),
        reason: ask.reason.clone(),
        operator_subject: ask.operator_subject.clone(),
        accepted_at: now,
        sla: sla_clamp(ask.sla, now),
        sla_chosen: ask.sla.filter(|_| !ask.sla_is_default),
        items_digest: items_digest(&ask.items),
        items_enqueued: 0,
        finished_at: None,
    }
}

/// The controls it would start with.
fn control_asked(ask: &InjectAsk, now: Timestamp) -> Result<Control, Refusal> {
    let approval = ask.approval.as_ref().map(|approval| {
        policy::ahead("approval.expires_at", Some(approval.expires_at), now)?;
        Ok(Approval {
            state: ApprovalState::Awaiting,
            label_count: approval.label_count,
            expires_at: approval.expires_at,
            decided: None,
        })
    });
    Ok(Control {
        terms: ask.terms.clone(),
        limits: ask.terms.limits,
        approval: approval.transpose()?,
        ..Control::default()
    })
}

fn items_digest(items: &[SplitItem]) -> String {
    let mut sha = Sha256::new();
    for item in items {
        let alias = item.alias.map(domain::AliasName::as_str).unwrap_or_default();
        // Neither of the three can hold a line break.
        sha.update(format!("{}\n{}\n{alias}\n", item.dto_type, item.target.urn()));
    }
    domain::hex(sha.finalize())
}

/// The audit row of a request.
pub(crate) fn audit_row(
    ask: &InjectAsk,
    tenant: Option<TenantId>,
    (outcome, detail): (AuditOutcome, String),
    at: Timestamp,
) -> AuditRow {
    AuditRow {
        id: 0,
        at,
        service: ask.service,
        operator_subject: ask.operator_subject.as_ref().map(ToString::to_string).unwrap_or_default(),
        tenant,
        action: ACTION.to_owned(),
        tracking_id: ask.tracking_id.to_string(),
        reason: ask.reason.to_string(),
        request_digest: ask.request_digest.clone(),
        outcome,
        error_code: String::new(),
        detail,
    }
}
