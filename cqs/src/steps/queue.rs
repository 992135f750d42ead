//! Queues are made and changed, and found for every other step.

use domain::{ErrorCode, QueueName, Refusal};

use crate::{StoreError, model::Queue, store::ConfigureAsk, unit::Unit};

/// Makes or changes a queue; true when it was made.
pub(crate) async fn configure_queue<U: Unit>(unit: &mut U, ask: ConfigureAsk) -> Result<bool, StoreError> {
    let found = unit.queue_find(&ask.queue).await?;
    if found.as_ref().is_some_and(|queue| queue.exclusive != ask.exclusive) {
        let refusal = Refusal::new(ErrorCode::FailedPrecondition, "is fixed once the queue exists");
        return Err(refusal.at("exclusive_by_store").into());
    }
    let queue = Queue {
        id: 0,
        name: ask.queue,
        subscriptions: ask.subscriptions,
        shapes: ask.shapes,
        exclusive: ask.exclusive,
        polled_at: None,
    };
    unit.queue_put(&queue).await?;
    Ok(found.is_none())
}

/// The queue, or the refusal that says it does not exist yet.
pub(crate) async fn existing<U: Unit>(unit: &mut U, name: &QueueName) -> Result<Queue, StoreError> {
    unit.queue_find(name).await?.ok_or_else(|| {
        Refusal::new(ErrorCode::FailedPrecondition, "the queue does not exist; create it first").at("queue_name").into()
    })
}
