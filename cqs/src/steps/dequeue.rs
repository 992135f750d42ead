//! `Dequeue`: sweep, promote, choose a lane, lease its next rows.

use std::sync::PoisonError;

use domain::{LaneKind, Timestamp};

use crate::{
    StoreError,
    announce::Woken,
    model::{Exclusive, Head, HeadKey, LaneClass, Lease, Queue, Row, RowKind},
    policy::{batch::batch, choice::Answer, control, fate::of_lapse},
    store::{DequeueAsk, Dequeued},
    unit::{Held, ReadyRange, Unit},
};

use super::{
    changes::{Changes, Place},
    lease::{lane_of, sweep},
    queue::existing,
};

/// Deferred and backing-off rows made ready by one `Dequeue`: more than it can lease, so that they never fall behind.
const PROMOTE_ROWS: usize = 4_096;

/// How exactly it is noted when a worker asked last, in milliseconds.
const POLLED_MS: i64 = 5_000;

/// One look into a queue.
pub(crate) async fn dequeue<U: Unit>(unit: &mut U, ask: &DequeueAsk, now: Timestamp) -> Result<Dequeued, StoreError> {
    let queue = existing(unit, &ask.queue).await?;
    if queue.polled_at.is_none_or(|at| now.ms_since(at) >= POLLED_MS) {
        unit.queue_polled(queue.id, now).await?;
    }
    let mut changes = Changes::default();
    sweep(unit, &queue, (now, of_lapse), (&mut changes, now)).await?;
    promote(unit, &queue, (&mut changes, now)).await?;
    unit.place_open(queue.id, now).await?;
    // Written before the choice, which reads heads only.
    let mut woken = changes.write(unit, now).await?;

    let Some((head, answer)) = choose(unit, &queue, ask).await? else {
        return Ok(Dequeued { lease: None, look_again_at: look_again_at(unit, &queue).await?, woken });
    };
    let (lease, rows, claimed) = claim(unit, (&queue, &head), (ask, now)).await?;
    woken.extend(claimed);
    ask.tally.lock().unwrap_or_else(PoisonError::into_inner).note(answer);
    let notifications = rows.iter().map(Row::notification).collect();
    Ok(Dequeued { lease: Some((lease, notifications)), look_again_at: None, woken })
}

/// Makes due rows ready, some.
pub(super) async fn promote<U: Unit>(
    unit: &mut U,
    queue: &Queue,
    (changes, now): (&mut Changes, Timestamp),
) -> Result<(), StoreError> {
    let mut rows = unit.row_due(queue.id, now, PROMOTE_ROWS).await?;
    rows.sort_by_key(|row| row.lane);
    for of_lane in rows.chunk_by_mut(|a, b| a.lane == b.lane) {
        let Some(first) = of_lane.first() else { continue };
        let lane = lane_of(unit, first.lane).await?;
        let place = Place { queue, lane: &lane };
        for row in of_lane.iter_mut() {
            changes.waited(place, row);
            row.due_at = None;
            changes.waits(place, row);
        }
        unit.row_update(queue.id, of_lane).await?;
    }
    Ok(())
}

/// The head to serve, and the answer to note. While the brake is on, operations' lanes are not looked at.
async fn choose<U: Unit>(unit: &mut U, queue: &Queue, ask: &DequeueAsk) -> Result<Option<(Head, Answer)>, StoreError> {
    let ordinary = unit.head_first(queue.id, LaneKind::Ordinary).await?;
    let mut bulk: Option<Timestamp> = None;
    let mut bulk_kinds = Vec::with_capacity(2);
    let braked = unit.brake_find().await?.is_some();
    for kind in [LaneKind::Split, LaneKind::Operation] {
        if kind == LaneKind::Operation && braked {
            continue;
        }
        if let Some(head) = unit.head_first(queue.id, kind).await? {
            bulk = Some(bulk.map_or(head.claim_sla, |sla| sla.min(head.claim_sla)));
            bulk_kinds.push(kind);
        }
    }
    let contended = ordinary.is_some() && bulk.is_some();
    let (class, after) = {
        let tally = ask.tally.lock().unwrap_or_else(PoisonError::into_inner);
        (tally.choose(ordinary.as_ref().map(|head| head.claim_sla), bulk), tally.last_bulk_lane())
    };
    let head = match class {
        None => None,
        Some(LaneClass::Ordinary) => ordinary,
        Some(LaneClass::Bulk) => match in_turn(unit, (queue, &bulk_kinds), after).await? {
            Some(next) => Some(next),
            None => in_turn(unit, (queue, &bulk_kinds), 0).await?,
        },
    };
    Ok(class.zip(head).map(|(class, head)| {
        let answer = Answer { class, lane: head.lane, contended };
        (head, answer)
    }))
}

/// The first lane after `after` of any of these kinds, by its earliest head.
async fn in_turn<U: Unit>(
    unit: &mut U,
    (queue, kinds): (&Queue, &[LaneKind]),
    after: i64,
) -> Result<Option<Head>, StoreError> {
    let mut next: Option<Head> = None;
    for kind in kinds {
        let found = unit.head_in_turn(queue.id, *kind, after).await?;
        next = match (next, found) {
            (Some(one), Some(other)) if one.lane <= other.lane => Some(one),
            (one, other) => other.or(one),
        };
    }
    Ok(next)
}

async fn claim<U: Unit>(
    unit: &mut U,
    (queue, head): (&Queue, &Head),
    (ask, now): (&DequeueAsk, Timestamp),
) -> Result<(Lease, Vec<Row>, Woken), StoreError> {
    let lane = lane_of(unit, head.lane).await?;
    let place = Place { queue, lane: &lane };
    let key = HeadKey { queue: queue.id, lane: lane.id, store: head.store.clone() };
    let mut parent = None;
    if head.parent_sla.is_some() {
        let range = ReadyRange { head: &key, kind: RowKind::Parent, limit: 1 };
        parent = unit.row_ready(range).await?.pop();
    }
    let room = control::room(lane.gate.limits, head.leased_labels);
    let limit = room.and_then(|room| usize::try_from(room).ok()).map_or(ask.max_items, |room| room.min(ask.max_items));
    let mut labels = Vec::new();
    if head.label_sla.is_some() {
        let range = ReadyRange { head: &key, kind: RowKind::Label, limit };
        labels = unit.row_ready(range).await?;
    }
    let rows = batch(labels, parent);
    if rows.is_empty() {
        // A head that promises what its rows do not hold would be chosen for ever.
        return Err(StoreError::BrokenRow { table: "cqs_head", column: "claim_sla", id: lane.id.to_string() });
    }
    let mut lease = Lease {
        generation: 0,
        queue: queue.id,
        lane: lane.id,
        store: head.store.clone(),
        owner: ask.owner,
        worker_id: ask.worker_id.clone(),
        expires_at: now.plus_ms(ask.lease_ms),
    };
    lease.generation = unit.lease_take(&lease, &rows).await?;
    if let (Exclusive::ByStore, Some(store)) = (queue.exclusive, &lease.store) {
        unit.head_hold(queue.id, store, Held::Held).await?;
    }
    let mut changes = Changes::default();
    for row in &rows {
        changes.claimed(place, row);
    }
    let woken = changes.write(unit, now).await?;
    let labels = rows.iter().filter(|row| row.kind() == RowKind::Label).count();
    if let (Some(rate), 1..) = (lane.gate.limits.throttle_per_s, labels) {
        let closed_ms = control::closed_ms(i64::try_from(labels).unwrap_or(i64::MAX), rate);
        unit.place_close(queue.id, lane.id, now.plus_ms(closed_ms)).await?;
    }
    Ok((lease, rows, woken))
}

async fn look_again_at<U: Unit>(unit: &mut U, queue: &Queue) -> Result<Option<Timestamp>, StoreError> {
    let due = unit.row_next_due(queue.id).await?;
    let lapse = unit.lease_next_lapse(queue.id).await?;
    let opens = unit.place_next_open(queue.id).await?;
    Ok([due, lapse, opens].into_iter().flatten().min())
}
