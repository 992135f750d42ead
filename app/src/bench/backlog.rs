//! `backlog`: whether claiming grows dearer with depth.

use std::time::Duration;

use domain::{DtoType, ServiceName};

use super::{
    Common, Report, TENANT,
    figures::{Times, per_second, ratio, rounded},
    load::{Loader, studio_links},
    null::NullService,
    platform::Bench,
    progress, watch,
};

/// The depth to compare with.
const SHALLOW: u32 = 10_000;
/// Rows claimed and completed at each depth: few against either depth, so that it stays what it is.
const CLAIMED: u64 = 4_000;
/// Times that the depth is filled up again and claimed from.
const ROUNDS: u32 = 5;
/// Rows of one claim.
const BATCH: i32 = 500;
/// How far ahead the first SLA lies, in milliseconds.
const AHEAD_MS: i64 = 3_600_000;

/// Measures claim and completion at 10,000 waiting rows and at `waiting`.
pub async fn run(common: &Common, waiting: u32) -> anyhow::Result<Report> {
    anyhow::ensure!(waiting > SHALLOW, "--waiting must be more than {SHALLOW}");
    let bench = Bench::open(common).await?;
    let mut report = Report::default();
    report.set("bench", "backlog");
    report.set("waiting", waiting);
    let subscriptions = [DtoType::StudioLink];
    let mut service = NullService::configure(&bench, ServiceName::StudioRenderer, (&subscriptions, &[])).await?;

    let mut rates = Vec::new();
    let mut held = 0;
    for (name, depth) in [("shallow", SHALLOW), ("deep", waiting)] {
        let mut times = Times::default();
        for round in 0..ROUNDS {
            let wanted = depth - held;
            if round == 0 {
                progress(format!("writing {wanted} links, each announced by its write"));
            }
            let mut loader = Loader::new(&bench)?;
            loader.slas_from(bench.clock.now().plus_ms(AHEAD_MS));
            studio_links(&mut loader, "D", &format!("{name}-{round}-"), (1, wanted)).await?;
            loader.finish().await?;
            let (rows, taken) = service.claim_and_complete(CLAIMED, BATCH).await?;
            held = depth - u32::try_from(rows)?;
            times.append(taken);
        }
        let median = times.quantile_ms(0.5).unwrap_or_default();
        let rate = per_second(BATCH.unsigned_abs().into(), Duration::from_secs_f64(median / 1e3));
        progress(format!("{depth} waiting: {rate} rows/s claimed and completed ({median} ms per {BATCH})"));
        report.set(&format!("claims_per_s_{name}"), rate);
        report.set(&format!("claim_and_complete_{name}"), times.to_json());
        rates.push(rate);
    }
    report.set("claims_ratio", ratio(rates.get(1).copied(), rates.first().copied()));
    if let Some(bytes) = bench.database_bytes() {
        report.set("database_bytes_per_label", bytes / u64::from(waiting));
    }
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    report.set("tenant", TENANT);
    bench.close().await?;
    Ok(report)
}
