//! Queues.

use domain::{DtoType, ParentShape, QueueName, SplitItem, StoreId, Timestamp, Urn};

/// A queue as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its short key in the tables.
    pub id: i64,
    /// The name of the service that owns it.
    pub name: QueueName,
    /// Whose writes are announced here.
    pub subscriptions: Vec<DtoType>,
    /// What it splits.
    pub shapes: Vec<ParentShape>,
    /// Whether one worker holds a store at a time.
    pub exclusive: Exclusive,
    /// When a worker of it asked for work last, give or take a few seconds.
    pub polled_at: Option<Timestamp>,
}

/// How much is to be done in a queue, parents counted like labels; see [`super::BACKLOG_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backlog {
    /// Its name.
    pub queue: QueueName,
    /// Rows that wait: deferred and backing-off ones too, and those of cancelled operations that are still to be removed.
    pub waiting: i64,
    /// Rows under a lease.
    pub leased: i64,
}

/// Whether one worker holds a store at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusive {
    /// No: any number of leases.
    No,
    /// One live lease per store.
    ByStore,
}

impl Queue {
    /// The store under whose head a row lies in this queue.
    pub fn store_of(&self, urn: &Urn) -> Option<StoreId> {
        match self.exclusive {
            Exclusive::No => None,
            Exclusive::ByStore => urn.store().cloned(),
        }
    }

    /// Whether the queue declared that it splits parents like this one.
    pub fn splits(&self, item: &SplitItem) -> bool {
        self.shapes.contains(&ParentShape { dto_type: item.dto_type, alias: item.alias })
    }
}
