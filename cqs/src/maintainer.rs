//! Upkeep at intervals: started once per platform process by the composition root.

use std::{sync::Arc, time::Duration};

use daemon::shutdown::Shutdown;
use domain::Clock;

use crate::CqsStore;

/// Between two rounds. At the busiest a queue appends some hundred deltas a second; a reading adds those of one interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Folds the ledger and forgets what nobody asks for any more.
pub struct Maintainer {
    store: Arc<dyn CqsStore>,
    clock: Arc<dyn Clock>,
}

impl Maintainer {
    /// Upkeep of that store.
    pub fn new(store: Arc<dyn CqsStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Works until `shutdown` asks for a drain. A failed round is logged and tried again: nothing depends on when it is
    /// done.
    pub async fn run(self, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.soft.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            self.round(&shutdown).await;
        }
    }

    async fn round(&self, shutdown: &Shutdown) {
        loop {
            match self.store.maintain(self.clock.now()).await {
                Ok(true) if !shutdown.soft.is_cancelled() => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::error!(%error, "upkeep failed; tried again at the next round");
                    return;
                }
            }
        }
    }
}
