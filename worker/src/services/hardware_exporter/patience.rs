//! How long a batch waits for its access points.
//!
//! A batch holds its store, so it must not wait for the slowest access point: it ends when its time is over, and shortly
//! after others began to wait for its end. What was not sent by then is handed back, due when its lane has come that far.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::runtime::Hand;

/// Longest work of a batch: a changed price waits no longer for the batch before it, and nothing is begun later than that
/// after its operation was paused or cancelled.
const BATCH: Duration = Duration::from_secs(2);
/// How long the access points of a batch may go on when others wait for its end: what is on its way is over by then.
const GRACE: Duration = Duration::from_millis(100);
/// Pictures that take longer are sent batch by batch: the next is made ready in the rest that such an access point gets.
const STREAMED_MAX: Duration = Duration::from_millis(250);
/// Pictures that take less than this are not waited for: they are work for the processor, not for hardware.
pub(super) const HARDWARE_MIN: Duration = Duration::from_millis(3);

/// The end of a batch, moved closer when others wait for it.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    begun: Instant,
    hand: Arc<Hand>,
}

impl Patience {
    /// Of a batch, or another round of it, that begins now.
    pub(super) fn begin(hand: &Arc<Hand>) -> Self {
        Self { begun: Instant::now(), hand: Arc::clone(hand) }
    }

    /// When the batch ends, as things are.
    pub(super) fn end(&self) -> Instant {
        let end = self.begun + BATCH;
        // Another round gets its share, too.
        self.hand.hurried().map_or(end, |since| end.min(since.max(self.begun) + GRACE))
    }

    /// An access point that takes `mean` for a picture soon has nothing left to do.
    pub(super) fn one_ends_soon(&self, mean: Duration) {
        if (HARDWARE_MIN..=STREAMED_MAX).contains(&mean) {
            self.hand.wants_more();
        }
    }

    /// An access point has nothing left to do.
    pub(super) fn one_is_done(&self) {
        self.hand.stands_idle();
    }
}
