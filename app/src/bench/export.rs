//! `export`: how busy the exporter keeps simulated access points that need some time for an upload, over real HTTP.
//!
//! Pictures are rendered and merged first and wait in the exporter's queue, all of one store; then a worker with the exporter
//! alone sends them. An access point is *busy* while a request of ours is being served there, seen from inside it: what
//! the worker, the network and the machine take in between is idle time.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use daemon::outbound::AllowList;
use domain::{AliasName, DtoType, ParentShape, ServiceName};
use picture::Panel;
use proto::{
    cqs::v1::GetOperationRequest,
    ecc_image_render::v1::TriggerModelRefreshRequest,
    records::v1::{AccessPoint as AccessPointRecord, EccLink, StoreEsl},
};
use simulators::openepaperlink::{AccessPoint, AccessPointSettings, Control, Mac, TagSettings, Traffic};
use worker::{ExporterSettings, Worker, WorkerParts};

use super::{
    Common, Report, TENANT,
    figures::{per_second, ratio, rounded},
    load::{Loader, label_id, store},
    null::NullService,
    operation::wait,
    platform::Bench,
    progress,
    shop::{ITEMS, Shop, esl_type, store_records},
    watch::{self, Spent},
};

/// Tags of one access point: more do not fit into the longest answer that the driver reads.
const TAGS_MAX: u32 = 1_000;
/// The panel of every tag, as the protocol numbers it: 296 × 128, white, black, red.
const PANEL: u8 = 0x01;
/// Between two check-ins of a tag, in milliseconds. Real ones take about 40 s.
const CHECK_IN_MS: i64 = 10_000;
/// Addresses of tags: locally administered ones, those of no real hardware.
const FIRST_ADDRESS: u64 = 0x0200_0000_0000;
/// The refresh that makes the pictures.
const TRACKING_ID: &str = "bench-export";
const MODEL: &str = "standard";
/// Between two looks. Each holds the access points for a moment, in which they answer nobody.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long nothing may be uploaded before the run counts as failed.
const STANDSTILL_MAX: Duration = Duration::from_mins(2);

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Access points, all of one store.
    pub access_points: u32,
    /// Labels, spread evenly over them.
    pub labels: u32,
    /// How long each upload takes.
    pub upload: Duration,
}

/// Sends one picture to each label and follows it until it is confirmed.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    let per_access_point = size.labels.div_ceil(size.access_points);
    anyhow::ensure!(
        per_access_point <= TAGS_MAX,
        "{per_access_point} labels on one access point; {TAGS_MAX} are the most"
    );
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "export");
    report.set("access_points", size.access_points);
    report.set("labels", size.labels);
    report.set("upload_ms", rounded(size.upload.as_secs_f64() * 1e3));
    let access_points = start(&bench, size).await?;
    load(&bench, &access_points, size.labels).await?;
    render(&bench, size.labels).await?;
    let spent = Spent::start();
    let _worker = Worker::start(exporter(&bench)).await?;
    let uploaded = upload(&access_points, u64::from(size.labels)).await?;
    let traffic: Vec<Traffic> = access_points.iter().map(AccessPoint::traffic).collect();
    figures(&mut report, &traffic, size);
    report.set("cpu_s", rounded(spent.cpu().as_secs_f64()));
    progress(format!(
        "uploaded in {uploaded:?}; waiting for the tags to confirm, which is asked some 45 s after an upload"
    ));
    wait(&bench, &[TRACKING_ID.to_owned()]).await?;
    report.set("confirmed", confirmed(&bench).await?);
    report.set("confirmed_s", rounded(spent.wall().as_secs_f64()));
    let most_at_once: Vec<usize> = access_points.iter().map(|one| one.traffic().most_at_once).collect();
    report.set("most_requests_at_once", most_at_once);
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

/// Starts the access points with their tags.
async fn start(bench: &Bench, size: Size) -> anyhow::Result<Vec<AccessPoint>> {
    let panel = Panel::of(PANEL).context("the panel is not known")?;
    let mut started = Vec::new();
    for number in 0..size.access_points {
        let mut settings = AccessPointSettings::new(std::sync::Arc::clone(&bench.clock));
        settings.tags = (0..size.labels)
            .filter(|label| label % size.access_points == number)
            .map(|label| TagSettings {
                mac: Mac::new(FIRST_ADDRESS | u64::from(label)),
                panel,
                check_in_ms: CHECK_IN_MS,
            })
            .collect();
        let access_point = AccessPoint::start(settings).await.context("a simulated access point")?;
        access_point.control(Control::UploadDelay(size.upload));
        started.push(access_point);
    }
    Ok(started)
}

async fn load(bench: &Bench, access_points: &[AccessPoint], labels: u32) -> anyhow::Result<()> {
    let (shop, store) = (Shop::of_demo()?, store(0));
    let mut loader = Loader::new(bench)?;
    esl_type(&mut loader).await?;
    store_records(&mut loader, (&store, &[MODEL]), &shop).await?;
    for (number, access_point) in access_points.iter().enumerate() {
        let record =
            AccessPointRecord { driver: "openepaperlink".to_owned(), address: access_point.address().to_string() };
        loader.put(DtoType::AccessPoint, format!("{store}/accesspoints/sim-{number}"), &record).await?;
    }
    for label in 0..labels {
        let id = label_id("E", (0, label));
        let esl = StoreEsl {
            esltype_id: "X".to_owned(),
            accesspoint_id: format!("sim-{}", label as usize % access_points.len().max(1)),
            hardware_address: format!("{:012X}", FIRST_ADDRESS | u64::from(label)),
        };
        loader.put(DtoType::StoreEsl, format!("{store}/esls/{id}"), &esl).await?;
        let item_id = format!("I{:05}", label % ITEMS);
        let link = EccLink { item_id, model_id: MODEL.to_owned(), ..EccLink::default() };
        loader.put(DtoType::EccLink, format!("{store}/ecclinks/{id}"), &link).await?;
    }
    loader.finish().await?;
    Ok(())
}

/// Makes every label's picture wait in the exporter's queue, and nothing anywhere else.
async fn render(bench: &Bench, labels: u32) -> anyhow::Result<()> {
    // Nobody works it yet. Hardware is written already, so only pictures are announced.
    let shapes = [ParentShape { dto_type: DtoType::EslImage, alias: Some(AliasName::ByStore) }];
    NullService::configure(bench, ServiceName::HardwareExporter, (&[DtoType::EslImage], &shapes)).await?;
    let services = vec![ServiceName::EccImageRender, ServiceName::EslImageMerger];
    let _worker = Worker::start(bench.worker(services)).await?;
    let request = TriggerModelRefreshRequest {
        tenant_id: TENANT.to_owned(),
        store_id: store(0).rsplit('/').next().unwrap_or_default().to_owned(),
        model_id: MODEL.to_owned(),
        reason: "benchmark".to_owned(),
        tracking_id: TRACKING_ID.to_owned(),
        operator_subject: "bench@localhost".to_owned(),
        ..TriggerModelRefreshRequest::default()
    };
    proto::ecc_triggers_client(bench.triggers()?).trigger_model_refresh(request).await?;
    let exporter = ServiceName::HardwareExporter.queue().context("the exporter has no queue")?;
    let begun = Instant::now();
    loop {
        let backlogs = bench.platform.backlogs().await?;
        let (ours, others): (Vec<_>, Vec<_>) = backlogs.into_iter().partition(|backlog| backlog.queue == exporter);
        let waiting: i64 = ours.iter().map(|backlog| backlog.waiting).sum();
        let elsewhere: i64 = others.iter().map(|backlog| backlog.waiting + backlog.leased).sum();
        if elsewhere == 0 && waiting == i64::from(labels) {
            return Ok(());
        }
        let text = "labels wait for the exporter, and others are not rendered";
        anyhow::ensure!(begun.elapsed() < STANDSTILL_MAX, "{waiting} {text}: {elsewhere}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A worker with the exporter, which leaves an access point no rest between two uploads.
fn exporter(bench: &Bench) -> WorkerParts {
    let parts = bench.worker(vec![ServiceName::HardwareExporter]);
    let exporter = ExporterSettings {
        discard: false,
        reach: AllowList::loopback(),
        access_point_pause_ms: Some(0),
        ..parts.exporter.clone()
    };
    WorkerParts { exporter, ..parts }
}

/// Waits until everything was uploaded; how long that took.
async fn upload(access_points: &[AccessPoint], labels: u64) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let (mut last, mut changed) = (0, begun);
    loop {
        let taken: u64 = access_points.iter().map(|one| one.traffic().taken).sum();
        if taken >= labels {
            return Ok(begun.elapsed());
        }
        if taken > last {
            (last, changed) = (taken, Instant::now());
        }
        anyhow::ensure!(changed.elapsed() < STANDSTILL_MAX, "{taken} of {labels} pictures were uploaded");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn figures(report: &mut Report, traffic: &[Traffic], size: Size) {
    let share = |part: Duration, whole: Duration| ratio(Some(part.as_secs_f64()), Some(whole.as_secs_f64()));
    let busy = |one: &Traffic| share(one.busy_in_span, one.uploads_span);
    let uploading = |one: &Traffic| share(one.uploading, one.uploads_span);
    report.set("busy_share", traffic.iter().map(busy).collect::<Vec<_>>());
    report.set(
        "longest_gap_ms",
        traffic.iter().map(|one| rounded(one.longest_gap.as_secs_f64() * 1e3)).collect::<Vec<_>>(),
    );
    report.set("upload_share", traffic.iter().map(uploading).collect::<Vec<_>>());
    report.set("uploads", traffic.iter().map(|one| one.uploads).collect::<Vec<_>>());
    report.set("requests", traffic.iter().map(|one| one.requests).collect::<Vec<_>>());
    let longest = traffic.iter().map(|one| one.uploads_span).max().unwrap_or_default();
    report.set("seconds", rounded(longest.as_secs_f64()));
    report.set("labels_per_s", per_second(u64::from(size.labels), longest));
    let told =
        |shares: Vec<Option<f64>>| shares.into_iter().flatten().map(|share| format!("{share:.3}")).collect::<Vec<_>>();
    progress(format!(
        "busy {:?} of the time, with uploads alone {:?}",
        told(traffic.iter().map(busy).collect()),
        told(traffic.iter().map(uploading).collect())
    ));
}

/// Labels whose picture was confirmed.
async fn confirmed(bench: &Bench) -> anyhow::Result<i64> {
    let ask = GetOperationRequest { tenant_id: TENANT.to_owned(), tracking_id: TRACKING_ID.to_owned() };
    let operation = bench.cqs_as(ServiceName::OperatorGateway)?.get_operation(ask).await?.into_inner();
    let exporter = ServiceName::HardwareExporter.queue().context("the exporter has no queue")?.to_string();
    let queue = operation.queues.iter().find(|queue| queue.queue_name == exporter);
    Ok(queue.map_or(0, |queue| queue.done))
}
