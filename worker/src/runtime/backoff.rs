//! Waits between tries that failed: doubling, with jitter, bounded.

use std::time::Duration;

use domain::IdSource;

use super::CallError;

/// First wait, in milliseconds: a platform that restarts is often back by then.
const FIRST_MS: u64 = 50;
/// Longest wait, in milliseconds: an outage's end is noticed within it.
const LONGEST_MS: u64 = 5_000;

/// The waits of one loop.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait: between half and all of the doubled bound, so that workers do not come back in step.
    pub(crate) fn next(&mut self, ids: &dyn IdSource) -> Duration {
        let bound = FIRST_MS.saturating_mul(1 << self.failures.min(16)).min(LONGEST_MS);
        self.failures = self.failures.saturating_add(1);
        Duration::from_millis(bound / 2 + ids.below(bound / 2 + 1))
    }

    /// Something worked.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

/// Makes a call that may be repeated, again and again while the platform is away. The lease bounds how long: whoever holds
/// one drops this when it is lost.
pub(crate) async fn persist<T, F>(ids: &dyn IdSource, what: &str, call: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match call().await {
            Err(CallError::NotNow(refusal)) => {
                tracing::warn!(%refusal, "{what} waits for the platform");
                tokio::time::sleep(backoff.next(ids)).await;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_bound_and_never_vanish() {
        let ids = domain::SeededIds::new(1);
        let mut backoff = Backoff::default();
        for failure in 0..40 {
            let bound = (FIRST_MS << failure.min(10)).min(LONGEST_MS);
            let wait = backoff.next(&ids);
            assert!(wait >= Duration::from_millis(bound / 2) && wait <= Duration::from_millis(bound), "{wait:?}");
        }
        backoff.reset();
        assert!(backoff.next(&ids) <= Duration::from_millis(FIRST_MS));
    }
}
