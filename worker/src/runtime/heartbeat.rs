//! Keeps a lease alive while its batch is in hand, and says when it is lost.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::CallError;

/// The lease is extended each time this part of it has passed: two extensions may fail before it is over.
const PART: u32 = 3;

/// Extends one lease until dropped.
pub(crate) struct Heartbeat {
    lost: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

impl Heartbeat {
    /// Starts extending a lease of `length`, taken just now, with `extend`.
    pub(crate) fn start<F>(length: Duration, extend: impl Fn() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), CallError>> + Send,
    {
        let lost = CancellationToken::new();
        let told = lost.clone();
        let task = tokio::spawn(async move {
            keep(length, extend).await;
            told.cancel();
        });
        Self { lost, _task: AbortOnDropHandle::new(task) }
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

/// Returns when the lease is over: CQS said so, or its length passed without an extension that worked.
async fn keep<F>(length: Duration, extend: impl Fn() -> F)
where
    F: Future<Output = Result<(), CallError>>,
{
    let mut ends = Instant::now() + length;
    loop {
        tokio::time::sleep_until((Instant::now() + length / PART).min(ends)).await;
        let asked = Instant::now();
        match tokio::time::timeout_at(ends, extend()).await {
            // Counted from before the call: never longer than CQS counts.
            Ok(Ok(())) => ends = asked + length,
            Ok(Err(CallError::Stale)) | Err(_) => return,
            Ok(Err(error)) => {
                tracing::warn!(%error, "lease not extended");
                if Instant::now() >= ends {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use domain::{ErrorCode, Refusal};

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn away() -> CallError {
        CallError::from(Refusal::new(ErrorCode::Unavailable, "away"))
    }

    #[tokio::test(start_paused = true)]
    async fn extends_at_a_third_and_stops_when_refused() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let started = Instant::now();
        let heartbeat = Heartbeat::start(LEASE, move || {
            let call = counted.fetch_add(1, Ordering::SeqCst);
            async move { if call < 5 { Ok(()) } else { Err(CallError::Stale) } }
        });
        heartbeat.lost().await;
        assert_eq!(calls.load(Ordering::SeqCst), 6);
        assert_eq!(started.elapsed().as_secs(), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn is_lost_when_no_extension_works_for_its_length() {
        let started = Instant::now();
        let heartbeat = Heartbeat::start(LEASE, || async { Err(away()) });
        heartbeat.lost().await;
        assert_eq!(started.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn is_lost_when_the_platform_hangs() {
        let started = Instant::now();
        let heartbeat = Heartbeat::start(LEASE, std::future::pending::<Result<(), CallError>>);
        heartbeat.lost().await;
        assert_eq!(started.elapsed().as_secs(), 30);
    }
}
