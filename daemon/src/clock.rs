//! The real clock and the real randomness. The only place that reads them.

use std::time::{SystemTime, UNIX_EPOCH};

use domain::{Clock, IdSource, Timestamp};

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the injected clock's real implementation")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is the injected source's real implementation")]
    fn bits(&self) -> u64 {
        rand::random()
    }
}
