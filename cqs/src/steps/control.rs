//! Control actions on operations, and what the system does to one by itself: a hold, an end that was set.

use domain::{ErrorCode, QueueName, Refusal, ServiceName, TenantId, Timestamp, TrackingId};

use crate::{
    StoreError,
    announce::Woken,
    model::{
        Act, Action, AuditOutcome, AuditRow, Control, ControlAsk, Counts, LedgerKey, Limits, Operation, Queue, Receipt,
        RowKind, State, StopFrom,
    },
    policy::control as policy,
    store::Controlled,
    unit::Unit,
};

use super::{
    changes::{Changes, Place},
    lease::lane_of,
    operation::report,
    retry,
};

/// Ends handled in one round of upkeep.
const ENDING_LANES: usize = 32;

/// Carries out a person's action on an operation.
pub(crate) async fn control<U: Unit>(unit: &mut U, ask: ControlAsk, now: Timestamp) -> Result<Controlled, StoreError> {
    let operation = unit.operation_find(&ask.tenant, &ask.tracking_id).await?;
    // Another service's operation and an unknown one give the same answer.
    let shown = |operation: &Operation| {
        ask.service == ServiceName::OperatorGateway || ask.service.queue().as_ref() == Some(&operation.queue)
    };
    let operation = operation.filter(shown).ok_or_else(|| Refusal::new(ErrorCode::NotFound, "no such operation"))?;
    unit.control_lock(operation.lane).await?;
    let mut control = control_of(unit, operation.lane).await?;
    let before = control.clone();
    let ledger = unit.ledger_read(&[operation.lane]).await?;
    let counts = stop_counts(&ledger);
    let standing = policy::Standing {
        state: policy::state(&control, &total(&ledger)),
        requester: operation.operator_subject.as_ref(),
        counts: &counts,
    };
    let act = Act { at: now, by: Some(ask.by.clone()), reason: ask.reason.to_string() };
    let changed = policy::apply(&mut control, &ask.action, (act, standing))?;
    // Before what follows from it: whoever reads the log meets the cause first.
    unit.audit_append(&[audit_row(&ask, (changed, detail(&before, &control, standing.state)), now)]).await?;
    let mut woken = Woken::default();
    if changed {
        woken = put(unit, (operation.lane, &mut control, &before), (&ledger, now)).await?;
    }
    let lane = operation.lane;
    let report = report(unit, operation, now).await?;
    let receipt = match control.cancelled {
        Some(_) => Some(receipt(&report, unit.lease_handed_over(lane).await?)),
        None => None,
    };
    tracing::info!(
        tenant = %ask.tenant, tracking_id = %ask.tracking_id, action = ask.action.as_str(), by = %ask.by,
        reason = %ask.reason, changed, "operation controlled"
    );
    Ok(Controlled { report, receipt: receipt.filter(|_| ask.action == Action::Cancel), woken })
}

/// Stores changed controls; a new cancellation cancels what waits.
async fn put<U: Unit>(
    unit: &mut U,
    (lane, control, before): (i64, &mut Control, &Control),
    (ledger, now): (&[(LedgerKey, Counts)], Timestamp),
) -> Result<Woken, StoreError> {
    control.revision += 1;
    unit.control_put(lane, control).await?;
    let queues = unit.queue_list().await?;
    let mut changes = Changes::default();
    if control.cancelled.is_some() && before.cancelled.is_none() {
        cancel_waiting(unit, (lane, &queues), (ledger, &mut changes)).await?;
        retry::stop(unit, lane).await?;
    }
    if before.gate().closed && !control.gate().closed || before.limits != control.limits {
        for queue in &queues {
            changes.wake(queue);
        }
    }
    changes.write(unit, now).await
}

/// Counts everything that waits as cancelled, by the ledger: the rows themselves are removed later.
async fn cancel_waiting<U: Unit>(
    unit: &mut U,
    (lane, queues): (i64, &[Queue]),
    (ledger, changes): (&[(LedgerKey, Counts)], &mut Changes),
) -> Result<(), StoreError> {
    let lane = lane_of(unit, lane).await?;
    for (key, counts) in ledger.iter().filter(|(_, counts)| counts.waiting > 0) {
        if let Some(queue) = queues.iter().find(|queue| queue.id == key.queue) {
            let cancelled = Counts { waiting: -counts.waiting, cancelled: counts.waiting, ..Counts::default() };
            changes.count(Place { queue, lane: &lane }, key.kind, cancelled);
        }
    }
    Ok(())
}

/// Stops an operation whose failures went over its budget.
pub(crate) async fn hold_if_over_budget<U: Unit>(
    unit: &mut U,
    (lane, service): (i64, Option<ServiceName>),
    now: Timestamp,
) -> Result<(), StoreError> {
    let control = control_of(unit, lane).await?;
    let Some(stop_when) = control.terms.stop_when else { return Ok(()) };
    let ledger = unit.ledger_read(&[lane]).await?;
    // What is over, or stopped for good, has nothing to hold.
    if control.held.is_some() || control.cancelled.is_some() || total(&ledger).open() == 0 {
        return Ok(());
    }
    if policy::over_budget(stop_when, &control.stop_from, &stop_counts(&ledger)).is_none() {
        return Ok(());
    }
    // Asked again with the lane in hand: meanwhile somebody else may have held it, or resumed it with a new budget.
    unit.control_lock(lane).await?;
    let mut control = control_of(unit, lane).await?;
    let ledger = unit.ledger_read(&[lane]).await?;
    let over = policy::over_budget(stop_when, &control.stop_from, &stop_counts(&ledger));
    let Some((queue, cause)) = over.filter(|_| control.held.is_none() && control.cancelled.is_none()) else {
        return Ok(());
    };
    let queues = unit.queue_list().await?;
    let queue = queues.iter().find(|of| of.id == queue).map(|queue| queue.name.to_string()).unwrap_or_default();
    let cause = format!("{queue}: {cause}");
    policy::hold(&mut control, cause.clone(), now);
    control.revision += 1;
    unit.control_put(lane, &control).await?;
    let Some(operation) = unit.operation_of_lane(lane).await? else { return Ok(()) };
    tracing::warn!(tenant = %operation.tenant, tracking_id = %operation.tracking_id, cause, "operation held");
    unit.audit_append(&[system_row(&operation, service, ("hold", cause), now)]).await
}

/// Writes down that an operation is over, so that whoever follows the audit log learns of it.
pub(crate) async fn finished<U: Unit>(unit: &mut U, lane: i64, now: Timestamp) -> Result<(), StoreError> {
    let Some(operation) = unit.operation_of_lane(lane).await?.filter(|operation| operation.finished_at.is_none())
    else {
        return Ok(());
    };
    let ledger = unit.ledger_read(&[lane]).await?;
    let state = policy::state(&control_of(unit, lane).await?, &total(&ledger));
    let row = system_row(&operation, None, ("finish", format!("it is {}", state.as_str())), now);
    unit.audit_append(&[row]).await
}

/// Ends what was set to end by now; true when there may be more.
pub(crate) async fn end_due<U: Unit>(unit: &mut U, now: Timestamp) -> Result<(Woken, bool), StoreError> {
    let lanes = unit.control_ending(now, ENDING_LANES).await?;
    let mut woken = Woken::default();
    for lane in &lanes {
        unit.control_lock(*lane).await?;
        let mut control = control_of(unit, *lane).await?;
        let before = control.clone();
        let told = policy::ended(&mut control, now);
        if control == before {
            // Another process ended it while this one waited for the lane.
            continue;
        }
        if let Some(operation) = unit.operation_of_lane(*lane).await? {
            let rows: Vec<AuditRow> =
                told.into_iter().map(|(action, detail)| system_row(&operation, None, (action, detail), now)).collect();
            unit.audit_append(&rows).await?;
        }
        let ledger = unit.ledger_read(&[*lane]).await?;
        woken.extend(put(unit, (*lane, &mut control, &before), (&ledger, now)).await?);
    }
    Ok((woken, lanes.len() == ENDING_LANES))
}

/// The controls of an operation's lane.
pub(crate) async fn control_of<U: Unit>(unit: &mut U, lane: i64) -> Result<Control, StoreError> {
    let found = unit.control_find(&[lane]).await?.pop().map(|(_, control)| control);
    found.ok_or(StoreError::BrokenRow { table: "cqs_control", column: "lane", id: lane.to_string() })
}

/// Everything of an operation, labels and parents together.
pub(crate) fn total(ledger: &[(LedgerKey, Counts)]) -> Counts {
    ledger.iter().fold(Counts::default(), |sum, (_, counts)| sum + *counts)
}

/// What the failure budget looks at.
fn stop_counts(ledger: &[(LedgerKey, Counts)]) -> Vec<StopFrom> {
    let labels = ledger.iter().filter(|(key, _)| key.kind == RowKind::Label);
    labels.map(|(key, counts)| StopFrom { queue: key.queue, done: counts.done, failed: counts.failed }).collect()
}

/// `leased`: labels that are handed over and leased now. The ledger counts them with the cancelled ones that are.
fn receipt(report: &crate::model::OperationReport, leased: i64) -> Receipt {
    let mut receipt = Receipt { quiet_by: report.quiet_by, ..Receipt::default() };
    for counts in &report.queues {
        receipt.not_started += counts.labels.cancelled;
        receipt.in_flight += counts.labels.leased;
        receipt.unexpanded_parents += counts.parents.cancelled + counts.parents.leased;
        if is_last_stage(&counts.queue) {
            receipt.already_effective += counts.labels.done - counts.labels.unchanged;
        }
        receipt.handed_over += counts.labels.handed_over;
    }
    receipt.handed_over -= leased;
    receipt.not_started -= receipt.handed_over;
    receipt
}

/// Whether what is done there has reached the label.
fn is_last_stage(queue: &QueueName) -> bool {
    ServiceName::of_queue(queue) == Some(ServiceName::HardwareExporter)
}

/// What an action changed, old → new.
fn detail(before: &Control, after: &Control, state: State) -> String {
    let limits = |limits: Limits| policy::limits_text(limits);
    if before.limits != after.limits {
        return format!("{} → {}", limits(before.limits), limits(after.limits));
    }
    match after.paused.as_ref().and_then(|pause| pause.until) {
        Some(until) if before.paused != after.paused => format!("was {}; until {until}", state.as_str()),
        _ => format!("was {}", state.as_str()),
    }
}

fn audit_row(ask: &ControlAsk, (changed, detail): (bool, String), at: Timestamp) -> AuditRow {
    AuditRow {
        id: 0,
        at,
        service: ask.service,
        operator_subject: ask.by.to_string(),
        tenant: Some(ask.tenant.clone()),
        action: ask.action.as_str().to_owned(),
        tracking_id: ask.tracking_id.to_string(),
        reason: ask.reason.to_string(),
        request_digest: ask.request_digest.clone(),
        outcome: if changed { AuditOutcome::Accepted } else { AuditOutcome::Replayed },
        error_code: String::new(),
        detail,
    }
}

/// The audit row of what the system did by itself: nobody's subject, under the service that told, or that owns the
/// operation.
fn system_row(
    operation: &Operation,
    service: Option<ServiceName>,
    (action, detail): (&str, String),
    at: Timestamp,
) -> AuditRow {
    let owner = ServiceName::of_queue(&operation.queue).unwrap_or(ServiceName::OperatorGateway);
    let (tenant, tracking_id): (&TenantId, &TrackingId) = (&operation.tenant, &operation.tracking_id);
    AuditRow {
        id: 0,
        at,
        service: service.unwrap_or(owner),
        operator_subject: String::new(),
        tenant: Some(tenant.clone()),
        action: action.to_owned(),
        tracking_id: tracking_id.to_string(),
        reason: String::new(),
        request_digest: String::new(),
        outcome: AuditOutcome::Accepted,
        error_code: String::new(),
        detail: format!("by the system: {detail}"),
    }
}
