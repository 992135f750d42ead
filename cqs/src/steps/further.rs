//! Further rows for a lease that lives and holds a store: its holder need not let the store go to go on with it, so the
//! hardware there does not stand idle in between.
//!
//! Not at the cost of others: as soon as another lane's rows wait for the store, or ordinary changes wait for a worker and this
//! is bulk work, or a row must be leased by itself, or the lane is stopped, nothing joins, and the holder is told to give way.
//! A lane with limits is leased portion by portion.

use domain::{LaneKind, Refusal, Timestamp};

use crate::{
    StoreError,
    model::{HeadKey, Lane, Limits, Row, RowKind},
    policy::batch::batch,
    store::{Further, FurtherAsk},
    unit::{ReadyRange, Unit},
};

use super::{
    changes::Changes,
    dequeue::promote,
    lease::{Live, live},
};

/// What may join a lease now.
enum Joins {
    /// These rows; maybe none.
    Rows(Vec<Row>),
    /// Nothing: the store is wanted otherwise, or the lane was stopped.
    GiveWay,
}

/// Leases further rows to a live lease.
pub(crate) async fn further<U: Unit>(unit: &mut U, ask: FurtherAsk, now: Timestamp) -> Result<Further, StoreError> {
    let live = live(unit, &ask.lease, now).await?;
    let mut changes = Changes::default();
    promote(unit, &live.queue, (&mut changes, now)).await?;
    // Written before it is looked: heads are.
    let mut woken = changes.write(unit, now).await?;
    let (rows, give_way) = match joining(unit, &live, ask.max_items).await? {
        Joins::Rows(rows) => (rows, false),
        Joins::GiveWay => (Vec::new(), true),
    };
    if !rows.is_empty() {
        unit.lease_add(&live.lease, &rows).await?;
        let mut changes = Changes::default();
        for row in &rows {
            changes.claimed(live.place(), row);
        }
        woken.extend(changes.write(unit, now).await?);
    }
    let rows = rows.iter().map(Row::notification).collect();
    Ok(Further { lease: live.lease, rows, give_way, woken })
}

async fn joining<U: Unit>(unit: &mut U, live: &Live, limit: usize) -> Result<Joins, StoreError> {
    let Some(store) = &live.lease.store else {
        return Err(Refusal::field("lease_generation", "holds no store").into());
    };
    if is_stopped(unit, &live.lane).await? || unit.head_elsewhere(live.queue.id, store, live.lane.id).await? {
        return Ok(Joins::GiveWay);
    }
    // With workers enough, what is claimable is claimed at once; what is still there finds them all taken.
    if live.lane.kind != LaneKind::Ordinary && unit.head_first(live.queue.id, LaneKind::Ordinary).await?.is_some() {
        return Ok(Joins::GiveWay);
    }
    if live.lane.gate.limits != Limits::default() {
        return Ok(Joins::Rows(Vec::new()));
    }
    let key = HeadKey { queue: live.queue.id, lane: live.lane.id, store: Some(store.clone()) };
    let Some(head) = unit.head_held(&key).await? else { return Ok(Joins::Rows(Vec::new())) };
    let mut parent = None;
    if head.parent_sla.is_some() {
        parent = unit.row_ready(ReadyRange { head: &key, kind: RowKind::Parent, limit: 1 }).await?.pop();
    }
    let mut labels = Vec::new();
    if head.label_sla.is_some() {
        labels = unit.row_ready(ReadyRange { head: &key, kind: RowKind::Label, limit }).await?;
    }
    let rows = batch(labels, parent);
    let by_itself = |row: &Row| row.kind() == RowKind::Parent || !row.company.shares();
    Ok(if rows.iter().any(by_itself) { Joins::GiveWay } else { Joins::Rows(rows) })
}

async fn is_stopped<U: Unit>(unit: &mut U, lane: &Lane) -> Result<bool, StoreError> {
    Ok(lane.gate.closed || (lane.kind == LaneKind::Operation && unit.brake_find().await?.is_some()))
}
