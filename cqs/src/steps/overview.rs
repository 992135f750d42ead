//! How the platform stands, read only.

use domain::LaneKind;

use crate::{
    StoreError,
    model::{COUNTED_MAX, Overview, QueueReport},
    unit::Unit,
};

/// Every queue with what it holds, operations that are not over, and the brake.
pub(crate) async fn overview<U: Unit>(unit: &mut U) -> Result<Overview, StoreError> {
    let brake = unit.brake_find().await?;
    let queues = unit.queue_list().await?;
    let mut loads = unit.load_list().await?;
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
