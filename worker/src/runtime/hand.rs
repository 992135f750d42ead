//! What a service and the loop tell each other while a batch is in hand.
//!
//! A service that keeps hardware busy says when part of it soon has nothing left of the batch ([`Hand::wants_more`]), and
//! when it has nothing left ([`Hand::stands_idle`]). The loop says when others wait for the batch's end ([`Hand::hurried`]).

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use tokio::{sync::Notify, time::Instant};

/// One batch in hand.
#[derive(Debug, Default)]
pub(crate) struct Hand {
    wants_more: AtomicBool,
    stands_idle: AtomicBool,
    last: AtomicBool,
    hurried: OnceLock<Instant>,
    told: Arc<Notify>,
}

impl Hand {
    /// Of a loop that waits for `told`.
    pub(super) fn new(told: Arc<Notify>) -> Self {
        Self { told, ..Self::default() }
    }

    /// Part of what the batch keeps busy soon has nothing left of it: the next batch may be made ready.
    pub(crate) fn wants_more(&self) {
        self.tell(&self.wants_more);
    }

    /// Part of what the batch keeps busy has nothing left of it.
    pub(crate) fn stands_idle(&self) {
        self.tell(&self.stands_idle);
    }

    /// Something of the batch may outlast it, and must not be met by another under the same lease: no batch joins any more.
    pub(crate) fn is_the_last(&self) {
        self.tell(&self.last);
    }

    /// Since when others wait for the batch's end; none: nobody does.
    pub(crate) fn hurried(&self) -> Option<Instant> {
        self.hurried.get().copied()
    }

    /// Others wait for its end: what it has not begun is best given back.
    pub(super) fn hurry(&self) {
        self.hurried.get_or_init(Instant::now);
    }

    /// There is nothing more now; it may be wanted again.
    pub(super) fn wants_no_more(&self) {
        self.wants_more.store(false, Ordering::SeqCst);
    }

    pub(super) fn is_wanting_more(&self) -> bool {
        self.wants_more.load(Ordering::SeqCst)
    }

    pub(super) fn is_last(&self) -> bool {
        self.last.load(Ordering::SeqCst)
    }

    pub(super) fn is_standing_idle(&self) -> bool {
        self.stands_idle.load(Ordering::SeqCst)
    }

    fn tell(&self, what: &AtomicBool) {
        if !what.swap(true, Ordering::SeqCst) {
            self.told.notify_one();
        }
    }
}
