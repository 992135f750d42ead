//! `model`: ECC models refreshed by their trigger, rendered, merged, exported to nowhere.

use std::time::Instant;

use domain::{AliasName, DtoType, ParentShape, ServiceName, Timestamp};
use futures::FutureExt as _;
use proto::{
    EccTriggersClient, ecc_image_render::v1::TriggerModelRefreshRequest, records::v1::EccLink, timestamp_to_wire,
};
use tokio_util::sync::CancellationToken;
use worker::Worker;

use super::{
    Common, RendererKind, Report, TENANT,
    figures::{Times, per_second, rounded},
    latency,
    load::{Loader, item_id, label_id, store},
    null::NullService,
    operation::{finish, wait},
    platform::Bench,
    probe::{Probe, ProbeLabels},
    progress, rendering,
    shop::{ITEMS, Shop, esl, esl_type, store_records},
    watch::{self, Spent, Watch},
};

/// Labels of a store where the number of stores is not chosen.
const STORE_LABELS: u32 = 5_000;
/// The model of every label, and of ten labels.
const MODEL: &str = "standard";
const SMALL_MODEL: &str = "small";
const SMALL_LABELS: u32 = 10;
/// Labels whose items are changed in the midst of it, in a store of their own.
const PROBE_LABELS: u32 = 100;
/// Its number.
const PROBE_STORE: u32 = 9_999;
/// All of them: number n shows item n.
const PROBED: ProbeLabels =
    ProbeLabels { store: PROBE_STORE, stores: 1, first: 0, labels: PROBE_LABELS, first_item: 0 };
/// Changes while nothing else goes on.
const IDLE_CHANGES: usize = 100;
/// How far ahead a refresh's SLA lies that the gateway computes, in milliseconds.
const ALLOWANCE_MS: i64 = 4 * 3_600_000;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Labels over all stores.
    pub labels: u32,
    /// Stores; none: one for every 5,000 labels.
    pub stores: Option<u32>,
    /// Whether labels are rendered.
    pub renderer: RendererKind,
}

impl Size {
    fn stores(self) -> u32 {
        self.stores.unwrap_or_else(|| self.labels.div_ceil(STORE_LABELS)).max(1)
    }

    fn all(self) -> u64 {
        u64::from(self.labels_of_each()) * u64::from(self.stores())
    }

    fn labels_of_each(self) -> u32 {
        self.labels.div_ceil(self.stores())
    }
}

/// Measures model refreshes over all stores: the first half with the usual SLA, the others with one that is past.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "model");
    report.set("stores", size.stores());
    report.set("labels", size.labels_of_each() * size.stores());
    let items = Shop::of_demo()?;
    report.set("render_labels_per_s_per_core", rendering::ecc(&items).await?);
    load(&bench, size, &items, &mut report).await?;
    latencies(&bench, &mut report).await?;
    match size.renderer {
        RendererKind::Null => null(&bench, size, &mut report).await?,
        RendererKind::Real => real(&bench, size, &items, &mut report).await?,
    }
    if let Some(bytes) = bench.database_bytes() {
        report.set("database_bytes_per_label", bytes / u64::from(size.labels));
    }
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

async fn load(bench: &Bench, size: Size, items: &Shop, report: &mut Report) -> anyhow::Result<()> {
    let (stores, labels) = (size.stores(), size.labels_of_each());
    progress(format!("writing {stores} stores with {labels} labels each"));
    let spent = Spent::start();
    let mut loader = Loader::new(bench)?;
    esl_type(&mut loader).await?;
    for index in 0..stores {
        let store = store(index);
        store_records(&mut loader, (&store, &[MODEL, SMALL_MODEL]), items).await?;
        labels_of(&mut loader, index, (MODEL, "E", labels), ITEMS).await?;
        if index == 0 {
            labels_of(&mut loader, index, (SMALL_MODEL, "s", SMALL_LABELS), ITEMS).await?;
        }
    }
    store_records(&mut loader, (&store(PROBE_STORE), &[MODEL]), items).await?;
    labels_of(&mut loader, PROBE_STORE, (MODEL, "E", PROBE_LABELS), PROBE_LABELS).await?;
    let written = loader.finish().await?;
    let rate = per_second(written, spent.wall());
    progress(format!("{written} records written, {rate} a second"));
    report.set("records_written_per_s", rate);
    Ok(())
}

async fn labels_of(
    loader: &mut Loader,
    store_index: u32,
    (model, first, labels): (&str, &str, u32),
    items: u32,
) -> anyhow::Result<()> {
    let store = store(store_index);
    for label in 0..labels {
        let id = label_id(first, (store_index, label));
        esl(loader, (&store, &id), label).await?;
        let link = EccLink { item_id: item_id(label % items), model_id: model.to_owned(), ..EccLink::default() };
        loader.put(DtoType::EccLink, format!("{store}/ecclinks/{id}"), &link).await?;
    }
    Ok(())
}

/// A refresh of a model of a store.
fn refresh(store: &str, model: &str, tracking_id: String) -> TriggerModelRefreshRequest {
    TriggerModelRefreshRequest {
        tenant_id: TENANT.to_owned(),
        store_id: store.rsplit('/').next().unwrap_or_default().to_owned(),
        model_id: model.to_owned(),
        reason: "benchmark".to_owned(),
        tracking_id,
        operator_subject: "bench@localhost".to_owned(),
        ..TriggerModelRefreshRequest::default()
    }
}

async fn null_service(bench: &Bench) -> anyhow::Result<NullService> {
    let shapes = [ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByEccModel) }];
    NullService::configure(bench, ServiceName::EccImageRender, (&[], &shapes)).await
}

async fn latencies(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut service = null_service(bench).await?;
    let triggers = proto::ecc_triggers_client(bench.triggers()?);
    let call = |model: &'static str| {
        let triggers = triggers.clone();
        move |dry_run: bool, number: u32| {
            let mut triggers = triggers.clone();
            let request =
                TriggerModelRefreshRequest { dry_run, ..refresh(&store(0), model, format!("{model}-{number}")) };
            async move {
                triggers.trigger_model_refresh(request).await?;
                Ok(())
            }
            .boxed()
        }
    };
    for (name, dry_run) in [("dry_run", true), ("accept", false)] {
        progress(format!("{} calls of {name} at each scope, in turn", latency::CALLS));
        let (figures, _) = latency::interleaved(&call(SMALL_MODEL), &call(MODEL), dry_run).await?;
        report.set(name, figures);
    }
    service.claim_and_complete(u64::MAX, 1).await?;
    Ok(())
}

async fn null(bench: &Bench, size: Size, report: &mut Report) -> anyhow::Result<()> {
    report.set("renderer", "null");
    let worker = null_service(bench).await?.start();
    let (seen, spent) = (Watch::start(&bench.platform), Spent::start());
    let all: Vec<u32> = (0..size.stores()).collect();
    let ids = trigger(bench, &all, None).await?;
    wait(bench, &ids).await?;
    finish(report, size.all(), &spent, seen).await;
    worker.stop().await
}

async fn real(bench: &Bench, size: Size, items: &Shop, report: &mut Report) -> anyhow::Result<()> {
    report.set("renderer", "real");
    let services = vec![ServiceName::EccImageRender, ServiceName::EslImageMerger, ServiceName::HardwareExporter];
    let _worker = Worker::start(bench.worker(services)).await?;
    let mut probe = Probe::new(bench, PROBED, items.item(0)?.clone())?;
    wait(bench, &trigger(bench, &[PROBE_STORE], None).await?).await?;
    let idle = probe.run(IDLE_CHANGES, &CancellationToken::new()).await?;
    progress(format!("urgent while idle: {:?} ms at p99", idle.quantile_ms(0.99)));
    report.set("urgent_idle", idle.to_json());

    let (seen, spent) = (Watch::start(&bench.platform), Spent::start());
    let half = size.stores() / 2;
    let ahead = bench.clock.now().plus_ms(ALLOWANCE_MS);
    let stages = [("urgent", Some(ahead), 0..half), ("urgent_past_sla", None, half..size.stores())];
    for (name, sla, stores) in stages {
        let stores: Vec<u32> = stores.collect();
        let (times, rate) = beside(bench, &mut probe, &stores, (sla, size)).await?;
        progress(format!("{} stores, {rate} labels/s; urgent {:?} ms at p99", stores.len(), times.quantile_ms(0.99)));
        report.set(&format!("{name}_p99_ms"), times.quantile_ms(0.99));
        report.set(name, times.to_json());
    }
    finish(report, size.all(), &spent, seen).await;
    Ok(())
}

/// Refreshes stores while items of others change; labels a second.
async fn beside(
    bench: &Bench,
    probe: &mut Probe,
    stores: &[u32],
    (sla, size): (Option<Timestamp>, Size),
) -> anyhow::Result<(Times, f64)> {
    let started = Instant::now();
    let stop = CancellationToken::new();
    let ids = trigger(bench, stores, sla).await?;
    let refreshed = async {
        let refreshed = wait(bench, &ids).await;
        stop.cancel();
        refreshed
    };
    let (refreshed, times) = tokio::join!(refreshed, probe.run(usize::MAX, &stop));
    refreshed?;
    let labels = u64::from(size.labels_of_each()) * stores.len() as u64;
    Ok((times?, per_second(labels, started.elapsed())))
}

/// Triggers a refresh of the model in each of these stores; the tracking ids.
async fn trigger(bench: &Bench, stores: &[u32], sla: Option<Timestamp>) -> anyhow::Result<Vec<String>> {
    let mut triggers: EccTriggersClient = proto::ecc_triggers_client(bench.triggers()?);
    let mut ids = Vec::with_capacity(stores.len());
    for index in stores {
        let id = format!("bench-{index}");
        let request = TriggerModelRefreshRequest {
            sla_timestamp: sla.map(timestamp_to_wire),
            ..refresh(&store(*index), MODEL, id.clone())
        };
        triggers.trigger_model_refresh(request).await?;
        ids.push(id);
    }
    Ok(ids)
}
