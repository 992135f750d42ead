//! Upkeep: the ledger is folded, what nobody asks for any more is forgotten, and a restart ends all leases.

use domain::Timestamp;

use crate::{
    StoreError,
    announce::Woken,
    model::{Counts, LedgerKey, Pace, RowKind},
    unit::Unit,
};

use super::{changes::Changes, control::end_due, lease::sweep};
use crate::policy::fate::of_restart;

/// Deltas folded in one round: a few milliseconds of one transaction.
const FOLD_DELTAS: usize = 4_096;
/// How long a `ReEnqueue` is remembered, in milliseconds (a day): any caller that repeats it has given up long before.
const SPLITS_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long it is remembered which rows a lapsed lease had, in milliseconds (an hour): whoever sleeps longer is gone.
const LAPSES_KEPT_MS: i64 = 60 * 60 * 1_000;
/// How long an idle split lane is kept, in milliseconds (a day), for whoever looks at its rows' log lines.
const LANES_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Between two samples of running operations, in milliseconds.
const PACE_MS: i64 = 5_000;
/// Operations sampled: more do not run at once in practice; the others have no rate.
const PACE_LANES: usize = 1_000;
/// How long samples are kept, in milliseconds: twice as long as a rate looks back.
const PACES_KEPT_MS: i64 = 120_000;
/// Rows forgotten in one round.
const PRUNE_ROWS: usize = 1_000;

/// One bounded round; true when more is to be done, and the queues in which something became claimable because a pause or
/// a limit ended.
pub(crate) async fn maintain<U: Unit>(unit: &mut U, now: Timestamp) -> Result<(Woken, bool), StoreError> {
    let (woken, more_ends) = end_due(unit, now).await?;
    let folded = unit.ledger_fold(FOLD_DELTAS).await?;
    sample(unit, now).await?;
    unit.split_prune(now.plus_ms(-SPLITS_KEPT_MS), PRUNE_ROWS).await?;
    unit.lapse_prune(now.plus_ms(-LAPSES_KEPT_MS), PRUNE_ROWS).await?;
    unit.lane_prune(now.plus_ms(-LANES_KEPT_MS), PRUNE_ROWS).await?;
    unit.head_upkeep().await?;
    Ok((woken, folded == FOLD_DELTAS || more_ends))
}

/// Notes how far running operations are, at intervals.
async fn sample<U: Unit>(unit: &mut U, now: Timestamp) -> Result<(), StoreError> {
    if unit.pace_last().await?.is_some_and(|last| now.ms_since(last) < PACE_MS) {
        return Ok(());
    }
    let lanes = unit.operation_running(PACE_LANES).await?;
    if lanes.is_empty() {
        return Ok(());
    }
    let labels = unit.ledger_read(&lanes).await?.into_iter().filter(|(key, _)| key.kind == RowKind::Label);
    let pace = |(key, counts): (LedgerKey, Counts)| Pace {
        lane: key.lane,
        queue: key.queue,
        at: now,
        gone: counts.done + counts.failed,
    };
    unit.pace_put(&labels.map(pace).collect::<Vec<_>>()).await?;
    unit.pace_prune(now.plus_ms(-PACES_KEPT_MS), PRUNE_ROWS * 10).await
}

/// Ends some leases of every queue, whatever their time, because their holders went with the process; true when there may
/// be more.
///
/// Generations go on beyond the present time in milliseconds. Leases are far rarer than one a millisecond, so a database
/// that was restored to an earlier state, or made anew, never gives a generation again that someone still holds, or that a
/// label's folder has seen.
pub(crate) async fn end_leases<U: Unit>(unit: &mut U, now: Timestamp) -> Result<(Woken, bool), StoreError> {
    unit.lease_generation_raise(now.as_ms()).await?;
    let ever = Timestamp::from_ms(i64::MAX);
    let mut woken = Woken::default();
    let mut more = false;
    for queue in unit.queue_list().await? {
        let mut changes = Changes::default();
        // Over by the end of time is every lease; what happens now is dated now.
        more |= sweep(unit, &queue, (ever, of_restart), (&mut changes, now)).await?;
        woken.extend(changes.write(unit, now).await?);
    }
    Ok((woken, more))
}
