//! Brings rows into the ordinary lane of a queue, millions if need be, by the fastest way on which rows come to wait: one
//! link is written, its row is leased and split, page after page, like a change that has many labels.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use anyhow::Context as _;
use domain::limits::SPLIT_CHILDREN_MAX;
use tokio::task::JoinSet;

use super::{
    load::{Loader, link_child, studio_links},
    null::NullService,
    platform::Bench,
};

/// Splits under way: enough that the database always has one, few beside what is measured elsewhere.
const SPLITS_AT_ONCE: usize = 3;
/// How far ahead the SLA of all of them lies, in milliseconds.
const AHEAD_MS: i64 = 3_600_000;
/// How long a row to split is waited for, in milliseconds: as long as another split takes at the worst.
const ROW_WAIT_MS: i32 = 10_000;

/// Fills the queue of a service.
#[derive(Clone)]
pub(super) struct Filler {
    service: NullService,
    /// Number of the next label, of which none comes twice.
    next: Arc<AtomicU32>,
}

impl Filler {
    /// Of a queue that is subscribed to links and has nothing in it. One row waits there then.
    pub(super) async fn start(bench: &Bench, service: &NullService) -> anyhow::Result<Self> {
        let mut loader = Loader::new(bench)?;
        loader.slas_from(bench.clock.now().plus_ms(AHEAD_MS));
        studio_links(&mut loader, "D", "first", (1, 1)).await?;
        loader.finish().await?;
        Ok(Self { service: service.clone(), next: Arc::default() })
    }

    /// Lets so many rows more wait.
    pub(super) async fn add(&self, rows: u32) -> anyhow::Result<()> {
        let until = self.next.load(Ordering::Relaxed) + rows;
        let mut splits = JoinSet::new();
        for _ in 0..SPLITS_AT_ONCE {
            let mut filler = self.clone();
            splits.spawn(async move { filler.split_until(until).await });
        }
        while let Some(done) = splits.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Splits rows of the lane into labels, up to that number.
    async fn split_until(&mut self, until: u32) -> anyhow::Result<()> {
        let page = u32::try_from(SPLIT_CHILDREN_MAX)?;
        loop {
            let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |first| {
                (first < until).then(|| first.saturating_add(page).min(until))
            });
            let Ok(first) = taken else { return Ok(()) };
            let children = (first..first.saturating_add(page).min(until))
                .map(|label| link_child("F", label))
                .collect::<anyhow::Result<Vec<_>>>()?;
            let (generation, rows) =
                self.service.dequeue((1, ROW_WAIT_MS)).await?.context("no row came that could be split")?;
            let row = rows.first().context("a lease without rows")?;
            // At its cursor it waits again, as it did.
            self.service.re_enqueue((generation, row.id), children, format!("{first:010}")).await?;
        }
    }
}
