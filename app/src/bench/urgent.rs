//! `urgent`: how long a changed price takes to a label that waits in an operation which is throttled, paused or cancelled,
//! against the same change while nothing else goes on.
//!
//! Each store has an operation of its own over all its labels, as far as its lane lets them wait; the changed labels lie
//! in the midst of them, so the operation holds them to the end. Renderer, merger and exporter are the worker's own.

use std::time::Duration;

use domain::{DtoType, ServiceName};
use proto::{
    CqsClient,
    cqs::v1::{Cancel, GetOperationRequest, Operation, OperationLimits, Pause, control_operation_request::Action},
    ecc_image_render::v1::TriggerModelRefreshRequest,
    records::v1::EccLink,
    timestamp_to_wire,
};
use tokio_util::sync::CancellationToken;
use worker::Worker;

use super::{
    Common, Report, TENANT,
    figures::{Times, ratio, rounded},
    load::{Loader, item_id, label_id, store},
    operation::control,
    platform::Bench,
    probe::{Probe, ProbeLabels},
    progress,
    shop::{ITEMS, Shop, esl, esl_type, store_records},
    watch,
};

/// The model of every label.
const MODEL: &str = "standard";
/// Labels that are changed in each store, at most.
const PROBED: u32 = 100;
/// Items that only they show have numbers from here on.
const PROBED_ITEMS: u32 = 50_000;
/// Labels a second that a throttled operation begins: the least there is.
const THROTTLE_PER_S: i32 = 1;
/// How far ahead the operations' SLA lies, in milliseconds: a refresh's usual allowance.
const ALLOWANCE_MS: i64 = 4 * 3_600_000;
/// Times that the operations are begun anew and cancelled, at most, until enough changes met the clearing.
const CANCELLED_ROUNDS_MAX: u32 = 20;
/// Rows left of a clearing at which it counts as over: what the changes themselves have under way.
const CLEARED_ROWS: i64 = 100;
/// Between two looks at operations and queues.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Stores, each with an operation of its own.
    pub stores: u32,
    /// Labels of each. A lane lets some 10,000 wait in a queue.
    pub labels: u32,
    /// Changes in each state.
    pub changes: usize,
}

impl Size {
    fn probed(self) -> ProbeLabels {
        let labels = PROBED.min(self.labels);
        ProbeLabels {
            store: 0,
            stores: self.stores,
            first: (self.labels - labels) / 2,
            labels,
            first_item: PROBED_ITEMS,
        }
    }
}

/// Measures changed prices while nothing else goes on, and beside operations that hold the changed labels.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "urgent");
    report.set("stores", size.stores);
    report.set("labels", u64::from(size.labels) * u64::from(size.stores));
    let shop = Shop::of_demo()?;
    progress(format!("writing {} stores with {} labels each", size.stores, size.labels));
    load(&bench, size, &shop, Part::Others).await?;
    let services = vec![ServiceName::EccImageRender, ServiceName::EslImageMerger, ServiceName::HardwareExporter];
    let _worker = Worker::start(bench.worker(services)).await?;
    // Announced, since the queues are there by now: so these labels show a price before it is changed.
    load(&bench, size, &shop, Part::Probed).await?;
    while bench.platform.backlog().await? > 0 {
        tokio::time::sleep(LOOK_EVERY).await;
    }

    let probe = Probe::new(&bench, size.probed(), shop.item(0)?.clone())?;
    let mut run = Run { bench: &bench, size, probe, report, idle_p99: None, begun: 0 };
    run.measure().await?;
    let mut report = run.report;
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

/// Which labels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Those that only the operations come to, and everything that labels share.
    Others,
    /// Those that are changed.
    Probed,
}

async fn load(bench: &Bench, size: Size, shop: &Shop, part: Part) -> anyhow::Result<()> {
    let mut loader = Loader::new(bench)?;
    if part == Part::Others {
        esl_type(&mut loader).await?;
    }
    for index in 0..size.stores {
        let store = store(index);
        if part == Part::Others {
            store_records(&mut loader, (&store, &[MODEL]), shop).await?;
        }
        for label in 0..size.labels {
            let probed = size.probed().item(label);
            if (part == Part::Probed) != probed.is_some() {
                continue;
            }
            if let Some(item) = probed {
                let id = format!("{store}/items/{}", item_id(item));
                loader.put(DtoType::StoreItemValues, id, shop.item(0)?).await?;
            }
            let id = label_id("E", (index, label));
            esl(&mut loader, (&store, &id), label).await?;
            let item_id = item_id(probed.unwrap_or(label % ITEMS));
            let link = EccLink { item_id, model_id: MODEL.to_owned(), ..EccLink::default() };
            loader.put(DtoType::EccLink, format!("{store}/ecclinks/{id}"), &link).await?;
        }
    }
    loader.finish().await?;
    Ok(())
}

/// A measurement under way.
struct Run<'a> {
    bench: &'a Bench,
    size: Size,
    probe: Probe,
    report: Report,
    idle_p99: Option<f64>,
    /// Operations begun in each store.
    begun: u32,
}

impl Run<'_> {
    async fn measure(&mut self) -> anyhow::Result<()> {
        let idle = self.changes().await?;
        self.idle_p99 = idle.quantile_ms(0.99);
        self.note("idle", &idle);

        let ids = self.begin().await?;
        let throttled = self.changes().await?;
        self.note_beside("throttled", &throttled, &ids).await?;

        self.control(&ids, Action::Pause(Pause::default())).await?;
        let paused = self.changes().await?;
        self.note_beside("paused", &paused, &ids).await?;
        self.cancelled(ids).await
    }

    /// As many changes as there shall be.
    async fn changes(&mut self) -> anyhow::Result<Times> {
        self.probe.run(self.size.changes, &CancellationToken::new()).await
    }

    fn note(&mut self, name: &str, times: &Times) {
        progress(format!("{name}: {:?} ms at p99", times.quantile_ms(0.99)));
        self.report.set(&format!("{name}_p99_ms"), times.quantile_ms(0.99));
        self.report.set(name, times.to_json());
        self.report.set(&format!("{name}_p99_ratio"), ratio(times.quantile_ms(0.99), self.idle_p99));
    }

    /// Notes also how many labels the operations hold by then: the changed ones are among them.
    async fn note_beside(&mut self, name: &str, times: &Times, ids: &[String]) -> anyhow::Result<()> {
        let mut waiting = 0;
        for id in ids {
            waiting += labels_waiting(&self.operation(id).await?);
        }
        self.note(name, times);
        self.report.set(&format!("{name}_waiting"), waiting);
        Ok(())
    }

    /// Begins an operation over every store and waits until as many labels as may wait do; the tracking ids.
    async fn begin(&mut self) -> anyhow::Result<Vec<String>> {
        self.begun += 1;
        let sla = self.bench.clock.now().plus_ms(ALLOWANCE_MS);
        let mut triggers = proto::ecc_triggers_client(self.bench.triggers()?);
        let mut ids = Vec::new();
        for index in 0..self.size.stores {
            let id = format!("bench-{}-{index}", self.begun);
            let request = TriggerModelRefreshRequest {
                tenant_id: TENANT.to_owned(),
                store_id: store(index).rsplit('/').next().unwrap_or_default().to_owned(),
                model_id: MODEL.to_owned(),
                reason: "benchmark".to_owned(),
                tracking_id: id.clone(),
                operator_subject: "bench@localhost".to_owned(),
                sla_timestamp: Some(timestamp_to_wire(sla)),
                limits: Some(OperationLimits { throttle_per_s: THROTTLE_PER_S, max_in_flight: 0 }),
                ..TriggerModelRefreshRequest::default()
            };
            triggers.trigger_model_refresh(request).await?;
            ids.push(id);
        }
        for id in &ids {
            while !is_full(&self.operation(id).await?) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(ids)
    }

    async fn operation(&self, id: &str) -> anyhow::Result<Operation> {
        let mut cqs: CqsClient = self.bench.cqs_as(ServiceName::OperatorGateway)?;
        let ask = GetOperationRequest { tenant_id: TENANT.to_owned(), tracking_id: id.to_owned() };
        Ok(cqs.get_operation(ask).await?.into_inner())
    }

    /// Carries out an action on each; how many labels cancellations found waiting.
    async fn control(&self, ids: &[String], action: Action) -> anyhow::Result<i64> {
        let mut cqs = self.bench.cqs_as(ServiceName::OperatorGateway)?;
        let mut not_started = 0;
        for id in ids {
            let answer = control(&mut cqs, id, action).await?;
            not_started += answer.receipt.map_or(0, |receipt| receipt.not_started);
        }
        Ok(not_started)
    }

    /// Cancels, and changes prices while what waited is removed; as often as it takes.
    async fn cancelled(&mut self, mut ids: Vec<String>) -> anyhow::Result<()> {
        let (mut times, mut rows, mut rounds) = (Times::default(), 0, 0);
        loop {
            rows += self.control(&ids, Action::Cancel(Cancel {})).await?;
            rounds += 1;
            let cleared = CancellationToken::new();
            let left = self.size.changes - times.len();
            let changed = async {
                let changed = self.probe.run(left, &cleared).await;
                cleared.cancel();
                changed
            };
            let (changed, watched) = tokio::join!(changed, until_cleared(self.bench, &cleared));
            watched?;
            times.append(changed?);
            if times.len() >= self.size.changes || rounds == CANCELLED_ROUNDS_MAX {
                break;
            }
            ids = self.begin().await?;
        }
        self.note("cancelled", &times);
        self.report.set("cancelled_rows", rows);
        self.report.set("cancelled_rounds", rounds);
        Ok(())
    }
}

/// Looks until nothing of a cancelled operation is left, or nobody asks any more; then tells.
async fn until_cleared(bench: &Bench, cleared: &CancellationToken) -> anyhow::Result<()> {
    while !cleared.is_cancelled() {
        tokio::select! {
            () = cleared.cancelled() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {
                if bench.platform.backlog().await? <= CLEARED_ROWS {
                    cleared.cancel();
                }
            }
        }
    }
    Ok(())
}

fn labels_waiting(operation: &Operation) -> i64 {
    operation.queues.iter().map(|queue| queue.waiting).sum()
}

/// Whether no more labels of it will wait than do: its parent is split to the end, or its lane is full.
fn is_full(operation: &Operation) -> bool {
    operation.expansion_complete || labels_waiting(operation) >= domain::limits::LANE_READY_MAX
}
