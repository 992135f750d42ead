//! `Complete`: outcomes of leased rows, all or none.

use std::collections::BTreeMap;

use domain::{Evidence, Outcome, Refusal, Timestamp};

use crate::{
    StoreError,
    model::{ByEvidence, Counts, RowKind},
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
/// matters but their number, by evidence, and that their records are delivered.
async fn drop_handled<U: Unit>(
    unit: &mut U,
    live: &Live,
    (outcomes, changes): (&mut BTreeMap<i64, Outcome>, &mut Changes),
) -> Result<(), StoreError> {
    let handled = [
        (true, Counts { done: 1, leased: -1, ..Counts::default() }),
        (false, Counts { done: 1, unchanged: 1, leased: -1, ..Counts::default() }),
    ];
    let marked = unit.undelivered_any(live.queue.id, live.lane.id).await?;
    for (changed, each) in handled {
        let those = |outcome: &Outcome| handled_as(outcome).filter(|(as_changed, _)| *as_changed == changed);
        let ids: Vec<i64> =
            outcomes.iter().filter(|(_, outcome)| those(outcome).is_some()).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            continue;
        }
        if marked {
            unit.undelivered_clear_leased(live.queue.id, live.lease.generation, &ids).await?;
        }
        let dropped = unit.lease_drop(live.lease.generation, &ids).await?;
        if usize::try_from(dropped.labels).ok().map(|labels| labels + dropped.parents.len()) != Some(ids.len()) {
            return Err(StoreError::stale_lease());
        }
        let mut confirmed_by = ByEvidence::default();
        outcomes.retain(|id, outcome| {
            let Some((_, evidence)) = those(outcome) else { return true };
            // A parent is not confirmed.
            if let Some(evidence) = evidence.filter(|_| !dropped.parents.contains(id)) {
                confirmed_by.count(evidence);
            }
            false
        });
        changes.dropped((live.place(), live.lease.store.clone()), (&dropped, each));
        changes.count(live.place(), RowKind::Label, Counts { confirmed_by, ..Counts::default() });
    }
    Ok(())
}

/// Of an outcome that ends a row well: whether something changed, and the proof. None for any other.
fn handled_as(outcome: &Outcome) -> Option<(bool, Option<Evidence>)> {
    match outcome {
        Outcome::Done => Some((true, None)),
        Outcome::Unchanged => Some((false, None)),
        Outcome::Confirmed { changed, evidence } => Some((*changed, Some(*evidence))),
        Outcome::Retry { .. } | Outcome::Defer { .. } | Outcome::Follow { .. } | Outcome::Failed { .. } => None,
    }
}
