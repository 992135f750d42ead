//! How the platform stands, as gauges for `/metrics`.
//!
//! Asked for when somebody scrapes, and not more often than [`FRESH_MS`]: anyone may scrape, and all of them together cost
//! the platform one look in that time. When it does not answer, its gauges are gone rather than old, and
//! `reshelf_platform_up` says so.

use std::time::Duration;

use domain::Timestamp;
use metrics::{describe_gauge, gauge, with_local_recorder};
use metrics_exporter_prometheus::PrometheusBuilder;
use proto::cqs::v1::{GetOverviewRequest, Overview, QueueLoad};
use tokio::sync::Mutex;

use crate::{
    backend::{Peer, call_within},
    state::Gateway,
    wire::WireTime as _,
};

/// How long one look is good for, in milliseconds: Prometheus' shortest usual interval.
const FRESH_MS: i64 = 5_000;
/// Longest wait for the platform: scrapers give up after ten seconds.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// What each gauge is, for its `# HELP` line.
const GAUGES: &[(&str, &str)] = &[
    ("reshelf_platform_up", "1 when CQS answered the last look, else 0"),
    ("reshelf_brake_on", "1 while the brake stops all operations"),
    ("reshelf_operations", "Operations that are not over, by what stops them"),
    ("reshelf_work_ready", "Labels, and scopes to be split into labels, that may be begun"),
    ("reshelf_work_delayed", "Likewise, waiting for a time of their own: for a confirmation, or backing off"),
    ("reshelf_work_leased", "Likewise, in workers' hands"),
    ("reshelf_work_late_seconds", "How long the one that was due first has been due; 0 when nothing is late"),
    ("reshelf_work_failed", "Items that failed and that no retry took over"),
    ("reshelf_work_asked_seconds", "Since when no worker of the service asked for work; missing when none ever did"),
];

/// The last look.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    last: Mutex<Option<(Timestamp, String)>>,
}

impl Gauges {
    /// The gauges as text. Who comes while another looks waits for that look.
    pub(crate) async fn render(&self, gateway: &Gateway) -> String {
        let mut last = self.last.lock().await;
        let now = gateway.clock.now();
        if let Some((_, text)) = last.as_ref().filter(|(at, _)| (0..FRESH_MS).contains(&now.ms_since(*at))) {
            return text.clone();
        }
        let answer = call_within(Peer::Cqs, LOOK_TIMEOUT, gateway.cqs().get_overview(GetOverviewRequest {})).await;
        let text = text(&answer.map_or_else(|_| down(), |overview| gauges(&overview, now)));
        *last = Some((now, text.clone()));
        text
    }
}

/// One gauge: name, labels, value.
type Gauge = (&'static str, Vec<(&'static str, String)>, f64);

/// By a recorder of their own, so that what is not there any more does not show.
fn text(gauges: &[Gauge]) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    with_local_recorder(&recorder, || {
        for (name, help) in GAUGES {
            describe_gauge!(*name, *help);
        }
        for (name, labels, value) in gauges {
            gauge!(*name, labels).set(*value);
        }
    });
    recorder.handle().render()
}

fn down() -> Vec<Gauge> {
    vec![("reshelf_platform_up", Vec::new(), 0.0)]
}

fn gauges(overview: &Overview, now: Timestamp) -> Vec<Gauge> {
    let braked = overview.brake.as_ref().is_some_and(|brake| brake.on.is_some());
    let mut all =
        vec![("reshelf_platform_up", Vec::new(), 1.0), ("reshelf_brake_on", Vec::new(), f64::from(u8::from(braked)))];
    let tally = overview.operations.unwrap_or_default();
    let standings = [
        ("cancelling", tally.cancelling),
        ("awaiting_approval", tally.awaiting_approval),
        ("held", tally.held),
        ("paused", tally.paused),
        ("running", tally.running),
    ];
    all.extend(
        standings.map(|(state, count)| ("reshelf_operations", vec![("state", state.to_owned())], number(count))),
    );
    for queue in &overview.queues {
        let of = |work: Option<&str>| {
            let name = ("service", queue.queue_name.clone());
            std::iter::once(name).chain(work.map(|work| ("work", work.to_owned()))).collect::<Vec<_>>()
        };
        all.push(("reshelf_work_failed", of(None), number(queue.failed)));
        if let Some(polled_at) = queue.polled_at.and_then(|at| at.timestamp()) {
            all.push(("reshelf_work_asked_seconds", of(None), seconds(now.ms_since(polled_at))));
        }
        for (work, load) in [("changes", queue.ordinary), ("fan_out", queue.fan_out), ("operations", queue.operations)]
        {
            let load: QueueLoad = load.unwrap_or_default();
            let late = load.first_sla.and_then(|sla| sla.timestamp()).map_or(0, |sla| now.ms_since(sla));
            all.push(("reshelf_work_ready", of(Some(work)), number(load.ready)));
            all.push(("reshelf_work_delayed", of(Some(work)), number(load.delayed)));
            all.push(("reshelf_work_leased", of(Some(work)), number(load.leased)));
            all.push(("reshelf_work_late_seconds", of(Some(work)), seconds(late)));
        }
    }
    all
}

/// Exact up to 2^53, beyond what any queue holds.
#[expect(clippy::cast_precision_loss, reason = "a metric is a float, and these are far from where it is inexact")]
fn number(count: i64) -> f64 {
    count as f64
}

fn seconds(ms: i64) -> f64 {
    number(ms.max(0)) / 1e3
}
