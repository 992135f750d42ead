//! The PostgreSQL twin: `migrations/postgres/0001_cqs.sql` behind [`db::postgres::PostgresDb`].
//!
//! Statements are over many rows: arrays are bound and taken apart by `unnest`. Units of work run beside each other, in
//! this process and in others.
//!
//! # How units meet
//! - Rows: whoever is about to merge into a waiting row locks it; a claim passes over locked rows. Two that insert the same
//!   key meet at the unique index, and the later one runs again.
//! - Heads (`heads`): not counts but marks below which nothing is ready. Arrivals in a lane share its lock; who raises marks,
//!   upkeep and now and then a claim (`advances`), takes it alone and never waits for it; other claims, and reports that let
//!   nothing come back, take none. So an arrival waits at most for the end of a claim, and nobody for an arrival.
//! - What comes due or lapses (`floors`): looked for from where this process last found nothing left.
//! - Leases: a report locks the lease's row; sweeps pass over locked ones.
//! - The end of an operation: the unit that may have ended it looks whether it did under a lock of the lane, so that two
//!   units that end the last two leases do not each see the other's.
//!
//! Differs by necessity
//! - Heads are marks; time is the database's; ids of lanes and leases tell the tenant (`tenants`), because every hot
//!   statement names it.
//! - Which lane is next is asked over all tenants, without locks; the claim itself is for one tenant.

mod advances;
mod arrays;
mod audit;
mod controls;
mod failures;
mod floors;
mod heads;
mod lanes;
mod leases;
mod ledger;
mod locks;
mod marks;
mod operations;
mod overview;
mod paces;
mod queues;
mod retention;
mod rows;
mod tenants;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use db::postgres::PostgresDb;
use domain::{LeaseRef, TenantId, Timestamp, TrackingId};
use futures::future::{BoxFuture, FutureExt as _};
use sqlx::PgConnection;

use crate::{
    StoreError,
    announce::{Announcement, LeaseLane, Woken},
    model::{HeadKey, Lane},
    steps,
    unit::Clocked,
};

use advances::Advances;
use floors::Floors;
use heads::Marks;
pub use tenants::Tenants;

/// Whose time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeOf {
    /// The database's: the same for every process.
    #[default]
    Database,
    /// The caller's, for tests whose clock stands still.
    Caller,
}

/// The PostgreSQL twin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PostgresCqsStore {
    db: PostgresDb,
    queues: Queues,
}

/// What units of work on the queues share beyond their connection. Cheap to clone; DTOflow's twin has a clone.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    tenants: Tenants,
    floors: Floors,
    advances: Advances,
    time: TimeOf,
}

impl Queues {
    /// With that time.
    pub fn new(time: TimeOf) -> Self {
        Self { time, ..Self::default() }
    }

    /// The time that counts.
    pub fn now(&self, database: Timestamp, caller: Timestamp) -> Timestamp {
        match self.time {
            TimeOf::Database => database,
            TimeOf::Caller => caller,
        }
    }
}

/// A unit of work under way on a connection.
struct PostgresUnit<'c> {
    conn: &'c mut PgConnection,
    queues: &'c Queues,
    /// The database's time at its beginning.
    began: Timestamp,
    /// Whether it may lock and write.
    writes: bool,
    /// The earliest rows this unit made ready, by head; written by `head_change`.
    ready: BTreeMap<HeadKey, Marks>,
    /// The marks of heads it looked at, or the first rows that it found behind them.
    marks: BTreeMap<HeadKey, Marks>,
    /// Lanes in which this unit holds something that nobody else can end before it ends itself.
    kept: BTreeSet<i64>,
    /// Lanes of queues whose arrivals it is among; lanes that it opened itself need no lock.
    arrivals: BTreeSet<(i64, i64)>,
    opened: BTreeSet<i64>,
    /// Lanes of the leases it found.
    leases: HashMap<i64, i64>,
    /// Lanes it found; what they say stays so until it ends.
    lanes: HashMap<i64, Lane>,
}

impl<'c> PostgresUnit<'c> {
    fn new(conn: &'c mut PgConnection, queues: &'c Queues, began: Timestamp) -> Self {
        Self {
            conn,
            queues,
            began,
            writes: true,
            ready: BTreeMap::new(),
            marks: BTreeMap::new(),
            kept: BTreeSet::new(),
            arrivals: BTreeSet::new(),
            opened: BTreeSet::new(),
            leases: HashMap::new(),
            lanes: HashMap::new(),
        }
    }

    /// Of a transaction that only reads.
    fn reading(conn: &'c mut PgConnection, queues: &'c Queues, began: Timestamp) -> Self {
        Self { writes: false, ..Self::new(conn, queues, began) }
    }
}

impl Clocked for PostgresUnit<'_> {
    fn time(&self, caller: Timestamp) -> Timestamp {
        self.queues.now(self.began, caller)
    }
}

impl PostgresCqsStore {
    /// A store in that database. Many processes may serve it: none ends the others' leases when it starts. Call
    /// [`PostgresCqsStore::raise_generations`] once before serving.
    pub fn new(db: PostgresDb, queues: Queues) -> Self {
        Self { db, queues }
    }

    /// Leases given from now on have generations beyond the present time in milliseconds, as on the other engines: none
    /// that a restored database has forgotten is given again.
    pub async fn raise_generations(&self, now: Timestamp) -> Result<(), StoreError> {
        self.write((), move |unit, ()| {
            async move {
                let now = unit.time(now);
                crate::unit::Leases::lease_generation_raise(unit, now.as_ms()).await
            }
            .boxed()
        })
        .await
    }

    fn units(&self) -> u64 {
        self.db.units_begun()
    }

    fn write<A, T, F>(&self, ask: A, step: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        A: Clone + Send + Sync + 'static,
        T: Send + 'static,
        F: for<'u, 'c> Fn(&'u mut PostgresUnit<'c>, A) -> BoxFuture<'u, Result<T, StoreError>> + Send + Sync + 'static,
    {
        let (queues, step) = (self.queues.clone(), Arc::new(step));
        self.db
            .write(move |conn, began| {
                let (queues, ask, step) = (queues.clone(), ask.clone(), Arc::clone(&step));
                async move { step(&mut PostgresUnit::new(conn, &queues, began), ask).await }.boxed()
            })
            .boxed()
    }

    fn read<A, T, F>(&self, ask: A, step: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        A: Send + 'static,
        T: Send + 'static,
        F: for<'u, 'c> FnOnce(&'u mut PostgresUnit<'c>, A) -> BoxFuture<'u, Result<T, StoreError>> + Send + 'static,
    {
        let queues = self.queues.clone();
        self.db
            .read(move |conn, began| {
                async move { step(&mut PostgresUnit::reading(conn, &queues, began), ask).await }.boxed()
            })
            .boxed()
    }
}

crate::store_steps::steps_of!(PostgresCqsStore);
crate::failure_store::failure_steps_of!(PostgresCqsStore);
crate::audit_store::audit_steps_of!(PostgresCqsStore);

/// The lane that a live lease stands for; refuses with `STALE_LEASE` when it is over.
pub async fn lease_check(
    (conn, queues): (&mut PgConnection, &Queues),
    lease: &LeaseRef,
    now: Timestamp,
) -> Result<LeaseLane, StoreError> {
    steps::lease::lease_check(&mut PostgresUnit::new(conn, queues, now), lease, now).await
}

/// Puts a write's notifications into the queues.
pub async fn announce(
    (conn, queues): (&mut PgConnection, &Queues),
    announcements: &[Announcement],
    now: Timestamp,
) -> Result<Woken, StoreError> {
    steps::announce::announce(&mut PostgresUnit::new(conn, queues, now), announcements, now).await
}

/// Whether that tracking id names an operation of the tenant.
pub async fn is_operation(
    (conn, queues): (&mut PgConnection, &Queues),
    tenant: &TenantId,
    tracking_id: &TrackingId,
) -> Result<bool, StoreError> {
    let unit = &mut PostgresUnit::reading(conn, queues, Timestamp::from_ms(0));
    steps::announce::is_operation(unit, tenant, tracking_id).await
}

/// The first of these tracking ids that names an operation of the tenant, in one statement however many they are.
pub async fn operation_among(
    conn: &mut PgConnection,
    tenant: &TenantId,
    tracking_ids: &[TrackingId],
) -> Result<Option<TrackingId>, StoreError> {
    if tracking_ids.is_empty() {
        return Ok(None);
    }
    let texts: Vec<&str> = tracking_ids.iter().map(TrackingId::as_str).collect();
    let found: Option<i64> = sqlx::query_scalar(
        "SELECT j.key FROM cqs_operation o JOIN unnest($2::text[]) WITH ORDINALITY AS j (id, key) ON o.tracking_id = j.id
         WHERE o.tenant = $1 ORDER BY j.key LIMIT 1",
    )
    .bind(tenant.as_str())
    .bind(texts)
    .fetch_optional(conn)
    .await?;
    // Ordinality begins at 1.
    Ok(found.and_then(|key| tracking_ids.get(usize::try_from(key - 1).ok()?).cloned()))
}
