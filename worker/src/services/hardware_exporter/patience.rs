//! How long a batch waits for its access points.
//!
//! A batch holds its store, so it must not wait for the slowest access point: it ends when its time is over, and shortly
//! after the first of several access points has nothing left to do. What was not sent by then is handed back, due when its
//! lane has come that far.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Longest work of a batch: a changed price waits no longer for the batch before it.
const BATCH: Duration = Duration::from_secs(3);
/// How long the others may go on when one access point has nothing left: its next labels wait for the next batch.
const GRACE: Duration = Duration::from_millis(100);

/// The end of a batch, moved closer as its access points finish.
#[derive(Debug)]
pub(super) struct Patience(Mutex<Instant>);

impl Patience {
    /// Of a batch that begins now.
    pub(super) fn begin() -> Self {
        Self(Mutex::new(Instant::now() + BATCH))
    }

    /// When the batch ends, as things are.
    pub(super) fn end(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An access point has nothing left to do.
    pub(super) fn one_is_done(&self) {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *end = (*end).min(Instant::now() + GRACE);
    }
}
