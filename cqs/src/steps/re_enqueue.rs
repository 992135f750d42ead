//! `ReEnqueue`: a leased row becomes its children.

use domain::{LaneKind, Timestamp, sla_clamp};

use crate::{
    StoreError,
    model::{NewLane, SplitCounts},
    policy::{
        coalesce::Arrival,
        fate::{Fate, of_unfinished_split},
        gates,
    },
    store::{SplitAsk, Splitted},
    unit::{SplitKey, Unit},
};

use super::{
    arrive::{Arrived, Origin, arrive, fresh_row},
    changes::{Changes, Place},
    lease::{live, release},
};

/// Puts a leased row's children into its queue and completes the row, or returns it at the cursor.
pub(crate) async fn re_enqueue<U: Unit>(unit: &mut U, ask: SplitAsk, now: Timestamp) -> Result<Splitted, StoreError> {
    let generation = ask.lease.generation;
    let queue = unit.queue_find(&ask.lease.queue).await?.ok_or_else(StoreError::stale_lease)?;
    let key = SplitKey { queue: queue.id, generation, id: ask.id };
    if let Some(done) = unit.split_find(key).await? {
        return Ok(Splitted {
            enqueued: done.enqueued,
            coalesced: done.coalesced,
            replayed: true,
            ..Splitted::default()
        });
    }
    let live = live(unit, &ask.lease, now).await?;
    let row = unit.lease_rows_of(generation, &[ask.id]).await?.pop().ok_or_else(StoreError::stale_lease)?;
    gates::children(&queue, &row.item, &ask.children)?;

    let place = live.place();
    let mut changes = Changes::default();
    let own = Origin { sla: row.sla, tracking_id: row.tracking_id.clone() };
    let (apart, stay): (Vec<_>, Vec<_>) =
        ask.children.into_iter().partition(|child| place.lane.kind == LaneKind::Ordinary && child.target.is_parent());
    let stay = stay.into_iter().map(|child| fresh_row(place, child, &own)).collect();
    let mut arrived = arrive(unit, place, stay, (Arrival::Fresh, &mut changes)).await?;
    if !apart.is_empty() {
        // Parents of an ordinary change would fill the ordinary lane; they get a lane of their own, chosen like an
        // operation's.
        let new =
            NewLane { tenant: place.lane.tenant.clone(), kind: LaneKind::Split, tracking_id: row.tracking_id.clone() };
        let lane = unit.lane_open(new, now).await?;
        let place = Place { lane: &lane, ..place };
        let origin = Origin { sla: ask.sla.map_or(row.sla, |sla| sla_clamp(Some(sla), now)), ..own };
        let rows = apart.into_iter().map(|child| fresh_row(place, child, &origin)).collect();
        let Arrived { enqueued, coalesced } = arrive(unit, place, rows, (Arrival::Fresh, &mut changes)).await?;
        arrived.enqueued += enqueued;
        arrived.coalesced += coalesced;
    }
    let fate = if ask.next_cursor.is_empty() { Fate::Done } else { of_unfinished_split(&row, ask.next_cursor) };
    release(unit, (place, &live.lease), vec![(row, fate)], (&mut changes, now)).await?;
    let woken = changes.write(unit, now).await?;
    let counts = SplitCounts { enqueued: arrived.enqueued, coalesced: arrived.coalesced };
    unit.split_put(key, counts, now).await?;
    Ok(Splitted { enqueued: arrived.enqueued, coalesced: arrived.coalesced, replayed: false, woken })
}
