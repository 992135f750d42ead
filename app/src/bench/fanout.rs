//! `fanout`: one design, many stores, many labels in each. One parent becomes one per store, each of those one
//! notification per label.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use domain::{AliasName, DtoType, ParentShape, ServiceName};
use futures::FutureExt as _;
use proto::{
    CqsClient, DtoFlowClient,
    cqs::v1::SelfEnqueueRequest,
    dtoflow::v1::{CountByAliasRequest, ListStoresByAliasRequest},
};

use super::{
    Common, RendererKind, Report, TENANT,
    figures::{per_second, rounded},
    latency,
    load::{Loader, studio_links},
    null::NullService,
    platform::Bench,
    progress, split,
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

/// Measures the fan-out.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    anyhow::ensure!(size.renderer == RendererKind::Null, "fanout renders nothing yet; use --renderer null");
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "fanout");
    report.set("renderer", "null");
    report.set("stores", size.stores);
    report.set("labels", u64::from(size.stores) * u64::from(size.labels));

    load(&bench, size, &mut report).await?;
    let mut service = NullService::configure(&bench, ServiceName::StudioRenderer, (&[], SHAPES)).await?;
    let mut cqs = bench.cqs_as(ServiceName::StudioRenderer)?;
    latencies(&bench, &mut service, &mut report).await?;
    let (figures, split_ratio) = split::measure(&bench, &mut service, &mut cqs).await?;
    report.set("split", figures);
    report.set("split_ratio", split_ratio);
    expand(&bench, &service, size, &mut report).await?;
    report.set("database_bytes", bench.database_bytes());
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

/// Before the queue exists, so that no link is announced.
async fn load(bench: &Bench, size: Size, report: &mut Report) -> anyhow::Result<()> {
    progress(format!("writing the links of {} stores with {} labels each", size.stores, size.labels));
    let spent = Spent::start();
    let mut loader = Loader::new(bench)?;
    studio_links(&mut loader, SMALL, "s", (1, SMALL_LABELS)).await?;
    studio_links(&mut loader, WIDE, "w", (size.stores, WIDE_LABELS.div_ceil(size.stores))).await?;
    studio_links(&mut loader, LARGE, "E", (size.stores, size.labels)).await?;
    let written = loader.finish().await?;
    let rate = per_second(written, spent.wall());
    progress(format!("{written} links written, {rate} a second"));
    report.set("links_written_per_s", rate);
    report.set("database_bytes_per_label", bench.database_bytes() / written.max(1));
    Ok(())
}

/// What a design refresh does before its answer, with nobody at work on the queue.
async fn latencies(bench: &Bench, service: &mut NullService, report: &mut Report) -> anyhow::Result<()> {
    let cqs = bench.cqs_as(ServiceName::StudioRenderer)?;
    let dtoflow = bench.dtoflow_as(ServiceName::StudioRenderer)?;
    let call = |design: &'static str| {
        let (cqs, dtoflow) = (cqs.clone(), dtoflow.clone());
        move |dry_run: bool, number: u32| {
            let (cqs, dtoflow) = (cqs.clone(), dtoflow.clone());
            async move {
                look(dtoflow, design).await?;
                if dry_run {
                    return Ok(());
                }
                accept(cqs, split::injection(&format!("t/{TENANT}/designs/{design}"), &format!("{design}-{number}"))?)
                    .await
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

/// Counts of a design: all, and by store.
async fn look(mut dtoflow: DtoFlowClient, design: &str) -> anyhow::Result<()> {
    let (dto_type, alias_name) = (DtoType::StudioLink.to_string(), AliasName::ByDesign.to_string());
    let parent_id = format!("t/{TENANT}/designs/{design}");
    let count = CountByAliasRequest {
        dto_type: dto_type.clone(),
        alias_name: alias_name.clone(),
        parent_ids: vec![parent_id.clone()],
    };
    dtoflow.count_by_alias(count).await?;
    let page_size = 100;
    let stores = ListStoresByAliasRequest { dto_type, alias_name, parent_id, page_size, page_token: String::new() };
    dtoflow.list_stores_by_alias(stores).await?;
    Ok(())
}

async fn accept(mut cqs: CqsClient, request: SelfEnqueueRequest) -> anyhow::Result<()> {
    cqs.self_enqueue(request).await?;
    Ok(())
}

/// One injected parent, until nothing of it waits or is leased.
async fn expand(bench: &Bench, service: &NullService, size: Size, report: &mut Report) -> anyhow::Result<()> {
    let labels = u64::from(size.stores) * u64::from(size.labels);
    progress(format!("refreshing {labels} labels"));
    let watch = Watch::start(&bench.platform);
    let spent = Spent::start();
    let mut worker = service.start();
    accept(
        bench.cqs_as(ServiceName::StudioRenderer)?,
        split::injection(&format!("t/{TENANT}/designs/{LARGE}"), "bench-fanout")?,
    )
    .await?;
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
    let (wall, cpu, writer) = (spent.wall(), spent.cpu(), spent.writer());
    anyhow::ensure!(bench.platform.backlog().await? == 0, "something is left in the queues");
    let (parents, children) =
        (worker.tally.parents.load(Ordering::Relaxed), worker.tally.children.load(Ordering::Relaxed));
    worker.stop().await?;
    let seen = watch.stop().await;
    report.set("parents", parents);
    report.set("children", children);
    report.set("seconds", rounded(wall.as_secs_f64()));
    report.set("labels_per_s", per_second(labels, wall));
    report.set("peak_waiting", seen.values().map(|queue| queue.peak_waiting).max());
    report.set("labels_per_cpu_s", per_second(labels, cpu));
    report.set("labels_per_writer_cpu_s", per_second(labels, writer));
    Ok(())
}
