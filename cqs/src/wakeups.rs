//! In-memory wake-ups of waiting `Dequeue` calls. A missed one costs at most the poll of the long-poll, never an item.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use domain::QueueName;
use tokio::sync::Notify;

use crate::announce::Woken;

/// One bell per queue of this process. Cheap to clone; clones ring the same bells.
#[derive(Debug, Clone, Default)]
pub struct Wakeups(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    bells: Mutex<HashMap<QueueName, Arc<Notify>>>,
    closed: AtomicBool,
}

impl Wakeups {
    /// Wakes every `Dequeue` that waits in one of these queues. Call it after the commit.
    pub fn wake(&self, woken: &Woken) {
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in woken.queues().filter_map(|queue| bells.get(queue)) {
            bell.notify_waiters();
        }
    }

    /// Lets every waiting `Dequeue`, and every later one, answer at once. At the start of a drain: nobody shall wait half a
    /// minute for work that is not handed out any more.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in bells.values() {
            bell.notify_waiters();
        }
    }

    /// Whether [`Wakeups::close`] was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst)
    }

    /// The bell of a queue. Queues are few (one per service), so bells are never taken away.
    pub(crate) fn bell(&self, queue: &QueueName) -> Arc<Notify> {
        let mut bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(queue.clone()).or_default())
    }
}
