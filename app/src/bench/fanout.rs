//! `fanout`: one design, many stores, many labels in each. One parent becomes one per store, each of those one
//! notification per label.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use domain::{AliasName, DtoType, ParentShape, ServiceName};
use futures::FutureExt as _;
use proto::studio_renderer::v1::TriggerDesignRefreshRequest;
use worker::Worker;

use super::{
    Common, RendererKind, Report, TENANT,
    figures::{per_second, rounded},
    latency,
    load::{Loader, label_id, store, studio_links},
    null::NullService,
    operation::{finish, wait},
    platform::Bench,
    progress, rendering,
    shop::{Shop, esl, esl_type, store_records},
    split,
    watch::{self, Spent, Watch},
};

/// What the Studio renderer splits.
const SHAPES: &[ParentShape] = &[
    ParentShape { dto_type: DtoType::StudioLink, alias: None },
    ParentShape { dto_type: DtoType::StudioLink, alias: Some(AliasName::ByDesign) },
];
/// The design with every label, one with 10 labels of one store, one with as many stores and few labels.
const LARGE: &str = "large";
const SMALL: &str = "small";
const WIDE: &str = "wide";
const SMALL_LABELS: u32 = 10;
/// Labels of the wide design, over all stores.
const WIDE_LABELS: u32 = 10_000;
/// Between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Stores.
    pub stores: u32,
    /// Labels in each.
    pub labels: u32,
    /// Whether labels are rendered.
    pub renderer: RendererKind,
}

impl Size {
    fn all(self) -> u64 {
        u64::from(self.stores) * u64::from(self.labels)
    }
}

/// Measures the fan-out.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "fanout");
    report.set("stores", size.stores);
    report.set("labels", size.all());

    let shop = Shop::of_demo()?;
    report.set("render_labels_per_s_per_core", rendering::studio(&shop).await?);
    load(&bench, size, &shop, &mut report).await?;
    let mut service = NullService::configure(&bench, ServiceName::StudioRenderer, (&[], SHAPES)).await?;
    let mut cqs = bench.cqs_as(ServiceName::StudioRenderer)?;
    latencies(&bench, &mut service, &mut report).await?;
    let (figures, split_ratio) = split::measure(&bench, &mut service, &mut cqs).await?;
    report.set("split", figures);
    report.set("split_ratio", split_ratio);
    match size.renderer {
        RendererKind::Null => null(&bench, &service, size, &mut report).await?,
        RendererKind::Real => real(&bench, size, &mut report).await?,
    }
    if let Some(bytes) = bench.database_bytes() {
        report.set("database_bytes_per_label", bytes / size.all());
    }
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

/// Before the queue exists, so that no link is announced.
async fn load(bench: &Bench, size: Size, shop: &Shop, report: &mut Report) -> anyhow::Result<()> {
    progress(format!("writing the links of {} stores with {} labels each", size.stores, size.labels));
    let spent = Spent::start();
    let mut loader = Loader::new(bench)?;
    for design in [SMALL, WIDE, LARGE] {
        let urn = format!("t/{TENANT}/designs/{design}");
        loader.put_bytes(DtoType::Design, urn, shop.design.clone()).await?;
    }
    if size.renderer == RendererKind::Real {
        esl_type(&mut loader).await?;
        for index in 0..size.stores {
            let store = store(index);
            store_records(&mut loader, (&store, &[]), shop).await?;
            for label in 0..size.labels {
                esl(&mut loader, (&store, &label_id("E", (index, label))), label).await?;
            }
        }
    }
    studio_links(&mut loader, SMALL, "s", (1, SMALL_LABELS)).await?;
    studio_links(&mut loader, WIDE, "w", (size.stores, WIDE_LABELS.div_ceil(size.stores))).await?;
    studio_links(&mut loader, LARGE, "E", (size.stores, size.labels)).await?;
    let written = loader.finish().await?;
    let rate = per_second(written, spent.wall());
    progress(format!("{written} records written, {rate} a second"));
    report.set("records_written_per_s", rate);
    Ok(())
}

fn refresh(design: &str, tracking_id: String) -> TriggerDesignRefreshRequest {
    TriggerDesignRefreshRequest {
        tenant_id: TENANT.to_owned(),
        design_id: design.to_owned(),
        reason: "benchmark".to_owned(),
        tracking_id,
        operator_subject: "bench@localhost".to_owned(),
        ..TriggerDesignRefreshRequest::default()
    }
}

/// The trigger's answers, with nobody at work on the queue.
async fn latencies(bench: &Bench, service: &mut NullService, report: &mut Report) -> anyhow::Result<()> {
    let triggers = proto::studio_triggers_client(bench.triggers()?);
    let call = |design: &'static str| {
        let triggers = triggers.clone();
        move |dry_run: bool, number: u32| {
            let mut triggers = triggers.clone();
            let request = TriggerDesignRefreshRequest { dry_run, ..refresh(design, format!("{design}-{number}")) };
            async move {
                triggers.trigger_design_refresh(request).await?;
                Ok(())
            }
            .boxed()
        }
    };
    progress(format!("{} dry runs at each scope, in turn", latency::CALLS));
    let (figures, _) = latency::interleaved(&call(WIDE), &call(LARGE), true).await?;
    report.set("dry_run", figures);
    progress(format!("{} acceptances at each scope, in turn", latency::CALLS));
    let (figures, _) = latency::interleaved(&call(SMALL), &call(LARGE), false).await?;
    report.set("accept", figures);
    // Accepted for their time only: their parents are not split.
    service.claim_and_complete(u64::MAX, 1).await?;
    Ok(())
}

/// The refresh with everything real. The queue has the renderer's own shapes from here on.
async fn real(bench: &Bench, size: Size, report: &mut Report) -> anyhow::Result<()> {
    report.set("renderer", "real");
    let services = vec![ServiceName::StudioRenderer, ServiceName::EslImageMerger, ServiceName::HardwareExporter];
    let _worker = Worker::start(bench.worker(services)).await?;
    let (seen, spent) = (Watch::start(&bench.platform), Spent::start());
    let id = "bench-fanout".to_owned();
    proto::studio_triggers_client(bench.triggers()?).trigger_design_refresh(refresh(LARGE, id.clone())).await?;
    wait(bench, &[id]).await?;
    finish(report, size.all(), &spent, seen).await;
    Ok(())
}

/// One injected parent, until nothing of it waits or is leased.
async fn null(bench: &Bench, service: &NullService, size: Size, report: &mut Report) -> anyhow::Result<()> {
    report.set("renderer", "null");
    let labels = size.all();
    progress(format!("refreshing {labels} labels"));
    let watch = Watch::start(&bench.platform);
    let spent = Spent::start();
    let mut worker = service.start();
    let request = refresh(LARGE, "bench-fanout".to_owned());
    proto::studio_triggers_client(bench.triggers()?).trigger_design_refresh(request).await?;
    let (mut told, mut last) = (Instant::now(), 0);
    while worker.tally.labels.load(Ordering::Relaxed) < labels {
        if let Some(error) = worker.failure() {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        if told.elapsed() >= TELL_EVERY {
            let done = worker.tally.labels.load(Ordering::Relaxed);
            progress(format!("{done} labels, {} a second", per_second(done - last, told.elapsed())));
            (told, last) = (Instant::now(), done);
        }
    }
    anyhow::ensure!(bench.platform.backlog().await? == 0, "something is left in the queues");
    let (parents, children) =
        (worker.tally.parents.load(Ordering::Relaxed), worker.tally.children.load(Ordering::Relaxed));
    finish(report, labels, &spent, watch).await;
    worker.stop().await?;
    report.set("parents", parents);
    report.set("children", children);
    Ok(())
}
