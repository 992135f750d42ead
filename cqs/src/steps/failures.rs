//! What failed, item by item, and where a record is.

use domain::{QueueName, Refusal, Urn};

use crate::{
    StoreError,
    failure_store::{FailureAsk, FailurePage},
    model::{DeadRange, Failure, Queue, RecordFate},
    unit::Unit,
};

use super::{operation::in_flow, retry::no_such_operation};

/// Failures of an operation, by queue in the order of the flow, then by age.
pub(crate) async fn failures<U: Unit>(unit: &mut U, ask: &FailureAsk) -> Result<FailurePage, StoreError> {
    let operation = unit.operation_find(&ask.tenant, &ask.tracking_id).await?.ok_or_else(no_such_operation)?;
    let queues = wanted(unit.queue_list().await?, ask.queue.as_ref())?;
    // A place in the list: the queue, then the position in it.
    let start = match &ask.after {
        None => 0,
        Some((queue, _)) => queues.iter().position(|found| found.id == *queue).unwrap_or(queues.len()),
    };
    let mut failures: Vec<(i64, Failure, Option<i64>)> = Vec::new();
    for queue in queues.iter().skip(start) {
        let after = ask.after.filter(|(of, _)| *of == queue.id).map_or(0, |(_, position)| position);
        // One more than shown says whether there is a next page.
        let limit = (ask.limit + 1).saturating_sub(failures.len());
        if limit == 0 {
            break;
        }
        let range = DeadRange {
            lane: operation.lane,
            queue: queue.id,
            cause: ask.cause.clone(),
            after,
            up_to: i64::MAX,
            limit,
        };
        for dead in unit.dead_page(&range).await? {
            let failure = Failure {
                position: dead.position,
                queue: queue.name.clone(),
                dto_type: dead.row.item.dto_type,
                urn: dead.row.item.target.urn().clone(),
                is_parent: dead.row.item.target.is_parent(),
                cause: dead.cause,
                attempts: dead.row.attempts,
                at: dead.at,
                retried_by: None,
                handed_over: dead.row.handed_over,
            };
            failures.push((queue.id, failure, dead.retried_by));
        }
    }
    let more = failures.len() > ask.limit;
    failures.truncate(ask.limit);
    let next = failures.last().filter(|_| more).map(|(queue, failure, _)| (*queue, failure.position));
    let takers = unit.retry_of(&[operation.lane]).await?;
    let named = |lane: i64| takers.iter().find(|rule| rule.lane == lane).map(|rule| rule.tracking_id.clone());
    let failures = failures
        .into_iter()
        .map(|(_, failure, taker)| Failure { retried_by: taker.and_then(named), ..failure })
        .collect();
    Ok(FailurePage { failures, next })
}

/// All queues in the order of the flow, or the named one.
pub(crate) fn wanted(mut queues: Vec<Queue>, named: Option<&QueueName>) -> Result<Vec<Queue>, Refusal> {
    in_flow(&mut queues);
    if let Some(name) = named {
        queues.retain(|queue| queue.name == *name);
        if queues.is_empty() {
            return Err(Refusal::field("queue_name", "is no queue"));
        }
    }
    Ok(queues)
}

/// Where something about records is.
pub(crate) async fn record_fates<U: Unit>(unit: &mut U, urns: &[Urn]) -> Result<Vec<RecordFate>, StoreError> {
    unit.record_fates(urns).await
}
