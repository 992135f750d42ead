//! Queues.

use domain::{QueueName, Timestamp};

use super::MemoryUnit;
use crate::{StoreError, model::Queue, unit::Queues};

impl Queues for MemoryUnit {
    async fn queue_find(&mut self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        Ok(self.work.queues.iter().find(|queue| queue.name == *name).cloned())
    }

    async fn queue_list(&mut self) -> Result<Vec<Queue>, StoreError> {
        Ok(self.work.queues.clone())
    }

    async fn queue_polled(&mut self, queue: i64, now: Timestamp) -> Result<(), StoreError> {
        if let Some(queue) = self.work.queues.iter_mut().find(|stored| stored.id == queue) {
            queue.polled_at = Some(now);
        }
        Ok(())
    }

    async fn queue_put(&mut self, queue: &Queue) -> Result<(), StoreError> {
        let next = i64::try_from(self.work.queues.len()).unwrap_or(i64::MAX) + 1;
        match self.work.queues.iter_mut().find(|stored| stored.name == queue.name) {
            Some(stored) => {
                stored.subscriptions.clone_from(&queue.subscriptions);
                stored.shapes.clone_from(&queue.shapes);
            }
            None => self.work.queues.push(Queue { id: next, ..queue.clone() }),
        }
        Ok(())
    }
}
