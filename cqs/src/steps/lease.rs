//! Live leases: found, extended, ended.

use domain::{LeaseRef, Timestamp};

use crate::{
    StoreError,
    announce::{LeaseLane, Woken},
    model::{Lane, Lease, Queue, Row},
    policy::{
        coalesce::Arrival,
        fate::{Fate, of_outlived},
    },
    unit::{Held, Unit},
};

use super::{
    arrive::{arrive, records},
    changes::{Changes, Place},
};
use crate::model::{Counts, DeadLetter, Exclusive};

/// Leases ended by one `Dequeue`: enough to keep up with every worker dying at once, within a few poll rounds.
const SWEEP_LEASES: usize = 4;

/// A live lease with its queue and lane.
#[derive(Debug)]
pub(crate) struct Live {
    /// The queue.
    pub(crate) queue: Queue,
    /// The lane.
    pub(crate) lane: Lane,
    /// The lease.
    pub(crate) lease: Lease,
}

impl Live {
    /// Where its rows lie.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { queue: &self.queue, lane: &self.lane }
    }
}

/// The lease, if it is live; otherwise the refusal `STALE_LEASE`.
pub(crate) async fn live<U: Unit>(unit: &mut U, lease: &LeaseRef, now: Timestamp) -> Result<Live, StoreError> {
    let queue = unit.queue_find(&lease.queue).await?.ok_or_else(StoreError::stale_lease)?;
    let found = unit.lease_find(lease.generation).await?;
    let lease =
        found.filter(|found| found.queue == queue.id && found.expires_at > now).ok_or_else(StoreError::stale_lease)?;
    let lane = lane_of(unit, lease.lane).await?;
    Ok(Live { queue, lane, lease })
}

/// The lane of that id, which rows, heads or leases name.
pub(crate) async fn lane_of<U: Unit>(unit: &mut U, lane: i64) -> Result<Lane, StoreError> {
    unit.lane_find(lane).await?.ok_or(StoreError::BrokenRow { table: "cqs_lane", column: "lane", id: lane.to_string() })
}

/// The lane a live lease stands for.
pub(crate) async fn lease_check<U: Unit>(
    unit: &mut U,
    lease: &LeaseRef,
    now: Timestamp,
) -> Result<LeaseLane, StoreError> {
    let Live { lane, .. } = live(unit, lease, now).await?;
    Ok(LeaseLane { lane: lane.id, tenant: lane.tenant, kind: lane.kind, tracking_id: lane.tracking_id })
}

/// Moves the end of a live lease.
pub(crate) async fn extend_lease<U: Unit>(
    unit: &mut U,
    lease: &LeaseRef,
    (expires_at, now): (Timestamp, Timestamp),
) -> Result<(), StoreError> {
    let live = live(unit, lease, now).await?;
    unit.lease_extend(live.lease.generation, expires_at).await
}

/// Takes rows out of a lease to their fates.
pub(crate) async fn release<U: Unit>(
    unit: &mut U,
    (place, lease): (Place<'_>, &Lease),
    fated: Vec<(Row, Fate)>,
    (changes, now): (&mut Changes, Timestamp),
) -> Result<i32, StoreError> {
    let ids: Vec<i64> = fated.iter().map(|(row, _)| row.id).collect();
    let ended = unit.lease_release(lease.generation, &ids).await?;
    if ended && let (Exclusive::ByStore, Some(store)) = (place.queue.exclusive, &lease.store) {
        unit.head_hold(place.queue.id, store, Held::Free).await?;
    }
    let mut back = Vec::new();
    let mut dead = Vec::new();
    let mut handled = Vec::new();
    for (row, fate) in fated {
        changes.released(place, &row);
        let leaves = Counts { leased: -1, ..Counts::default() };
        // What comes back to a cancelled lane is cancelled, and stays handed over; `arrive` counts what waits again.
        if !(place.lane.gate.cancelled && matches!(fate, Fate::Waits(_))) {
            changes.handed_over(place, &row, -1);
        }
        match fate {
            Fate::Done => {
                changes.count(place, row.kind(), Counts { done: 1, ..leaves });
                handled.push(row);
            }
            Fate::Unchanged => {
                changes.count(place, row.kind(), Counts { done: 1, unchanged: 1, ..leaves });
                handled.push(row);
            }
            Fate::Dead { cause } => {
                let failed_handed_over = i64::from(row.handed_over);
                changes.count(place, row.kind(), Counts { failed: 1, failed_handed_over, ..leaves });
                dead.push(DeadLetter { row, cause });
            }
            // `arrive` counts its leaving, too.
            Fate::Waits(row) => back.push(*row),
        }
    }
    arrive(unit, place, back, (Arrival::Back, changes)).await?;
    if !dead.is_empty() {
        unit.dead_append(place.queue.id, &dead, now).await?;
    }
    if !handled.is_empty() && unit.undelivered_any(place.queue.id, place.lane.id).await? {
        let delivered = records(handled.iter());
        unit.undelivered_clear(place.queue.id, &delivered).await?;
    }
    Ok(i32::try_from(dead.len()).unwrap_or(i32::MAX))
}

/// Ends a lease that its holder did not.
async fn end<U: Unit>(
    unit: &mut U,
    (queue, lease, fate): (&Queue, &Lease, fn(&Row) -> Fate),
    (changes, now): (&mut Changes, Timestamp),
) -> Result<(), StoreError> {
    let lane = lane_of(unit, lease.lane).await?;
    let rows = unit.lease_rows(lease.generation).await?;
    tracing::warn!(queue = %queue.name, lease = lease.generation, worker = lease.worker_id, rows = rows.len(), "lease ended without its holder");
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let fated = rows.into_iter().map(|row| (row.clone(), fate(&row))).collect();
    release(unit, (Place { queue, lane: &lane }, lease), fated, (changes, now)).await?;
    unit.lapse_put(lease, &ids, now).await
}

/// The holder of a lease that is over shows that it lives, so its rows did not bring it down, whatever kept it from
/// extending in time: its machine, the network, this service. They are not held against: neither where the lease is not
/// ended yet, nor where it was.
pub(crate) async fn outlived<U: Unit>(unit: &mut U, lease: &LeaseRef, now: Timestamp) -> Result<Woken, StoreError> {
    let Some(queue) = unit.queue_find(&lease.queue).await? else { return Ok(Woken::default()) };
    let mut changes = Changes::default();
    let found = unit.lease_find(lease.generation).await?;
    if let Some(lapsed) = found.filter(|found| found.queue == queue.id && found.expires_at <= now) {
        end(unit, (&queue, &lapsed, of_outlived), (&mut changes, now)).await?;
        unit.lapse_take(lapsed.generation).await?;
    } else if let Some((lane, ids)) = unit.lapse_take(lease.generation).await? {
        unit.lapse_pardon(lane, &ids).await?;
    }
    changes.write(unit, now).await
}

/// Ends some leases of the queue whose time is before `before`, each row by `fate`; true when there may be more.
pub(crate) async fn sweep<U: Unit>(
    unit: &mut U,
    queue: &Queue,
    (before, fate): (Timestamp, fn(&Row) -> Fate),
    (changes, now): (&mut Changes, Timestamp),
) -> Result<bool, StoreError> {
    let lapsed = unit.lease_lapsed(queue.id, before, SWEEP_LEASES).await?;
    for lease in &lapsed {
        end(unit, (queue, lease, fate), (changes, now)).await?;
    }
    Ok(lapsed.len() == SWEEP_LEASES)
}
