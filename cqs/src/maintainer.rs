//! Upkeep at intervals: started once per platform process by the composition root.

use std::{sync::Arc, time::Duration};

use daemon::shutdown::Shutdown;
use domain::Clock;

use crate::{CqsStore, Wakeups};

/// Between two rounds. At the busiest a queue appends some hundred deltas a second; a reading adds those of one interval. A
/// pause that ends by itself ends no later than this.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often as long as a chunk took nothing more of a cancelled operation is removed: so clearing takes at most a seventh
/// of the writer from other lanes.
const CLEAR_REST: u32 = 6;

/// Folds the ledger, ends pauses and limits, removes what cancelled operations left, forgets what nobody asks for any more.
pub struct Maintainer {
    store: Arc<dyn CqsStore>,
    clock: Arc<dyn Clock>,
    wakeups: Wakeups,
}

impl Maintainer {
    /// Upkeep of that store; `wakeups` are the server's.
    pub fn new(store: Arc<dyn CqsStore>, clock: Arc<dyn Clock>, wakeups: Wakeups) -> Self {
        Self { store, clock, wakeups }
    }

    /// Works until `shutdown` asks for a drain. A failed round is logged and tried again: nothing depends on when it is
    /// done.
    pub async fn run(self, shutdown: Shutdown) {
        tokio::join!(self.rounds(&shutdown), self.clear(&shutdown));
    }

    async fn rounds(&self, shutdown: &Shutdown) {
        while rest(INTERVAL, shutdown).await {
            self.round(shutdown).await;
        }
    }

    async fn round(&self, shutdown: &Shutdown) {
        loop {
            match self.store.maintain(self.clock.now()).await {
                Ok((woken, more)) => {
                    self.wakeups.wake(&woken);
                    if !more || shutdown.soft.is_cancelled() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "upkeep failed; tried again at the next round");
                    return;
                }
            }
        }
    }

    /// Removes what cancelled operations left waiting, chunk by chunk.
    async fn clear(&self, shutdown: &Shutdown) {
        let mut pause = INTERVAL;
        while rest(pause, shutdown).await {
            let started = tokio::time::Instant::now();
            pause = match self.store.clear(self.clock.now()).await {
                Ok(true) => started.elapsed() * CLEAR_REST,
                Ok(false) => INTERVAL,
                Err(error) => {
                    tracing::error!(%error, "clearing failed; tried again");
                    INTERVAL
                }
            };
        }
    }
}

/// Waits; false when the drain began.
async fn rest(pause: Duration, shutdown: &Shutdown) -> bool {
    tokio::select! {
        () = shutdown.soft.cancelled() => false,
        () = tokio::time::sleep(pause) => true,
    }
}
