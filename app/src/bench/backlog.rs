//! `backlog`: whether claiming grows dearer with depth, and while somebody keeps an old snapshot of the database open.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::{DtoType, ServiceName};
use tokio::task::JoinSet;

use super::{
    Common, Report,
    figures::{Times, per_second, ratio, rounded},
    filler::Filler,
    null::NullService,
    platform::Bench,
    progress, watch,
};

/// The depth to compare with.
const SHALLOW: u32 = 10_000;
/// Rows of one claim.
const BATCH: u32 = 500;
/// Claims of a round over all claimers at least: few against either depth, so that it stays what it is.
const CLAIMS: u32 = 8;
/// Times that the depth is filled up again and claimed from.
const ROUNDS: u32 = 20;
/// Most claimers: each has a claim or two of a round, of which there are fewer rows than the shallow depth.
const CLAIMERS_MAX: u32 = 16;
/// How long is claimed before what was taken is filled up again, while a snapshot is held.
const STRETCH: Duration = Duration::from_secs(5);
/// How long is claimed like that before the snapshot is taken; the last of its minutes is compared with it.
const MINUTE: Duration = Duration::from_mins(1);

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Rows that wait.
    pub waiting: u32,
    /// How many claim at once.
    pub claimers: u32,
    /// How long a snapshot is held afterwards, in minutes of claiming; 0: none is.
    pub pinned_minutes: u32,
}

/// Measures claim and completion at 10,000 waiting rows and at `size.waiting`, then under an old snapshot.
pub async fn run(common: &Common, size: Size) -> anyhow::Result<Report> {
    anyhow::ensure!(size.waiting > SHALLOW, "--waiting must be more than {SHALLOW}");
    anyhow::ensure!((1..=CLAIMERS_MAX).contains(&size.claimers), "--claimers must be 1 to {CLAIMERS_MAX}");
    let bench = Bench::open(common).await?;
    anyhow::ensure!(
        size.pinned_minutes == 0 || bench.database.postgres().is_some(),
        "--pinned-minutes is for PostgreSQL; name one with --database"
    );
    let mut report = Report::default();
    report.set("bench", "backlog");
    report.set("waiting", size.waiting);
    report.set("claimers", size.claimers);
    let service = NullService::configure(&bench, ServiceName::StudioRenderer, (&[DtoType::StudioLink], &[])).await?;
    let filler = Filler::start(&bench, &service).await?;
    let queue = Queue { service, filler, claimers: size.claimers };

    let mut rates = Vec::new();
    let mut held = 1;
    for (name, depth) in [("shallow", SHALLOW), ("deep", size.waiting)] {
        let started = Instant::now();
        queue.filler.add(depth - held).await?;
        let rate = per_second(u64::from(depth - held), started.elapsed());
        progress(format!("{depth} rows wait, {rate} a second brought"));
        report.set(&format!("filled_per_s_{name}"), rate);
        let taken = queue.rounds(depth).await?;
        let rate = taken.rate();
        progress(format!("{depth} waiting: {rate} rows/s claimed and completed by {}", size.claimers));
        report.set(&format!("rows_per_s_{name}"), rate);
        report.set(&format!("claim_and_complete_{name}"), taken.times.to_json());
        rates.push(rate);
        held = depth;
    }
    report.set("rows_per_s_ratio", ratio(rates.get(1).copied(), rates.first().copied()));
    if size.pinned_minutes > 0 {
        pinned(&bench, &queue, size.pinned_minutes, &mut report).await?;
    }
    report.set("peak_rss_mb", watch::peak_rss_mb());
    report.set("load_average", rounded(watch::load_average()));
    bench.close().await?;
    Ok(report)
}

/// A queue with rows in its one lane, and who claims them.
struct Queue {
    service: NullService,
    filler: Filler,
    claimers: u32,
}

/// Rows that were claimed and completed.
#[derive(Default)]
struct Taken {
    rows: u64,
    /// While all claimers claimed, without the filling in between.
    wall: Duration,
    /// Of each claim with its completion.
    times: Times,
}

impl Taken {
    fn rate(&self) -> f64 {
        per_second(self.rows, self.wall)
    }

    fn append(&mut self, more: Self) {
        self.rows += more.rows;
        self.wall += more.wall;
        self.times.append(more.times);
    }
}

impl Queue {
    /// Claims from the depth that it has, and fills it up again, several times.
    async fn rounds(&self, depth: u32) -> anyhow::Result<Taken> {
        let each = u64::from(CLAIMS.div_ceil(self.claimers) * BATCH);
        let mut taken = Taken::default();
        for _ in 0..ROUNDS {
            let round = self.claim(|| each, Instant::now() + MINUTE).await?;
            anyhow::ensure!(round.rows < depth.into(), "{} rows are no small part of {depth}", round.rows);
            self.filler.add(u32::try_from(round.rows)?).await?;
            taken.append(round);
        }
        Ok(taken)
    }

    /// Lets every claimer claim so many rows, or until then.
    async fn claim(&self, each: impl Fn() -> u64, until: Instant) -> anyhow::Result<Taken> {
        let started = Instant::now();
        let mut claimers = JoinSet::new();
        for _ in 0..self.claimers {
            let (mut service, most) = (self.service.clone(), each());
            claimers.spawn(async move { service.claim_and_complete_until((most, until), i32::try_from(BATCH)?).await });
        }
        let mut taken = Taken::default();
        while let Some(done) = claimers.join_next().await {
            let (rows, times) = done??;
            taken.rows += rows;
            taken.times.append(times);
        }
        taken.wall = started.elapsed();
        Ok(taken)
    }

    /// Claims for a minute of claiming, in stretches between which what was taken is filled up again.
    async fn minute(&self) -> anyhow::Result<Taken> {
        let mut taken = Taken::default();
        while taken.wall < MINUTE {
            let stretch = self.claim(|| u64::MAX, Instant::now() + STRETCH).await?;
            self.filler.add(u32::try_from(stretch.rows)?).await?;
            taken.append(stretch);
        }
        Ok(taken)
    }
}

/// A minute without a snapshot, so many with one that stays what it was; each is a minute of claiming, and what is filled
/// in between comes on top.
async fn pinned(bench: &Bench, queue: &Queue, minutes: u32, report: &mut Report) -> anyhow::Result<()> {
    let database = bench.database.postgres().context("a snapshot is held in PostgreSQL only")?;
    let before = queue.minute().await?.rate();
    progress(format!("{before} rows/s for a minute without an old snapshot"));
    let (pin, started) = (database.pin().await?, Instant::now());
    let mut by_minute = Vec::new();
    for minute in 1..=minutes {
        let taken = queue.minute().await?;
        let (rate, times) = (taken.rate(), taken.times.to_json());
        progress(format!("minute {minute} of an old snapshot: {rate} rows/s, {times}"));
        by_minute.push(rate);
        report.set("claim_and_complete_pinned", times);
    }
    report.set("pinned_minutes", minutes);
    report.set("pinned_seconds", rounded(started.elapsed().as_secs_f64()));
    report.set("pinned_dead_rows", database.dead_rows().await?);
    pin.release().await?;
    report.set("rows_per_s_unpinned", before);
    report.set("rows_per_s_pinned_last_minute", by_minute.last().copied());
    report.set("rows_per_s_pinned_by_minute", by_minute.clone());
    report.set("pinned_ratio", ratio(by_minute.last().copied(), Some(before)));
    Ok(())
}
