//! Upkeep at intervals: started once per platform process by the composition root.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use daemon::shutdown::Shutdown;
use domain::Clock;

use crate::{CqsStore, RetentionSettings, StoreError, Wakeups};

/// Between two rounds. At the busiest a queue appends some hundred deltas a second; a reading adds those of one interval. A
/// pause that ends by itself ends no later than this.
const INTERVAL: Duration = Duration::from_secs(1);
/// While others work: how often as long as a chunk took nothing more of a cancelled operation is removed, so that clearing
/// takes at most a seventh of the writer from other lanes.
const CLEAR_REST: u32 = 6;
/// Rounds between two looks at what is over for long: a minute, of times counted in days.
const ROUNDS_PER_RETENTION: u32 = 60;

/// Folds the ledger, ends pauses and limits, removes what cancelled operations left, moves failures into the retries that
/// took them over, forgets what nobody asks for any more.
pub struct Maintainer {
    store: Arc<dyn CqsStore>,
    clock: Arc<dyn Clock>,
    wakeups: Wakeups,
    retention: RetentionSettings,
    /// Units of work of its own, of which clearing knows that nobody waits for them.
    units: AtomicU64,
}

impl Maintainer {
    /// Upkeep of that store; `wakeups` are the server's.
    pub fn new(store: Arc<dyn CqsStore>, clock: Arc<dyn Clock>, wakeups: Wakeups) -> Self {
        Self { store, clock, wakeups, retention: RetentionSettings::default(), units: AtomicU64::default() }
    }

    /// Keeps what is over that long.
    #[must_use]
    pub fn keeping(self, retention: RetentionSettings) -> Self {
        Self { retention, ..self }
    }

    /// Works until `shutdown` asks for a drain. A failed round is logged and tried again: nothing depends on when it is
    /// done.
    pub async fn run(self, shutdown: Shutdown) {
        tokio::join!(self.rounds(&shutdown), self.clear(&shutdown));
    }

    async fn rounds(&self, shutdown: &Shutdown) {
        let mut round = 0_u32;
        while rest(INTERVAL, shutdown).await {
            // In the first one, too: a process that never runs for long forgets all the same.
            let retention_is_due = round.is_multiple_of(ROUNDS_PER_RETENTION);
            round = round.wrapping_add(1);
            if let Err(error) = self.round(shutdown, retention_is_due).await {
                tracing::error!(%error, "upkeep failed; tried again at the next round");
            }
        }
    }

    /// Each part in bounded steps until nothing is left of it, or the drain begins.
    async fn round(&self, shutdown: &Shutdown, retention_is_due: bool) -> Result<(), StoreError> {
        let goes_on = || !shutdown.soft.is_cancelled();
        while self.maintain().await? && goes_on() {}
        while self.fill().await? && goes_on() {}
        while retention_is_due && self.retain().await? && goes_on() {}
        Ok(())
    }

    async fn retain(&self) -> Result<bool, StoreError> {
        self.units.fetch_add(1, Ordering::Relaxed);
        self.store.retain(self.retention, self.clock.now()).await
    }

    async fn maintain(&self) -> Result<bool, StoreError> {
        self.units.fetch_add(1, Ordering::Relaxed);
        let (woken, more) = self.store.maintain(self.clock.now()).await?;
        self.wakeups.wake(&woken);
        Ok(more)
    }

    async fn fill(&self) -> Result<bool, StoreError> {
        self.units.fetch_add(1, Ordering::Relaxed);
        let filled = self.store.fill_retries(self.clock.now()).await?;
        self.wakeups.wake(&filled.woken);
        Ok(filled.more)
    }

    /// Units of work that others began in this process so far.
    fn units_of_others(&self) -> u64 {
        let own = self.units.load(Ordering::Relaxed);
        self.store.units_begun().saturating_sub(own)
    }

    /// Removes what cancelled operations left waiting, chunk by chunk: without a break while nobody else is at work, with
    /// one as soon as somebody is. A chunk is as small then as ever, so that whoever comes waits for one and no more.
    async fn clear(&self, shutdown: &Shutdown) {
        let mut pause = INTERVAL;
        let mut before = self.units_of_others();
        while rest(pause, shutdown).await {
            let started = tokio::time::Instant::now();
            self.units.fetch_add(1, Ordering::Relaxed);
            let chunk = self.store.clear(self.clock.now()).await;
            let after = self.units_of_others();
            let others = after.saturating_sub(before);
            before = after;
            pause = match chunk {
                Ok(true) => clear_rest(started.elapsed(), others),
                Ok(false) => INTERVAL,
                Err(error) => {
                    tracing::error!(%error, "clearing failed; tried again");
                    INTERVAL
                }
            };
        }
    }
}

/// How long to rest after a chunk that took `took`, where others began so many units of work since the chunk before it.
fn clear_rest(took: Duration, others: u64) -> Duration {
    if others == 0 { Duration::ZERO } else { took * CLEAR_REST }
}

/// Waits; false when the drain began.
async fn rest(pause: Duration, shutdown: &Shutdown) -> bool {
    tokio::select! {
        () = shutdown.soft.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_rests_only_where_others_work() {
        let took = Duration::from_millis(10);
        assert_eq!(clear_rest(took, 0), Duration::ZERO);
        assert_eq!(clear_rest(took, 1), Duration::from_millis(60));
    }
}
