//! Keeps a lease alive while its batch is in hand, says when it is lost, and then tells the platform that its holder lives:
//! what was lost because a machine or a network was slow is not held against the batch.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::CallError;

/// The lease is extended each time this part of it has passed: two extensions may fail before it is over.
const PART: u32 = 3;
/// How often a lost lease is told of without an answer, a part of it apart: some lengths of it, in which a platform that
/// was away comes back. Whoever was silent for longer is held for dead.
const TOLD_MAX: u32 = 12;

/// Extends one lease until dropped.
pub(crate) struct Heartbeat {
    lost: CancellationToken,
    refused: CancellationToken,
    _done: DropGuard,
}

impl Heartbeat {
    /// Starts extending a lease of `length`, taken just now, with `extend`.
    pub(crate) fn start<F>(length: Duration, extend: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), CallError>> + Send,
    {
        let (lost, refused, done) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let (told, elsewhere, dropped) = (lost.clone(), refused.clone(), done.clone());
        tokio::spawn(async move {
            let end = tokio::select! {
                biased;
                () = elsewhere.cancelled() => End::Silence,
                () = dropped.cancelled() => return,
                end = keep(length, &extend) => end,
            };
            told.cancel();
            // Asked once more, and refused, CQS knows that the holder lives; the batch is dropped meanwhile.
            if end == End::Silence {
                tell(length, extend).await;
            }
        });
        Self { lost, refused, _done: done.drop_guard() }
    }

    /// Another call was told that the lease is over.
    pub(crate) fn refused(&self) {
        self.refused.cancel();
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// An extension was refused.
    Refused,
    /// No extension was answered in time.
    Silence,
}

/// Extends until it is refused, for it is late: that shows who lives.
async fn tell<F>(length: Duration, extend: impl Fn() -> F)
where
    F: Future<Output = Result<(), CallError>>,
{
    for _ in 0..TOLD_MAX {
        match tokio::time::timeout(length, extend()).await {
            Ok(Err(CallError::Stale | CallError::Never(_))) => return,
            Ok(Ok(()) | Err(_)) | Err(_) => tokio::time::sleep(length / PART).await,
        }
    }
}

/// Returns when the lease is over: CQS said so, or its length passed without an extension that worked.
async fn keep<F>(length: Duration, extend: impl Fn() -> F) -> End
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
            Ok(Err(CallError::Stale)) => return End::Refused,
            Err(_) => return End::Silence,
            Ok(Err(error)) => {
                tracing::warn!(%error, "lease not extended");
                if Instant::now() >= ends {
                    return End::Silence;
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

    /// Whoever finds the platform again after the lease was lost asks once more, also when the batch is dropped.
    #[tokio::test(start_paused = true)]
    async fn tells_that_its_holder_lives_until_it_is_refused() {
        for elsewhere in [false, true] {
            let (calls, refused) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Notify::new()));
            let (counted, told) = (Arc::clone(&calls), Arc::clone(&refused));
            let heartbeat = Heartbeat::start(LEASE, move || {
                let call = counted.fetch_add(1, Ordering::SeqCst);
                let back = if call < 6 { Err(away()) } else { Err(CallError::Stale) };
                if call >= 6 {
                    told.notify_one();
                }
                async move { back }
            });
            if elsewhere {
                heartbeat.refused();
            }
            heartbeat.lost().await;
            drop(heartbeat);
            refused.notified().await;
            tokio::time::sleep(LEASE * 10).await;
            assert_eq!(calls.load(Ordering::SeqCst), 7, "once refused it asks no more");
        }
        // A batch that was completed has nothing to tell.
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        drop(Heartbeat::start(LEASE, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        }));
        tokio::time::sleep(LEASE * 10).await;
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn is_lost_when_the_platform_hangs() {
        let started = Instant::now();
        let heartbeat = Heartbeat::start(LEASE, std::future::pending::<Result<(), CallError>>);
        heartbeat.lost().await;
        assert_eq!(started.elapsed().as_secs(), 30);
    }
}
