//! Upkeep of histories: entries are forgotten after their time, in bounded rounds. Started once per platform process by the
//! composition root; several processes on one database do it beside each other.

use std::{sync::Arc, time::Duration};

use daemon::shutdown::Shutdown;
use domain::Clock;

use crate::{DtoStore, StoreError};

/// Between two looks: a minute, of times counted in days.
const INTERVAL: Duration = Duration::from_mins(1);
/// Entries forgotten by one unit of work: a few milliseconds, so writes get between.
const FORGET_ROWS: usize = 1_000;
/// How often as long as a round took nothing more is forgotten: at most a seventh of the writer is taken from others.
const REST: u32 = 6;
/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long histories are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySettings {
    /// Entries, in milliseconds.
    pub kept_ms: i64,
}

impl Default for HistorySettings {
    /// A quarter: as long as the operations that say why are kept.
    fn default() -> Self {
        Self { kept_ms: 90 * DAY_MS }
    }
}

/// Forgets entries of histories after their time.
pub struct HistoryKeeper {
    store: Arc<dyn DtoStore>,
    clock: Arc<dyn Clock>,
    settings: HistorySettings,
}

impl HistoryKeeper {
    /// Upkeep of that store.
    pub fn new(store: Arc<dyn DtoStore>, clock: Arc<dyn Clock>, settings: HistorySettings) -> Self {
        Self { store, clock, settings }
    }

    /// Works until `shutdown` asks for a drain. A failed round is logged and tried again.
    pub async fn run(self, shutdown: Shutdown) {
        // At once: a process that never runs for long forgets all the same.
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                () = shutdown.soft.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let started = tokio::time::Instant::now();
            pause = match self.round().await {
                Ok(true) => started.elapsed() * REST,
                Ok(false) => INTERVAL,
                Err(error) => {
                    tracing::error!(%error, "forgetting old history failed; tried again");
                    INTERVAL
                }
            };
        }
    }

    /// One bounded round; true when more is to be forgotten.
    async fn round(&self) -> Result<bool, StoreError> {
        let before = self.clock.now().plus_ms(-self.settings.kept_ms);
        Ok(self.store.history_prune(before, FORGET_ROWS).await? == FORGET_ROWS)
    }
}
