//! What a claim costs, counted in what PostgreSQL looks at: the same on every machine, however busy it is.

use std::sync::Arc;

use db::postgres::OpenOptions;
use domain::{DtoType, LeaseRef, Outcome, ServiceName, Urn};
use futures::FutureExt as _;

use super::*;
use crate::{
    announce::Announce,
    model::{Exclusive, RowKind},
    store::{CompleteAsk, ConfigureAsk, CqsStore as _, DequeueAsk},
    unit::{ReadyRange, Rows as _},
};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// Rows announced together.
const ANNOUNCED: usize = 1_000;

/// What was looked at.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Pages, in memory or not.
    pages: i64,
    /// Entries of indexes, and rows of tables that were read from end to end.
    entries: i64,
}

impl std::ops::Sub for Cost {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { pages: self.pages - before.pages, entries: self.entries - before.entries }
    }
}

/// A platform whose tables PostgreSQL neither cleans nor looks at by itself.
struct Counted {
    store: PostgresCqsStore,
    /// Rows of a claim.
    batch: usize,
    _place: cluster::Database,
}

/// A lease, its rows, and what it cost.
struct Claimed {
    lease: crate::model::Lease,
    ids: Vec<i64>,
    cost: Cost,
}

impl Counted {
    async fn new(batch: usize) -> Self {
        let place = cluster::Database::new().unwrap();
        let db = PostgresDb::open(OpenOptions::new(place.url().parse().unwrap())).await.unwrap();
        let store = PostgresCqsStore::new(db, Queues::new(TimeOf::Caller));
        let world = Self { store, batch, _place: place };
        world
            .sql(
                "DO $$ DECLARE name text; BEGIN
                    FOR name IN SELECT relname FROM pg_stat_user_tables LOOP
                        EXECUTE format('ALTER TABLE %I SET (autovacuum_enabled = off)', name);
                    END LOOP;
                 END $$",
            )
            .await;
        let ask = ConfigureAsk {
            queue: "ecc-image-render-service".parse().unwrap(),
            subscriptions: vec![DtoType::EccLink],
            shapes: Vec::new(),
            exclusive: Exclusive::No,
        };
        world.store.configure_queue(ask).await.unwrap();
        world
    }

    async fn sql(&self, text: &'static str) {
        let done = self.store.write((), move |unit, ()| {
            async move {
                sqlx::raw_sql(text).execute(&mut *unit.conn).await?;
                Ok(())
            }
            .boxed()
        });
        done.await.unwrap();
    }

    /// So many changed links, numbered from there. In the order of claiming, neighbours lie on different pages.
    async fn announce(&self, numbers: std::ops::Range<usize>) {
        let all: Vec<usize> = numbers.collect();
        for some in all.chunks(ANNOUNCED) {
            let told: Vec<Announcement> = some.iter().map(|number| changed(*number)).collect();
            let announced = self.store.write(told, |unit, told| {
                async move {
                    steps::announce::announce(unit, &told, NOW).await?;
                    // So that everybody sees at once how much the tables have grown.
                    sqlx::query("SELECT pg_stat_force_next_flush()").execute(&mut *unit.conn).await?;
                    Ok(())
                }
                .boxed()
            });
            announced.await.unwrap();
        }
    }

    async fn claim(&self) -> Claimed {
        let ask = DequeueAsk {
            queue: "ecc-image-render-service".parse().unwrap(),
            owner: ServiceName::EccImageRender,
            worker_id: "w".to_owned(),
            max_items: self.batch,
            lease_ms: 60_000,
            tally: Arc::default(),
        };
        let claimed = self.store.write(ask, |unit, ask| {
            async move {
                let before = cost(unit.conn).await?;
                let found = steps::dequeue::dequeue(unit, &ask, NOW).await?;
                Ok((found, cost(unit.conn).await? - before))
            }
            .boxed()
        });
        let (found, cost) = claimed.await.unwrap();
        let (lease, rows) = found.lease.expect("rows wait");
        Claimed { lease, ids: rows.iter().map(|row| row.id).collect(), cost }
    }

    /// Completes what was claimed; what that cost.
    async fn complete(&self, claimed: &Claimed) -> Cost {
        let lease =
            LeaseRef { queue: "ecc-image-render-service".parse().unwrap(), generation: claimed.lease.generation };
        let outcomes = claimed.ids.iter().map(|id| (*id, Outcome::Done)).collect();
        let completed = self.store.write(CompleteAsk { lease, outcomes, jitter: 0 }, |unit, ask| {
            async move {
                let before = cost(unit.conn).await?;
                steps::complete::complete(unit, ask, NOW).await?;
                Ok(cost(unit.conn).await? - before)
            }
            .boxed()
        });
        completed.await.unwrap()
    }

    /// Claims, completes, and does the upkeep, so many times over.
    async fn work(&self, batches: usize) {
        for _ in 0..batches {
            let claimed = self.claim().await;
            self.complete(&claimed).await;
            self.store.maintain(NOW).await.unwrap();
        }
    }

    /// What a claim and its completion cost now.
    async fn cost(&self) -> [Cost; 2] {
        let claimed = self.claim().await;
        let completed = self.complete(&claimed).await;
        self.store.maintain(NOW).await.unwrap();
        [claimed.cost, completed]
    }

    /// What finding the first row of a lane costs whoever does not begin at its mark.
    async fn cost_without_mark(&self, head: HeadKey) -> Cost {
        let looked = self.store.write(head, |unit, head| {
            async move {
                let before = cost(unit.conn).await?;
                unit.row_ready(ReadyRange { head: &head, kind: RowKind::Label, limit: 1 }).await?;
                Ok(cost(unit.conn).await? - before)
            }
            .boxed()
        });
        looked.await.unwrap()
    }
}

/// What this connection looked at so far in the queues' tables and indexes.
async fn cost(conn: &mut PgConnection) -> Result<Cost, StoreError> {
    let (pages, entries) = sqlx::query_as(
        "SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint, sum(pg_stat_get_xact_tuples_returned(oid))::bigint
         FROM pg_class WHERE relname LIKE 'cqs\\_%'",
    )
    .fetch_one(conn)
    .await?;
    Ok(Cost { pages, entries })
}

fn changed(number: usize) -> Announcement {
    let urn: Urn = format!("t/T/s/S/ecclinks/E{number}").parse().unwrap();
    // A prime that is far from any number of rows on a page.
    let scattered = i64::try_from(number * 7_919 % 100_003).unwrap();
    Announcement {
        dto_type: DtoType::EccLink,
        urn,
        sla: NOW.plus_ms(scattered),
        tracking_id: None,
        lane: None,
        announce: Announce::Always,
    }
}

/// Rows that wait, or most of them did once.
const ROWS: usize = 8_000;

#[tokio::test]
async fn claims_do_not_walk_over_rows_that_are_gone() {
    let world = Counted::new(100).await;
    world.announce(0..ROWS).await;
    world.sql("ANALYZE").await;
    // From here on nothing that goes can be removed.
    let pin = world.store.db.pin().await.unwrap();
    world.work(20).await;
    let few = world.cost().await;
    world.work(50).await;
    // The rows of leases are few, and their table is long.
    assert_eq!(world.store.db.look_at_grown().await.unwrap(), ["public.cqs_leased"]);
    let many = world.cost().await;
    for (few, many) in few.into_iter().zip(many) {
        assert!(many.pages <= few.pages + few.pages / 4, "{many:?} with 7,100 rows gone, {few:?} with 2,000");
        assert!(many.entries <= few.entries + few.entries / 4, "{many:?} with 7,100 rows gone, {few:?} with 2,000");
    }
    // They are there: whoever does not begin at the mark meets them all.
    let last = world.claim().await;
    let head = HeadKey { queue: last.lease.queue, lane: last.lease.lane, store: None };
    let walked = world.cost_without_mark(head).await;
    assert!(walked.pages > 7_000 && walked.entries > 7_000, "{walked:?}");
    pin.release().await.unwrap();
}

#[tokio::test]
async fn a_table_that_grows_is_looked_at_so_that_no_plan_walks_over_what_came() {
    let world = Counted::new(10).await;
    // Every connection has its plans, made for tables of ten rows.
    for round in 0..40 {
        world.announce(round * 10..round * 10 + 10).await;
        if round == 0 {
            world.sql("ANALYZE").await;
        }
        world.work(1).await;
    }
    world.announce(1_000..1_000 + ROWS).await;
    assert_eq!(world.store.db.look_at_grown().await.unwrap(), ["public.cqs_waiting"]);
    for cost in world.cost().await {
        assert!(cost.entries < 500, "{cost:?} for 10 of {ROWS} rows");
    }
    assert!(world.store.db.look_at_grown().await.unwrap().is_empty(), "it has not grown since");
}
