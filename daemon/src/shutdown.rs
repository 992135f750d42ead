//! Shutdown in two steps: the soft token asks for a drain, the hard token ends it.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a drain may take before it is cut: leased items finish well within, the rest returns by its lease.
const DRAIN: Duration = Duration::from_secs(20);

/// Handed to everything that runs until it is told to stop. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Take no new work; finish what is in hand.
    pub soft: CancellationToken,
    /// Stop now.
    pub hard: CancellationToken,
    /// What must end before the process may.
    pub tasks: TaskTracker,
}

impl Shutdown {
    /// Waits for SIGTERM or SIGINT (or `soft` being cancelled by someone else), then drains; a second signal or the
    /// time limit cuts the drain.
    pub async fn run(&self) -> std::io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = self.soft.cancelled() => {}
        }
        tracing::info!("stopping: finishing what is in hand");
        self.soft.cancel();
        self.tasks.close();
        tokio::select! {
            () = self.tasks.wait() => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = tokio::time::sleep(DRAIN) => tracing::warn!("drain took too long; leases will return the rest"),
        }
        self.hard.cancel();
        Ok(())
    }

    /// Does `work`, unless SIGTERM or SIGINT comes first; none then. For what goes before there is anything to drain.
    pub async fn unless_told<T>(work: impl Future<Output = T>) -> std::io::Result<Option<T>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            done = work => Ok(Some(done)),
            _ = terminate.recv() => Ok(None),
            _ = interrupt.recv() => Ok(None),
        }
    }

    /// Asks for a drain and waits for it; for tests and for errors that end a process.
    pub async fn stop(&self) {
        self.soft.cancel();
        self.tasks.close();
        if tokio::time::timeout(DRAIN, self.tasks.wait()).await.is_err() {
            self.hard.cancel();
        }
    }
}
