//! `Complete`: outcomes of leased rows, all or none.

use std::collections::BTreeMap;

use domain::{Outcome, Refusal, Timestamp};

use crate::{
    StoreError,
    policy::fate::{of_outcome, row_jitter},
    store::{CompleteAsk, Completed},
    unit::Unit,
};

use super::{
    changes::Changes,
    lease::{live, release},
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
    let ids: Vec<i64> = outcomes.keys().copied().collect();
    let rows = unit.lease_rows_of(live.lease.generation, &ids).await?;
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
    let mut changes = Changes::default();
    let dead = release(unit, (live.place(), &live.lease), fated, (&mut changes, now)).await?;
    Ok(Completed { dead, woken: changes.write(unit, now).await? })
}
