//! Operations are read with their ledger.

use std::collections::BTreeMap;

use domain::{ServiceName, TenantId, Timestamp, TrackingId};

use crate::{
    StoreError,
    model::{
        Control, Counts, LedgerKey, Lineage, Member, Operation, OperationReport, Pace, PlaceReport, Queue, QueueCounts,
        RetryRule, RowKind, StageReport, State, expansion_complete,
    },
    policy::{
        blocked::{self, View},
        control,
    },
    unit::Unit,
};

use super::{control::total, family::families};

/// Failure groups shown with an operation.
const FAILURE_GROUPS: usize = 20;

/// The time over which a rate is taken, in milliseconds.
const RATE_MS: i64 = 60_000;
/// The shortest one, in milliseconds: less would be noise.
const RATE_MS_MIN: i64 = 2_000;

/// The operation of that name.
pub(crate) async fn operation<U: Unit>(
    unit: &mut U,
    (tenant, tracking_id): (&TenantId, &TrackingId),
    now: Timestamp,
) -> Result<Option<OperationReport>, StoreError> {
    let found = unit.operation_find(tenant, tracking_id).await?;
    Ok(reports(unit, found.into_iter().collect(), now).await?.pop())
}

/// Those operations of a tenant that have one of these names.
pub(crate) async fn named<U: Unit>(
    unit: &mut U,
    (tenant, names): (&TenantId, &[TrackingId]),
    now: Timestamp,
) -> Result<Vec<OperationReport>, StoreError> {
    let found = unit.operation_named(tenant, names).await?;
    reports(unit, found, now).await
}

/// A page of operations.
pub(crate) async fn operations<U: Unit>(
    unit: &mut U,
    tenants: &[TenantId],
    (before, limit, now): (i64, usize, Timestamp),
) -> Result<Vec<OperationReport>, StoreError> {
    let page = unit.operation_page(tenants, before, limit).await?;
    reports(unit, page, now).await
}

/// A page of operations that are not finished.
pub(crate) async fn unfinished<U: Unit>(
    unit: &mut U,
    tenants: &[TenantId],
    (before, limit, now): (i64, usize, Timestamp),
) -> Result<Vec<OperationReport>, StoreError> {
    let page = unit.operation_unfinished(tenants, before, limit).await?;
    reports(unit, page, now).await
}

/// One operation with its ledger.
pub(crate) async fn report<U: Unit>(
    unit: &mut U,
    operation: Operation,
    now: Timestamp,
) -> Result<OperationReport, StoreError> {
    let lane = operation.lane;
    let report = reports(unit, vec![operation], now).await?.pop();
    report.ok_or(StoreError::BrokenRow { table: "cqs_operation", column: "lane", id: lane.to_string() })
}

async fn reports<U: Unit>(
    unit: &mut U,
    operations: Vec<Operation>,
    now: Timestamp,
) -> Result<Vec<OperationReport>, StoreError> {
    let queues = unit.queue_list().await?;
    let brake = unit.brake_find().await?;
    let lanes: Vec<i64> = operations.iter().map(|operation| operation.lane).collect();
    let mut ledgers = ledgers(unit, &lanes).await?;
    let mut controls: BTreeMap<i64, Control> = unit.control_find(&lanes).await?.into_iter().collect();
    let revisions: BTreeMap<i64, i64> = unit.ledger_revision(&lanes).await?.into_iter().collect();
    let paces = unit.pace_find(&lanes, now.plus_ms(-RATE_MS)).await?;
    let rules = unit.retry_of(&lanes).await?;
    let mut reports = Vec::with_capacity(operations.len());
    for operation in operations {
        let lane = operation.lane;
        let ledger = ledgers.remove(&lane).unwrap_or_default();
        let control = controls.remove(&lane).unwrap_or_default();
        let failed = ledger.iter().any(|(_, counts)| counts.failed > 0);
        let failures = if failed { unit.dead_groups(lane, FAILURE_GROUPS).await? } else { Vec::new() };
        let lineage = lineage(&rules, lane);
        let state = state(&control, &ledger, &lineage);
        let places = unit.place_list(lane).await?;
        let view = View { control: &control, state, brake: brake.as_ref(), queues: &queues, now };
        let stages = stages(&queues, (&ledger, &places), (&paces, Some(operation.accepted_at), now));
        reports.push(OperationReport {
            blocked: blocked::causes(&view, &places),
            revision: control.revision + revisions.get(&lane).copied().unwrap_or_default(),
            quiet_by: places.iter().filter_map(|place| place.leased_until).max(),
            queues: by_queue(&queues, ledger, &lineage),
            stages,
            operation,
            failures,
            lineage,
            state,
            control,
            family: None,
        });
    }
    if reports.iter().any(|report| !report.lineage.retries.is_empty()) {
        let own = reports.iter().map(|report| (report.operation.lane, report.member())).collect();
        let mut families = families(unit, (&own, &rules), (&queues, now)).await?;
        for report in &mut reports {
            report.family = families.remove(&report.operation.lane);
        }
    }
    Ok(reports)
}

/// What is counted of operations with those that they retry; `rules`: at least those that fill them or take from them.
pub(super) async fn members<U: Unit>(
    unit: &mut U,
    lanes: &[i64],
    (rules, queues, now): (&[RetryRule], &[Queue], Timestamp),
) -> Result<BTreeMap<i64, Member>, StoreError> {
    let mut ledgers = ledgers(unit, lanes).await?;
    let mut controls: BTreeMap<i64, Control> = unit.control_find(lanes).await?.into_iter().collect();
    let paces = unit.pace_find(lanes, now.plus_ms(-RATE_MS)).await?;
    let mut members = BTreeMap::new();
    for lane in lanes {
        let ledger = ledgers.remove(lane).unwrap_or_default();
        let lineage = lineage(rules, *lane);
        let state = state(&controls.remove(lane).unwrap_or_default(), &ledger, &lineage);
        // Of what is over nothing waits anywhere.
        let under_way = total(&ledger).open() > 0;
        let places = if under_way { unit.place_list(*lane).await? } else { Vec::new() };
        let stages = stages(queues, (&ledger, &places), (&paces, None, now));
        let queues = by_queue(queues, ledger, &lineage);
        let expansion_complete = expansion_complete(&queues, &lineage);
        members.insert(*lane, Member { state, expansion_complete, queues, stages });
    }
    Ok(members)
}

async fn ledgers<U: Unit>(unit: &mut U, lanes: &[i64]) -> Result<BTreeMap<i64, Vec<(LedgerKey, Counts)>>, StoreError> {
    let mut ledgers: BTreeMap<i64, Vec<(LedgerKey, Counts)>> = BTreeMap::new();
    for (key, counts) in unit.ledger_read(lanes).await? {
        ledgers.entry(key.lane).or_default().push((key, counts));
    }
    Ok(ledgers)
}

fn lineage(rules: &[RetryRule], lane: i64) -> Lineage {
    Lineage {
        rules: rules.iter().filter(|rule| rule.lane == lane).cloned().collect(),
        retries: rules.iter().filter(|rule| rule.parent_lane == lane).cloned().collect(),
    }
}

fn state(control: &Control, ledger: &[(LedgerKey, Counts)], lineage: &Lineage) -> State {
    match control::state(control, &total(ledger)) {
        // What failed is still to be moved here.
        State::Succeeded | State::FinishedWithFailures if lineage.is_filling() => State::Running,
        state => state,
    }
}

/// How an operation goes in each queue that ever held something of it.
fn stages(
    queues: &[Queue],
    (ledger, places): (&[(LedgerKey, Counts)], &[PlaceReport]),
    (paces, begun, now): (&[Pace], Option<Timestamp>, Timestamp),
) -> Vec<StageReport> {
    // Nothing was gone when it was accepted: what went before the first sample is not lost on one that is younger than the
    // time over which a rate is taken.
    let begun = begun.filter(|begun| now.ms_since(*begun) < RATE_MS);
    let rate = |key: &LedgerKey, counts: &Counts| {
        let first = paces.iter().find(|pace| pace.lane == key.lane && pace.queue == key.queue)?;
        let (since, gone_then) = begun.filter(|_| first.gone > 0).map_or((first.at, first.gone), |begun| (begun, 0));
        let ms = now.ms_since(since);
        let gone = counts.done + counts.failed - gone_then;
        (ms >= RATE_MS_MIN).then(|| gone.max(0).saturating_mul(1_000_000) / ms)
    };
    let stage = |queue: &Queue| {
        ledger.iter().find(|(key, _)| key.queue == queue.id)?;
        let labels = ledger.iter().find(|(key, _)| key.queue == queue.id && key.kind == RowKind::Label);
        Some(StageReport {
            queue: queue.name.clone(),
            waiting_since: places.iter().find(|place| place.queue == queue.id).and_then(|place| place.waiting_since),
            milli_labels_per_s: labels.and_then(|(key, counts)| rate(key, counts)),
        })
    };
    queues.iter().filter_map(stage).collect()
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

/// Puts queues into the order of the flow.
pub(crate) fn in_flow(queues: &mut [Queue]) {
    queues.sort_by_key(|queue| (stage(queue), queue.id));
}

fn by_queue(queues: &[Queue], ledger: Vec<(LedgerKey, Counts)>, lineage: &Lineage) -> Vec<QueueCounts> {
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
            let sum = |rules: &[RetryRule], of: fn(&RetryRule) -> i64| -> i64 {
                rules.iter().filter(|rule| rule.queue == queue.id).map(of).sum()
            };
            let retried = |of| sum(&lineage.retries, of);
            QueueCounts {
                queue: queue.name.clone(),
                labels,
                parents,
                labels_retried: retried(|rule| rule.labels),
                parents_retried: retried(|rule| rule.parents),
                retried_handed_over: retried(|rule| rule.handed_over),
                labels_given_back: sum(&lineage.rules, |rule| rule.labels_given_back),
                parents_given_back: sum(&lineage.rules, |rule| rule.parents_given_back),
            }
        })
        .collect()
}
