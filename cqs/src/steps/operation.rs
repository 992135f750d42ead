//! Operations are read with their ledger.

use std::collections::BTreeMap;

use domain::{ServiceName, TenantId, TrackingId};

use crate::{
    StoreError,
    model::{Counts, LedgerKey, Operation, OperationReport, Queue, QueueCounts, RowKind},
    unit::Unit,
};

/// Failure groups shown with an operation.
const FAILURE_GROUPS: usize = 20;

/// The operation of that name.
pub(crate) async fn operation<U: Unit>(
    unit: &mut U,
    tenant: &TenantId,
    tracking_id: &TrackingId,
) -> Result<Option<OperationReport>, StoreError> {
    let found = unit.operation_find(tenant, tracking_id).await?;
    Ok(reports(unit, found.into_iter().collect()).await?.pop())
}

/// A page of operations.
pub(crate) async fn operations<U: Unit>(
    unit: &mut U,
    tenants: &[TenantId],
    (before, limit): (i64, usize),
) -> Result<Vec<OperationReport>, StoreError> {
    let page = unit.operation_page(tenants, before, limit).await?;
    reports(unit, page).await
}

async fn reports<U: Unit>(unit: &mut U, operations: Vec<Operation>) -> Result<Vec<OperationReport>, StoreError> {
    let queues = unit.queue_list().await?;
    let lanes: Vec<i64> = operations.iter().map(|operation| operation.lane).collect();
    let mut ledgers: BTreeMap<i64, Vec<(LedgerKey, Counts)>> = BTreeMap::new();
    for (key, counts) in unit.ledger_read(&lanes).await? {
        ledgers.entry(key.lane).or_default().push((key, counts));
    }
    let mut reports = Vec::with_capacity(operations.len());
    for operation in operations {
        let ledger = ledgers.remove(&operation.lane).unwrap_or_default();
        let failed = ledger.iter().any(|(_, counts)| counts.failed > 0);
        let failures = if failed { unit.dead_groups(operation.lane, FAILURE_GROUPS).await? } else { Vec::new() };
        reports.push(OperationReport { queues: by_queue(&queues, ledger), operation, failures });
    }
    Ok(reports)
}

/// The flow, which is the order in which an operation's stages are shown.
fn stage(queue: &Queue) -> usize {
    match ServiceName::of_queue(&queue.name) {
        Some(ServiceName::EccImageRender) => 0,
        Some(ServiceName::StudioRenderer) => 1,
        Some(ServiceName::EslImageMerger) => 2,
        Some(ServiceName::HardwareExporter) => 3,
        Some(ServiceName::OperatorGateway | ServiceName::RecordImport) | None => 4,
    }
}

fn by_queue(queues: &[Queue], ledger: Vec<(LedgerKey, Counts)>) -> Vec<QueueCounts> {
    let mut counts: BTreeMap<i64, (Counts, Counts)> = BTreeMap::new();
    for (key, delta) in ledger {
        let (labels, parents) = counts.entry(key.queue).or_default();
        match key.kind {
            RowKind::Label => *labels += delta,
            RowKind::Parent => *parents += delta,
        }
    }
    let mut stages: Vec<&Queue> = queues.iter().filter(|queue| counts.contains_key(&queue.id)).collect();
    stages.sort_by_key(|queue| (stage(queue), queue.id));
    stages
        .into_iter()
        .map(|queue| {
            let (labels, parents) = counts.remove(&queue.id).unwrap_or_default();
            QueueCounts { queue: queue.name.clone(), labels, parents }
        })
        .collect()
}
