//! How the platform stands, read only.

use domain::LaneKind;

use crate::{
    StoreError,
    model::{BACKLOG_MAX, Backlog, COUNTED_MAX, Overview, Queue, QueueReport},
    unit::Unit,
};

/// Every queue with what it holds, operations that are not over, and the brake.
pub(crate) async fn overview<U: Unit>(unit: &mut U) -> Result<Overview, StoreError> {
    let brake = unit.brake_find().await?;
    let queues = unit.queue_list().await?;
    let mut loads = unit.load_list(COUNTED_MAX).await?;
    if brake.is_some() {
        // What the brake stops is not late by itself.
        for load in loads.iter_mut().filter(|load| load.kind == LaneKind::Operation) {
            load.first_sla = None;
        }
    }
    let failed = unit.failed_list(COUNTED_MAX).await?;
    let queues = queues.into_iter().map(|queue| QueueReport {
        loads: loads.iter().filter(|load| load.queue == queue.id).cloned().collect(),
        failed: failed.iter().find(|(id, _)| *id == queue.id).map_or(0, |(_, count)| *count),
        queue,
    });
    Ok(Overview { queues: queues.collect(), operations: unit.operation_tally().await?, brake })
}

/// How much is to be done in each queue, by the same counts.
pub(crate) async fn backlogs<U: Unit>(unit: &mut U) -> Result<Vec<Backlog>, StoreError> {
    let queues = unit.queue_list().await?;
    let loads = unit.load_list(BACKLOG_MAX).await?;
    let backlog = |queue: Queue| {
        let of_queue = || loads.iter().filter(|load| load.queue == queue.id);
        let waiting = of_queue().map(|load| load.ready + load.delayed + load.cancelled).sum();
        let leased = of_queue().map(|load| load.leased).sum();
        Backlog { queue: queue.name, waiting, leased }
    };
    Ok(queues.into_iter().map(backlog).collect())
}
