//! `Complete`: outcomes of leased rows, all or none.

use std::collections::BTreeMap;

use domain::{Outcome, Refusal, Timestamp};

use crate::{
    StoreError,
    model::Counts,
    policy::fate::{of_outcome, row_jitter},
    store::{CompleteAsk, Completed},
    unit::Unit,
};

use super::{
    changes::Changes,
    lease::{Live, live, release},
};

/// Applies outcomes to rows of a live lease.
pub(crate) async fn complete<U: Unit>(unit: &mut U, ask: CompleteAsk, now: Timestamp) -> Result<Completed, StoreError> {
    let live = live(unit, &ask.lease, now).await?;
    let mut outcomes: BTreeMap<i64, Outcome> = BTreeMap::new();
    for (index, (id, outcome)) in ask.outcomes.into_iter().enumerate() {
        if outcomes.insert(id, outcome).is_some() {
            return Err(Refusal::field(format!("outcomes[{index}].id"), "is named twice").into());
        }
    }
    let mut changes = Changes::default();
    drop_handled(unit, &live, (&mut outcomes, &mut changes)).await?;
    let ids: Vec<i64> = outcomes.keys().copied().collect();
    let rows = if ids.is_empty() { Vec::new() } else { unit.lease_rows_of(live.lease.generation, &ids).await? };
    if rows.len() != ids.len() {
        // Some were completed before, or never were of this lease: a report that is not about what is leased.
        return Err(StoreError::stale_lease());
    }
    let mut fated = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some(outcome) = outcomes.remove(&row.id) {
            let fate = of_outcome(&row, outcome, now, row_jitter(ask.jitter, row.id));
            fated.push((row, fate));
        }
    }
    let dead = release(unit, (live.place(), &live.lease), fated, (&mut changes, now)).await?;
    Ok(Completed { dead, woken: changes.write(unit, now).await? })
}

/// Takes the rows that are done or unchanged out of the lease by their ids alone, and out of `outcomes`: nothing of them
/// matters but their number, and that their records are delivered.
async fn drop_handled<U: Unit>(
    unit: &mut U,
    live: &Live,
    (outcomes, changes): (&mut BTreeMap<i64, Outcome>, &mut Changes),
) -> Result<(), StoreError> {
    let handled = [
        (Outcome::Done, Counts { done: 1, leased: -1, ..Counts::default() }),
        (Outcome::Unchanged, Counts { done: 1, unchanged: 1, leased: -1, ..Counts::default() }),
    ];
    let marked = unit.undelivered_any(live.queue.id, live.lane.id).await?;
    for (outcome, each) in handled {
        let ids: Vec<i64> = outcomes.iter().filter(|(_, reported)| **reported == outcome).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            continue;
        }
        if marked {
            unit.undelivered_clear_leased(live.queue.id, live.lease.generation, &ids).await?;
        }
        let dropped = unit.lease_drop(live.lease.generation, &ids).await?;
        if usize::try_from(dropped.labels + dropped.parents).ok() != Some(ids.len()) {
            return Err(StoreError::stale_lease());
        }
        outcomes.retain(|_, reported| *reported != outcome);
        changes.dropped((live.place(), live.lease.store.clone()), (dropped, each));
    }
    Ok(())
}
