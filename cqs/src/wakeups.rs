//! Wake-ups of waiting `Dequeue` calls: in memory, and where several processes serve one database, gathered for the others.
//! A missed one costs at most the poll of the long-poll, never an item.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::QueueName;
use tokio::{sync::Notify, time::Instant};

use crate::announce::Woken;

/// A queue's bell, and when somebody who hears it looked into the queue last.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// Rung when something became ready.
    pub(crate) rung: Notify,
    looked_at: Mutex<Option<Instant>>,
}

impl Bell {
    /// Somebody looks now.
    pub(crate) fn looks(&self) {
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether somebody looked within that time: then nobody else needs to look without being woken.
    pub(crate) fn looked_within(&self, time: Duration) -> bool {
        let looked_at = *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.is_some_and(|at| at.elapsed() < time)
    }
}

/// One bell per queue of this process. Cheap to clone; clones ring the same bells.
#[derive(Debug, Clone, Default)]
pub struct Wakeups(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    bells: Mutex<HashMap<QueueName, Arc<Bell>>>,
    closed: AtomicBool,
    /// What other processes are to be told; none where this process is alone.
    others: Option<Others>,
}

#[derive(Debug, Default)]
struct Others {
    /// Each queue once, however often it was rung.
    queues: Mutex<BTreeSet<QueueName>>,
    some: Notify,
}

impl Wakeups {
    /// Bells that other processes are told of, too: somebody must take [`Wakeups::gathered`] to them.
    pub fn for_many_processes() -> Self {
        Self(Arc::new(Shared { others: Some(Others::default()), ..Shared::default() }))
    }

    /// Wakes every `Dequeue` that waits in one of these queues. Call it after the commit.
    pub fn wake(&self, woken: &Woken) {
        self.ring(woken.queues());
        if let Some(others) = &self.0.others
            && woken.queues().next().is_some()
        {
            others.queues.lock().unwrap_or_else(PoisonError::into_inner).extend(woken.queues().cloned());
            others.some.notify_one();
        }
    }

    /// Wakes those of this process only: another one said so.
    pub fn ring<'a>(&self, queues: impl Iterator<Item = &'a QueueName>) {
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in queues.filter_map(|queue| bells.get(queue)) {
            bell.rung.notify_waiters();
        }
    }

    /// As [`Wakeups::ring`], of every queue: something may have been missed.
    pub fn ring_all(&self) {
        let bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in bells.values() {
            bell.rung.notify_waiters();
        }
    }

    /// Waits until something is to be told to other processes, and takes it: each queue once. Never ends where this
    /// process is alone.
    pub async fn gathered(&self) -> BTreeSet<QueueName> {
        let Some(others) = &self.0.others else { return std::future::pending().await };
        loop {
            let queues = std::mem::take(&mut *others.queues.lock().unwrap_or_else(PoisonError::into_inner));
            if !queues.is_empty() {
                return queues;
            }
            others.some.notified().await;
        }
    }

    /// Lets every waiting `Dequeue`, and every later one, answer at once. At the start of a drain: nobody shall wait half a
    /// minute for work that is not handed out any more.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.ring_all();
    }

    /// Whether [`Wakeups::close`] was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst)
    }

    /// The bell of a queue. Queues are few (one per service), so bells are never taken away.
    pub(crate) fn bell(&self, queue: &QueueName) -> Arc<Bell> {
        let mut bells = self.0.bells.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(bells.entry(queue.clone()).or_default())
    }
}
