//! `cancel`: how long cancelling takes with many rows waiting in the exporter's queue, and what clearing them costs others.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::{DtoType, ParentShape, ServiceName, SplitItem, Target, Timestamp, limits::SPLIT_CHILDREN_MAX};
use prost::Message as _;
use proto::{
    CqsClient, DtoFlowClient,
    cqs::v1::{
        Cancel, CompleteRequest, ControlOperationRequest, ControlOperationResponse, DtoChangeNotification, ItemOutcome,
        OutcomeKind, Pause, SelfEnqueueRequest, control_operation_request::Action,
    },
    dtoflow::v1::{PutItem, PutManyRequest, WriteLease},
    records::v1::{EslImage, ImageSource, Palette, StoreEsl},
    split_item_to_wire,
};

use super::{
    Common, Report, TENANT,
    figures::{Times, per_second, ratio, rounded},
    load::{Loader, label_id, store},
    null::NullService,
    platform::Bench,
    progress, watch,
};

/// Stores over which the labels are spread: as many heads in the exporter's queue.
const STORES: u32 = 200;
/// Rows of one claim of other lanes; each store has so many, so that every claim takes one store's.
const BATCH: i32 = 500;
/// Claims before the cancellation, and as many while its rows are cleared.
const CLAIMS: u32 = STORES / 2;
/// Rows of one batch on the way to the exporter.
const WRITE_BATCH: i32 = 2_000;
/// How long the rest of the parent is put off, in milliseconds (a day): longer than the measurement takes.
const PUT_OFF_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long the clearing is watched.
const CLEARING_MAX: Duration = Duration::from_mins(2);
/// The operation.
const TRACKING_ID: &str = "bench-cancel";

/// Cancels an operation that has `waiting` rows in the exporter's queue, which nobody works.
pub async fn run(common: &Common, waiting: u32) -> anyhow::Result<Report> {
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "cancel");
    report.set("waiting", waiting);
    let shape = ParentShape { dto_type: DtoType::StudioLink, alias: None };
    let mut merger = NullService::configure(&bench, ServiceName::EslImageMerger, (&[], &[shape])).await?;
    let subscriptions = [DtoType::EslImage, DtoType::StoreEsl];
    let mut exporter = NullService::configure(&bench, ServiceName::HardwareExporter, (&subscriptions, &[])).await?;

    progress(format!("{waiting} labels of one operation on their way to the exporter's queue"));
    let mut filling = Filling { bench: &bench, merger: &mut merger, left: waiting };
    filling.run().await?;
    let mut gateway = bench.cqs_as(ServiceName::OperatorGateway)?;
    control(&mut gateway, Action::Pause(Pause::default())).await?;

    // Changes of other labels, in the ordinary lane of the same queue.
    let others = 2 * CLAIMS * BATCH.unsigned_abs();
    progress(format!("{others} changes of other labels"));
    write_others(&bench, others).await?;
    let (before, times_before) = rate(&mut exporter).await?;
    progress(format!("{before} rows/s of another lane before"));

    let started = Instant::now();
    let answer = control(&mut gateway, Action::Cancel(Cancel {})).await?;
    let latency = started.elapsed();
    let receipt = answer.receipt.context("a cancellation without its receipt")?;
    anyhow::ensure!(receipt.not_started >= i64::from(waiting), "the receipt tells {}", receipt.not_started);
    report.set("cancel_ms", rounded(latency.as_secs_f64() * 1e3));
    report.set("not_started", receipt.not_started);
    report.set("unexpanded_parents", receipt.unexpanded_parents);
    progress(format!("cancelled in {latency:?}"));

    let clearing = Instant::now();
    let (during, times_during) = rate(&mut exporter).await?;
    let left = bench.platform.backlog().await?;
    progress(format!("{during} rows/s of another lane while {left} rows are left to be cleared"));
    report.set("others_per_s_before", before);
    report.set("others_per_s_clearing", during);
    report.set("others_ratio", ratio(Some(during), Some(before)));
    report.set("others_before", times_before.to_json());
    report.set("others_clearing", times_during.to_json());
    report.set("left_after_measuring", left);
    let mut left = left;
    while left > 0 && clearing.elapsed() < CLEARING_MAX {
        tokio::time::sleep(Duration::from_millis(100)).await;
        left = bench.platform.backlog().await?;
    }
    let took = clearing.elapsed();
    let cleared = u64::from(waiting).saturating_sub(u64::try_from(left)?);
    report.set("cleared", cleared);
    report.set("cleared_per_s", per_second(cleared, took));
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

async fn control(cqs: &mut CqsClient, action: Action) -> anyhow::Result<ControlOperationResponse> {
    let request = ControlOperationRequest {
        tenant_id: TENANT.to_owned(),
        tracking_id: TRACKING_ID.to_owned(),
        operator_subject: "bench".to_owned(),
        reason: "benchmark".to_owned(),
        action: Some(action),
    };
    Ok(cqs.control_operation(request).await?.into_inner())
}

/// Rows of other lanes claimed and completed per second, and the times of each pair of calls.
async fn rate(exporter: &mut NullService) -> anyhow::Result<(f64, Times)> {
    let started = Instant::now();
    let (rows, times) = exporter.claim_and_complete(u64::from(CLAIMS * BATCH.unsigned_abs()), BATCH).await?;
    Ok((per_second(rows, started.elapsed()), times))
}

async fn write_others(bench: &Bench, labels: u32) -> anyhow::Result<()> {
    let mut loader = Loader::new(bench)?;
    for label in 0..labels {
        let id = label_id("O", (label % STORES, label / STORES));
        let esl = StoreEsl {
            esltype_id: "X".to_owned(),
            accesspoint_id: "A".to_owned(),
            hardware_address: format!("02:{label:08x}"),
        };
        loader.put(DtoType::StoreEsl, format!("{}/esls/{id}", store(label % STORES)), &esl).await?;
    }
    loader.finish().await?;
    Ok(())
}

/// Brings labels of one operation into the exporter's queue: one parent, split page by page, its labels' pictures chosen
/// by the merger under its leases. The parent is not split to the end.
struct Filling<'a> {
    bench: &'a Bench,
    merger: &'a mut NullService,
    left: u32,
}

impl Filling<'_> {
    async fn run(&mut self) -> anyhow::Result<()> {
        let mut cqs = self.bench.cqs_as(ServiceName::EslImageMerger)?;
        let parent = SplitItem {
            dto_type: DtoType::StudioLink,
            target: Target::Parent(format!("t/{TENANT}/designs/D").parse()?),
            alias: None,
        };
        let request = SelfEnqueueRequest {
            queue_name: ServiceName::EslImageMerger.to_string(),
            items: vec![split_item_to_wire(&parent)],
            reason: "benchmark".to_owned(),
            tracking_id: TRACKING_ID.to_owned(),
            ..SelfEnqueueRequest::default()
        };
        cqs.self_enqueue(request).await?;
        let mut dtoflow = self.bench.dtoflow_as(ServiceName::EslImageMerger)?;
        let (mut children, mut written) = (0, 0);
        while written < self.left {
            let (generation, rows) = self.merger.dequeue((WRITE_BATCH, 1_000)).await?.context("no row came")?;
            match rows.first().filter(|row| super::null::is_parent_row(row)) {
                Some(parent) if children == self.left => {
                    let due_at = self.bench.clock.now().plus_ms(PUT_OFF_MS);
                    put_off(&mut cqs, (generation, parent.id), due_at).await?;
                }
                Some(parent) => {
                    let page = u32::try_from(SPLIT_CHILDREN_MAX)?.min(self.left - children);
                    let items = (children..children + page).map(child).collect::<anyhow::Result<Vec<_>>>()?;
                    children += page;
                    self.merger.re_enqueue((generation, parent.id), items, children.to_string()).await?;
                }
                None => {
                    let image = |row: &DtoChangeNotification| -> anyhow::Result<PutItem> {
                        Ok(image(&proto::notification_from_wire(row.clone())?.item.target))
                    };
                    let items = rows.iter().map(image).collect::<anyhow::Result<Vec<_>>>()?;
                    written += u32::try_from(items.len())?;
                    self.write(&mut dtoflow, (generation, items)).await?;
                    self.merger.complete(generation, rows.iter().map(|row| row.id)).await?;
                }
            }
        }
        Ok(())
    }

    async fn write(&self, dtoflow: &mut DtoFlowClient, (generation, items): (i64, Vec<PutItem>)) -> anyhow::Result<()> {
        let lease = WriteLease { queue_name: ServiceName::EslImageMerger.to_string(), generation };
        dtoflow.put_many(PutManyRequest { items, lease: Some(lease) }).await?;
        Ok(())
    }
}

/// Leaves the rest of the parent unsplit for longer than the measurement takes.
async fn put_off(cqs: &mut CqsClient, (generation, id): (i64, i64), due_at: Timestamp) -> anyhow::Result<()> {
    let outcome = ItemOutcome {
        id,
        outcome: OutcomeKind::Defer.into(),
        cause: "benchmark".to_owned(),
        due_at: Some(proto::timestamp_to_wire(due_at)),
    };
    let request = CompleteRequest {
        queue_name: ServiceName::EslImageMerger.to_string(),
        lease_generation: generation,
        outcomes: vec![outcome],
    };
    cqs.complete(request).await?;
    Ok(())
}

fn child(label: u32) -> anyhow::Result<proto::cqs::v1::SplitItem> {
    let id = label_id("L", (label % STORES, label / STORES));
    let urn = format!("{}/studiolinks/{id}", store(label % STORES)).parse()?;
    Ok(split_item_to_wire(&SplitItem { dto_type: DtoType::StudioLink, target: Target::Record(urn), alias: None }))
}

/// Which picture that link's label shall show.
fn image(link: &Target) -> PutItem {
    let image = EslImage {
        source: ImageSource::Studio.into(),
        digest: vec![7; 32].into(),
        width: 296,
        height: 128,
        palette: Palette::Bw.into(),
    };
    PutItem {
        dto_type: DtoType::EslImage.to_string(),
        dto_id: link.urn().to_string().replace("/studiolinks/", "/eslimages/"),
        payload: image.encode_to_vec().into(),
        tracking_id: TRACKING_ID.to_owned(),
        ..PutItem::default()
    }
}
