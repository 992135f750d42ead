//! `RetryFailures`: a child operation is opened, and failures are moved into its lane in bounded rounds.
//!
//! Invariants
//! - A failure is taken over by one retry at a time; it stays counted as failed where it failed, and is enqueued where it
//!   goes. What a cancelled retry did not come to is open again where it failed.
//! - A retry is not finished while a rule that fills it is not.

use std::collections::BTreeMap;

use domain::{ErrorCode, LaneKind, Refusal, SplitItem, Timestamp, TrackingId, limits, sla_clamp};
use sha2::{Digest as _, Sha256};

use crate::{
    StoreError,
    announce::Woken,
    failure_store::{Filled, Retried, RetryAsk},
    model::{AuditOutcome, AuditRow, Control, DeadRange, DeadRow, NewLane, Operation, Queue, RetryRule, Row, RowKind},
    policy::{coalesce::Arrival, gates},
    unit::Unit,
};

use super::{
    arrive::{Origin, arrive, fresh_row},
    changes::{Changes, Place},
    failures::wanted,
    lease::lane_of,
};

/// The action's name in the audit log.
pub(crate) const ACTION: &str = "RetryFailures";
/// Failures moved by one unit of work for one rule: a few milliseconds, so urgent changes get between.
const MOVE_ROWS: usize = 1_000;
/// Generations of retries that a refusal looks through, and retries of each: it helps, and is no search.
const GENERATIONS_MAX: usize = 4;
/// As above.
const RETRIES_LOOKED_AT: usize = 10;
/// Rules carried on by one unit of work.
const RULES: usize = 4;

/// The refusal of an operation that does not exist.
pub(crate) fn no_such_operation() -> Refusal {
    Refusal::new(ErrorCode::NotFound, "no such operation")
}

/// Opens a retry, or answers again what it answered to the same request.
pub(crate) async fn retry_failures<U: Unit>(
    unit: &mut U,
    ask: RetryAsk,
    now: Timestamp,
) -> Result<Retried, StoreError> {
    let parent = unit.operation_find(&ask.tenant, &ask.parent).await?.ok_or_else(no_such_operation)?;
    let queues = wanted(unit.queue_list().await?, ask.queue.as_ref())?;
    let mut operation = operation_asked(&ask, &parent, now);
    if let Some(accepted) = unit.operation_find(&ask.tenant, &ask.tracking_id).await? {
        return replay(unit, &ask, (accepted, operation)).await;
    }
    let mut rules = rules(unit, &ask, (&parent, &queues)).await?;
    let items: i64 = rules.iter().map(|(_, open)| open).sum();
    let new =
        NewLane { tenant: ask.tenant.clone(), kind: LaneKind::Operation, tracking_id: Some(ask.tracking_id.clone()) };
    let lane = unit.lane_open(new, now).await?;
    unit.control_put(lane.id, &Control::default()).await?;
    for (rule, _) in &mut rules {
        rule.lane = lane.id;
    }
    operation.lane = lane.id;
    operation.items_enqueued = items;
    if !unit.operation_insert(&operation).await? {
        // Only where two processes raced for the name; the other one's answer comes with the repeated call.
        return Err(Refusal::new(ErrorCode::Unavailable, "the same tracking id is being accepted; repeat").into());
    }
    let rules: Vec<RetryRule> = rules.into_iter().map(|(rule, _)| rule).collect();
    unit.retry_put(&rules).await?;
    // Moved at once as far as one round reaches: most retries are whole then.
    let mut woken = Woken::default();
    for rule in rules {
        woken.extend(fill(unit, &queues, rule, now).await?.woken);
    }
    let detail = format!("{items} failures of {} taken over", ask.parent);
    unit.audit_append(&[audit_row(&ask, (AuditOutcome::Accepted, detail), now)]).await?;
    Ok(Retried { items, replayed: false, accepted_at: now, sla: operation.sla, woken })
}

/// What to move, one rule per queue with something to move, and how much that is.
async fn rules<U: Unit>(
    unit: &mut U,
    ask: &RetryAsk,
    (parent, queues): (&Operation, &[Queue]),
) -> Result<Vec<(RetryRule, i64)>, StoreError> {
    let overlaps = |rule: &RetryRule| {
        !rule.done
            && rule.parent_lane == parent.lane
            && queues.iter().any(|queue| queue.id == rule.queue)
            && (ask.cause.is_none() || rule.cause.is_none() || ask.cause == rule.cause)
    };
    if let Some(other) = unit.retry_of(&[parent.lane]).await?.iter().find(|rule| overlaps(rule)) {
        let message = format!("retry {} is still taking these failures over; follow that one", other.tracking_id);
        return Err(Refusal::new(ErrorCode::FailedPrecondition, message).at("tracking_id").into());
    }
    let up_to = unit.dead_last().await?;
    let mut rules = Vec::new();
    for queue in queues {
        let open = unit.dead_open(parent.lane, queue.id, ask.cause.as_deref()).await?;
        if open > 0 {
            let rule = RetryRule {
                lane: 0,
                queue: queue.id,
                parent_lane: parent.lane,
                tracking_id: ask.tracking_id.clone(),
                parent_tracking_id: parent.tracking_id.clone(),
                cause: ask.cause.clone(),
                up_to,
                position: 0,
                labels: 0,
                parents: 0,
                handed_over: 0,
                labels_given_back: 0,
                parents_given_back: 0,
                done: false,
            };
            rules.push((rule, open));
        }
    }
    if rules.is_empty() {
        let message = match failed_again(unit, ask, (parent, queues)).await? {
            Some(retry) => {
                format!("what failed there was retried already; what failed again is of retry {retry}: retry that one")
            }
            None => "nothing failed there that was not retried already".to_owned(),
        };
        return Err(Refusal::new(ErrorCode::FailedPrecondition, message).at("tracking_id").into());
    }
    Ok(rules)
}

/// The newest retry, of the nearest generation, in which something failed that nobody took over.
async fn failed_again<U: Unit>(
    unit: &mut U,
    ask: &RetryAsk,
    (parent, queues): (&Operation, &[Queue]),
) -> Result<Option<TrackingId>, StoreError> {
    let mut lanes = vec![parent.lane];
    for _ in 0..GENERATIONS_MAX {
        let rules = unit.retry_of(&lanes).await?;
        let below = rules.into_iter().filter(|rule| lanes.contains(&rule.parent_lane));
        let below: BTreeMap<i64, TrackingId> = below.map(|rule| (rule.lane, rule.tracking_id)).collect();
        let newest: Vec<(i64, TrackingId)> = below.into_iter().rev().take(RETRIES_LOOKED_AT).collect();
        for (lane, tracking_id) in &newest {
            for queue in queues {
                if unit.dead_open(*lane, queue.id, ask.cause.as_deref()).await? > 0 {
                    return Ok(Some(tracking_id.clone()));
                }
            }
        }
        lanes = newest.into_iter().map(|(lane, _)| lane).collect();
        if lanes.is_empty() {
            break;
        }
    }
    Ok(None)
}

async fn replay<U: Unit>(
    unit: &mut U,
    ask: &RetryAsk,
    (accepted, asked): (Operation, Operation),
) -> Result<Retried, StoreError> {
    let rules = unit.retry_of(&[accepted.lane]).await?;
    let own: Vec<&RetryRule> = rules.iter().filter(|rule| rule.lane == accepted.lane).collect();
    let of_another = own.first().is_none_or(|rule| rule.parent_tracking_id != ask.parent);
    let difference = match gates::difference(&accepted, &asked) {
        Some("items") if of_another => Some("tracking_id"),
        Some("items") if own.iter().any(|rule| rule.cause != ask.cause) => Some("cause"),
        Some("items") => Some("queue_name"),
        other => other,
    };
    if let Some(field) = difference {
        let message = "the tracking id names another request: this differs";
        return Err(Refusal::new(ErrorCode::AlreadyExists, message).at(field).into());
    }
    let detail = format!("accepted at {} ms", accepted.accepted_at.as_ms());
    unit.audit_append(&[audit_row(ask, (AuditOutcome::Replayed, detail), asked.accepted_at)]).await?;
    Ok(Retried {
        items: accepted.items_enqueued,
        replayed: true,
        accepted_at: accepted.accepted_at,
        sla: accepted.sla,
        woken: Woken::default(),
    })
}

/// The operation that the request would open now.
fn operation_asked(ask: &RetryAsk, parent: &Operation, now: Timestamp) -> Operation {
    Operation {
        id: 0,
        tenant: ask.tenant.clone(),
        tracking_id: ask.tracking_id.clone(),
        lane: 0,
        queue: parent.queue.clone(),
        trigger: parent.trigger.clone(),
        scope: parent.scope.clone(),
        reason: ask.reason.clone(),
        operator_subject: ask.operator_subject.clone(),
        accepted_at: now,
        sla: sla_clamp(Some(ask.sla.unwrap_or(parent.sla)), now),
        sla_chosen: ask.sla,
        items_digest: digest(ask),
        items_enqueued: 0,
        finished_at: None,
    }
}

/// Stands where a `SelfEnqueue` has the digest of its items: what is retried.
fn digest(ask: &RetryAsk) -> String {
    let queue = ask.queue.as_ref().map(domain::QueueName::as_str).unwrap_or_default();
    let cause = ask.cause.as_deref().unwrap_or_default();
    // The first three hold no line break.
    domain::hex(Sha256::digest(format!("retry\n{}\n{queue}\n{cause}", ask.parent)))
}

fn audit_row(ask: &RetryAsk, (outcome, detail): (AuditOutcome, String), at: Timestamp) -> AuditRow {
    AuditRow {
        id: 0,
        at,
        service: ask.service,
        operator_subject: ask.operator_subject.as_ref().map(ToString::to_string).unwrap_or_default(),
        tenant: Some(ask.tenant.clone()),
        action: ACTION.to_owned(),
        tracking_id: ask.tracking_id.to_string(),
        reason: ask.reason.to_string(),
        request_digest: ask.request_digest.clone(),
        outcome,
        error_code: String::new(),
        detail,
    }
}

/// A cancelled retry takes nothing over any more: what its rules have not moved stays open where it failed.
pub(crate) async fn stop<U: Unit>(unit: &mut U, lane: i64) -> Result<(), StoreError> {
    let open = |rule: &RetryRule| rule.lane == lane && !rule.done;
    let rules: Vec<RetryRule> = unit.retry_of(&[lane]).await?.into_iter().filter(open).collect();
    if rules.is_empty() {
        return Ok(());
    }
    unit.retry_put(&rules.into_iter().map(|rule| RetryRule { done: true, ..rule }).collect::<Vec<_>>()).await
}

/// Rows of a cancelled lane are cancelled before anybody came to them: what of them a retry had taken over is open again
/// where it failed.
pub(crate) async fn give_back<U: Unit>(unit: &mut U, place: Place<'_>, rows: &[Row]) -> Result<(), StoreError> {
    let fills = |rule: &RetryRule| rule.lane == place.lane.id && rule.queue == place.queue.id;
    if rows.is_empty() || !unit.retry_of(&[place.lane.id]).await?.iter().any(fills) {
        return Ok(());
    }
    let items: Vec<&SplitItem> = rows.iter().map(|row| &row.item).collect();
    unit.dead_given_back(place.lane.id, place.queue.id, &items).await
}

/// Carries on some unfinished rules.
pub(crate) async fn fill_retries<U: Unit>(unit: &mut U, now: Timestamp) -> Result<Filled, StoreError> {
    let queues = unit.queue_list().await?;
    let mut filled = Filled::default();
    for rule in unit.retry_pending(RULES).await? {
        let one = fill(unit, &queues, rule, now).await?;
        filled.more |= one.more;
        filled.woken.extend(one.woken);
    }
    Ok(filled)
}

/// Moves the next failures of a rule, as far as the lane has room: what was failed by the million does not come to wait by
/// the million.
async fn fill<U: Unit>(
    unit: &mut U,
    queues: &[Queue],
    mut rule: RetryRule,
    now: Timestamp,
) -> Result<Filled, StoreError> {
    let Some(queue) = queues.iter().find(|queue| queue.id == rule.queue) else { return Ok(Filled::default()) };
    let lane = lane_of(unit, rule.lane).await?;
    let place = Place { queue, lane: &lane };
    if lane.gate.cancelled {
        // What was not taken over stays where it failed.
        rule.done = true;
        unit.retry_put(std::slice::from_ref(&rule)).await?;
        return Ok(Filled::default());
    }
    let limit = room(unit, place).await?.min(MOVE_ROWS);
    if limit == 0 {
        return Ok(Filled::default());
    }
    let range = DeadRange {
        lane: rule.parent_lane,
        queue: queue.id,
        cause: rule.cause.clone(),
        after: rule.position,
        up_to: rule.up_to,
        limit,
    };
    let page = unit.dead_page(&range).await?;
    rule.done = page.len() < limit;
    rule.position = page.last().map_or(rule.position, |dead| dead.position);
    let open: Vec<DeadRow> = page.into_iter().filter(|dead| dead.retried_by.is_none()).collect();
    let parents = open.iter().filter(|dead| dead.row.kind() == RowKind::Parent).count();
    rule.parents += i64::try_from(parents).unwrap_or_default();
    rule.labels += i64::try_from(open.len() - parents).unwrap_or_default();
    rule.handed_over += i64::try_from(open.iter().filter(|dead| dead.row.handed_over).count()).unwrap_or_default();

    let mut changes = Changes::default();
    let positions: Vec<i64> = open.iter().map(|dead| dead.position).collect();
    let origin = Origin { sla: sla(unit, &lane, now).await?, tracking_id: None };
    let again = |dead: DeadRow| Row { cursor: dead.row.cursor, ..fresh_row(place, dead.row.item, &origin) };
    let rows: Vec<Row> = open.into_iter().map(again).collect();
    arrive(unit, place, rows, (Arrival::Fresh, &mut changes)).await?;
    if !positions.is_empty() {
        unit.dead_retried(&positions, lane.id).await?;
    }
    // Before the changes, which look whether the retry is finished.
    unit.retry_put(std::slice::from_ref(&rule)).await?;
    let woken = changes.write(unit, now).await?;
    if rule.done && positions.is_empty() && unit.lane_is_idle(lane.id).await? {
        // Nothing came, so nothing that ends will look whether this was the last.
        unit.operation_settle(lane.id, Some(now)).await?;
    }
    Ok(Filled { more: !rule.done, woken })
}

/// How many rows more may wait in the lane.
async fn room<U: Unit>(unit: &mut U, place: Place<'_>) -> Result<usize, StoreError> {
    let ledger = unit.ledger_read(&[place.lane.id]).await?;
    let waiting: i64 =
        ledger.iter().filter(|(key, _)| key.queue == place.queue.id).map(|(_, counts)| counts.waiting).sum();
    Ok(usize::try_from(limits::LANE_READY_MAX - waiting).unwrap_or_default())
}

/// The SLA of the operation whose lane it is.
async fn sla<U: Unit>(unit: &mut U, lane: &crate::model::Lane, now: Timestamp) -> Result<Timestamp, StoreError> {
    let Some(tracking_id) = &lane.tracking_id else { return Ok(now) };
    Ok(unit.operation_find(&lane.tenant, tracking_id).await?.map_or(now, |operation| operation.sla))
}
