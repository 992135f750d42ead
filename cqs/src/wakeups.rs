//! In-memory wake-ups of waiting `Dequeue` calls. A missed one costs at most the poll of the long-poll, never an item.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use domain::QueueName;
use tokio::sync::Notify;

use crate::announce::Woken;

/// One bell per queue of this process. Cheap to clone; clones ring the same bells.
#[derive(Debug, Clone, Default)]
pub struct Wakeups(Arc<Mutex<HashMap<QueueName, Arc<Notify>>>>);

impl Wakeups {
    /// Wakes every `Dequeue` that waits in one of these queues. Call it after the commit.
    pub fn wake(&self, woken: &Woken) {
        let bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in woken.queues().filter_map(|queue| bells.get(queue)) {
            bell.notify_waiters();
        }
    }

    /// The bell of a queue. Queues are few (one per service), so bells are never taken away.
    pub(crate) fn bell(&self, queue: &QueueName) -> Arc<Notify> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(queue.clone()).or_default())
    }
}
