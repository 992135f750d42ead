//! `cancel`: how long cancelling takes with many rows waiting in the exporter's queue, and what clearing them costs others.
//!
//! The operation is over a design with all its links written: as many as its scope counts. Its parent was split by store, and
//! as many stores by label as have their pictures' rows waiting in the exporter's queue; the parents of the other stores
//! wait, unexpanded, as they do in any operation of that size.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::{
    AliasName, DtoType, ParentShape, ServiceName, SplitItem, Target, Timestamp, Urn, limits::SPLIT_CHILDREN_MAX,
};
use prost::Message as _;
use proto::{
    CqsClient, DtoFlowClient,
    cqs::v1::{
        Cancel, CompleteRequest, ControlOperationResponse, DtoChangeNotification, ItemOutcome, OutcomeKind, Pause,
        SelfEnqueueRequest, control_operation_request::Action,
    },
    dtoflow::v1::{CountByAliasRequest, PutItem, PutManyRequest, WriteLease},
    records::v1::{EslImage, ImageSource, Palette, StoreEsl},
    split_item_to_wire,
};

use super::{
    Common, Report, TENANT,
    figures::{Times, per_second, ratio, rounded},
    load::{Loader, label_id, store, studio_links},
    null::NullService,
    operation::control,
    platform::Bench,
    progress, watch,
};

/// Stores over which the labels are spread: as many heads in the exporter's queue.
const STORES: u32 = 200;
/// What the merger's queue splits here, as the Studio renderer's does.
const SHAPES: &[ParentShape] = &[
    ParentShape { dto_type: DtoType::StudioLink, alias: None },
    ParentShape { dto_type: DtoType::StudioLink, alias: Some(AliasName::ByDesign) },
];
/// Rows of one claim of other lanes, all of one store.
const BATCH: u32 = 500;
/// Claims before the cancellation, and as many while its rows are cleared: each store's rows are claimed in so many turns.
const CLAIMS_MAX: u32 = 2 * STORES;
/// Rows that wait for each claim at least: a small measurement makes few claims.
const WAITING_PER_CLAIM: u32 = 2_500;
/// Fewest claims.
const CLAIMS_MIN: u32 = 20;
/// Rows of one batch on the way to the exporter.
const WRITE_BATCH: i32 = 2_000;
/// How long a parent is put off that shall stay unsplit, in milliseconds (a day): longer than the measurement takes.
const PUT_OFF_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long the clearing is watched.
const CLEARING_MAX: Duration = Duration::from_mins(20);
/// Between two looks at how much is left: each counts the rows.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The operation.
const TRACKING_ID: &str = "bench-cancel";

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Labels of the operation.
    pub labels: u32,
    /// How many of them wait in the exporter's queue.
    pub waiting: u32,
}

impl Size {
    /// Claims of other lanes, before and during.
    fn claims(self) -> u32 {
        (self.waiting / WAITING_PER_CLAIM).clamp(CLAIMS_MIN, CLAIMS_MAX)
    }
}

/// Cancels an operation that has many rows in the exporter's queue, which nobody works.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    anyhow::ensure!(size.labels >= size.waiting, "--labels must be at least --waiting");
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "cancel");
    links(&bench, size, &mut report).await?;
    let mut merger = NullService::configure(&bench, ServiceName::EslImageMerger, (&[], SHAPES)).await?;
    let subscriptions = [DtoType::EslImage, DtoType::StoreEsl];
    let mut exporter = NullService::configure(&bench, ServiceName::HardwareExporter, (&subscriptions, &[])).await?;

    progress(format!("{} labels of one operation on their way to the exporter's queue", size.waiting));
    Filling { bench: &bench, merger: &mut merger, waiting: size.waiting }.run().await?;
    let mut gateway = bench.cqs_as(ServiceName::OperatorGateway)?;
    control(&mut gateway, TRACKING_ID, Action::Pause(Pause::default())).await?;
    let of_operation = bench.platform.backlog().await?;
    report.set("waiting", exporter_waiting(&bench).await?);

    // Changes of other labels, in the ordinary lane of the same queue.
    let claims = size.claims();
    progress(format!("{} changes of other labels", 2 * claims * BATCH));
    write_others(&bench, claims).await?;
    let (before, times_before) = rate(&mut exporter, claims).await?;
    progress(format!("{before} rows/s of another lane before"));

    // In the midst of the others' work.
    let started = Instant::now();
    let ((during, times_during), (answer, latency)) =
        tokio::try_join!(rate(&mut exporter, claims), timed(&mut gateway, Action::Cancel(Cancel {})))?;
    let beside_others = started.elapsed();
    let receipt = answer.receipt.context("a cancellation without its receipt")?;
    anyhow::ensure!(receipt.not_started >= i64::from(size.waiting), "the receipt tells {}", receipt.not_started);
    report.set("cancel_ms", rounded(latency.as_secs_f64() * 1e3));
    report.set("not_started", receipt.not_started);
    report.set("unexpanded_parents", receipt.unexpanded_parents);
    progress(format!("cancelled in {latency:?}; {during} rows/s of another lane meanwhile"));
    report.set("others_per_s_before", before);
    report.set("others_per_s_clearing", during);
    report.set("others_ratio", ratio(Some(during), Some(before)));
    report.set("others_before", times_before.to_json());
    report.set("others_clearing", times_during.to_json());

    let left = bench.platform.backlog().await?;
    report.set("left_after_measuring", left);
    report.set("cleared_per_s_beside_others", per_second(u64::try_from(of_operation - left)?, beside_others));
    let (cleared, alone) = clearing(&bench, left).await?;
    report.set("cleared_per_s_alone", per_second(cleared, alone));
    report.set("cleared_s", rounded((beside_others + alone).as_secs_f64()));
    report.set("left", bench.platform.backlog().await?);
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

/// Waits until everything is cleared; how many rows were, and how long it took.
async fn clearing(bench: &Bench, at_first: i64) -> anyhow::Result<(u64, Duration)> {
    let started = Instant::now();
    let mut left = at_first;
    while left > 0 && started.elapsed() < CLEARING_MAX {
        tokio::time::sleep(LOOK_EVERY).await;
        left = bench.platform.backlog().await?;
    }
    progress(format!("{} more rows cleared in {:?}", at_first - left, started.elapsed()));
    Ok((u64::try_from(at_first - left)?, started.elapsed()))
}

/// Writes the links of the operation's labels, before any queue is told of them, and counts them as a trigger does.
async fn links(bench: &Bench, size: Size, report: &mut Report) -> anyhow::Result<()> {
    progress(format!("writing {} links of {STORES} stores", size.labels));
    let mut loader = Loader::new(bench)?;
    studio_links(&mut loader, "D", "L", (STORES, size.labels.div_ceil(STORES))).await?;
    loader.finish().await?;
    let request = CountByAliasRequest {
        dto_type: DtoType::StudioLink.to_string(),
        alias_name: AliasName::ByDesign.to_string(),
        parent_ids: vec![design()],
    };
    let counted = bench.dtoflow_as(ServiceName::EslImageMerger)?.count_by_alias(request).await?.into_inner();
    report.set("labels_in_scope", counted.counts.first().copied());
    Ok(())
}

/// The design of every label.
fn design() -> String {
    format!("t/{TENANT}/designs/D")
}

/// Rows that wait in the exporter's queue.
async fn exporter_waiting(bench: &Bench) -> anyhow::Result<i64> {
    let queue = ServiceName::HardwareExporter.queue();
    let backlogs = bench.platform.backlogs().await?;
    Ok(backlogs.iter().filter(|backlog| Some(&backlog.queue) == queue.as_ref()).map(|backlog| backlog.waiting).sum())
}

/// Carries an action out; how long it took.
async fn timed(cqs: &mut CqsClient, action: Action) -> anyhow::Result<(ControlOperationResponse, Duration)> {
    let started = Instant::now();
    Ok((control(cqs, TRACKING_ID, action).await?, started.elapsed()))
}

/// Rows of other lanes claimed and completed per second, and the times of each pair of calls.
async fn rate(exporter: &mut NullService, claims: u32) -> anyhow::Result<(f64, Times)> {
    let started = Instant::now();
    let (rows, times) = exporter.claim_and_complete(u64::from(claims * BATCH), i32::try_from(BATCH)?).await?;
    Ok((per_second(rows, started.elapsed()), times))
}

/// Writes as many other labels as two rates claim, so that each claim finds a batch of one store.
async fn write_others(bench: &Bench, claims: u32) -> anyhow::Result<()> {
    let mut loader = Loader::new(bench)?;
    for claim in 0..2 * claims {
        let (index, turn) = (claim % STORES, claim / STORES);
        for label in 0..BATCH {
            let id = label_id("O", (index, turn * BATCH + label));
            let esl = StoreEsl {
                esltype_id: "X".to_owned(),
                accesspoint_id: "A".to_owned(),
                hardware_address: format!("02:{index:04x}{:06x}", turn * BATCH + label),
            };
            loader.put(DtoType::StoreEsl, format!("{}/esls/{id}", store(index)), &esl).await?;
        }
    }
    loader.finish().await?;
    Ok(())
}

/// Brings labels of one operation into the exporter's queue: its parent is split by store, each store's by label, page by
/// page, and the labels' pictures chosen by the merger under its leases, until enough wait there.
struct Filling<'a> {
    bench: &'a Bench,
    merger: &'a mut NullService,
    waiting: u32,
}

impl Filling<'_> {
    async fn run(&mut self) -> anyhow::Result<()> {
        let mut cqs = self.bench.cqs_as(ServiceName::EslImageMerger)?;
        let parent =
            SplitItem { dto_type: DtoType::StudioLink, target: Target::Parent(design().parse()?), alias: None };
        let request = SelfEnqueueRequest {
            queue_name: ServiceName::EslImageMerger.to_string(),
            items: vec![split_item_to_wire(&parent)],
            reason: "benchmark".to_owned(),
            tracking_id: TRACKING_ID.to_owned(),
            ..SelfEnqueueRequest::default()
        };
        cqs.self_enqueue(request).await?;
        let mut dtoflow = self.bench.dtoflow_as(ServiceName::EslImageMerger)?;
        let (mut expanded, mut written) = (0, 0);
        while written < self.waiting {
            let (generation, rows) = self.merger.dequeue((WRITE_BATCH, 1_000)).await?.context("no row came")?;
            match rows.first().filter(|row| super::null::is_parent_row(row)) {
                Some(parent) if expanded == self.waiting => {
                    let due_at = self.bench.clock.now().plus_ms(PUT_OFF_MS);
                    put_off(&mut cqs, (generation, parent.id), due_at).await?;
                }
                Some(parent) => expanded += self.split((generation, parent.clone()), self.waiting - expanded).await?,
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

    /// Splits a parent one page further, into at most so many labels; into how many it was.
    async fn split(&mut self, (generation, row): (i64, DtoChangeNotification), most: u32) -> anyhow::Result<u32> {
        let told = proto::notification_from_wire(row)?;
        let page = u32::try_from(SPLIT_CHILDREN_MAX)?.min(most);
        let (items, next) = self.merger.children(&told.item, (&told.cursor, i32::try_from(page)?)).await?;
        let is_by_store = matches!(told.item.target.urn(), Urn::TenantRecord(..));
        let labels = if is_by_store { 0 } else { u32::try_from(items.len())? };
        self.merger.re_enqueue((generation, told.id), items, next).await?;
        Ok(labels)
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
        handed_over: None,
        evidence: proto::records::v1::Evidence::Unspecified.into(),
    };
    let request = CompleteRequest {
        queue_name: ServiceName::EslImageMerger.to_string(),
        lease_generation: generation,
        outcomes: vec![outcome],
    };
    cqs.complete(request).await?;
    Ok(())
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
