//! The SQLite twin: `migrations/sqlite/0001_cqs.sql` behind [`db::sqlite::SqliteDb`].
//!
//! Statements are over many rows: one JSON text is bound and taken apart by `jsonb_each`. One writer runs all units of
//! work, so what a unit read is still so when it writes.
//!
//! Differs by necessity: `json` puts many rows into one text; heads are kept, not derived.

mod audit;
mod controls;
mod failures;
mod json;
mod lanes;
mod leases;
mod ledger;
mod operations;
mod overview;
mod paces;
mod queues;
mod retention;
mod rows;

use db::sqlite::SqliteDb;
use domain::{LeaseRef, TenantId, Timestamp, TrackingId};
use futures::future::{BoxFuture, FutureExt as _};
use sqlx::SqliteConnection;

use crate::{
    StoreError,
    announce::{Announcement, LeaseLane, Woken},
    steps,
};

/// The SQLite twin. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqliteCqsStore {
    db: SqliteDb,
}

/// A unit of work under way on a connection.
struct SqliteUnit<'c> {
    conn: &'c mut SqliteConnection,
}

impl crate::unit::Clocked for SqliteUnit<'_> {}

impl SqliteCqsStore {
    /// A store in that database. Call [`crate::CqsStore::end_all_leases`] once before serving: this process holds the
    /// database alone, so no lease of an earlier one is live.
    pub fn new(db: SqliteDb) -> Self {
        Self { db }
    }

    fn units(&self) -> u64 {
        self.db.units_begun()
    }

    fn write<A, T, F>(&self, ask: A, step: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        A: Send + 'static,
        T: Send + 'static,
        F: for<'u, 'c> FnOnce(&'u mut SqliteUnit<'c>, A) -> BoxFuture<'u, Result<T, StoreError>> + Send + 'static,
    {
        self.db.write(move |conn| async move { step(&mut SqliteUnit { conn }, ask).await }.boxed()).boxed()
    }

    fn read<A, T, F>(&self, ask: A, step: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        A: Send + 'static,
        T: Send + 'static,
        F: for<'u, 'c> FnOnce(&'u mut SqliteUnit<'c>, A) -> BoxFuture<'u, Result<T, StoreError>> + Send + 'static,
    {
        self.db.read(move |conn| async move { step(&mut SqliteUnit { conn }, ask).await }.boxed()).boxed()
    }
}

crate::store_steps::steps_of!(SqliteCqsStore);
crate::failure_store::failure_steps_of!(SqliteCqsStore);
crate::audit_store::audit_steps_of!(SqliteCqsStore);

/// The lane that a live lease stands for; refuses with `STALE_LEASE` when it is over.
pub async fn lease_check(
    conn: &mut SqliteConnection,
    lease: &LeaseRef,
    now: Timestamp,
) -> Result<LeaseLane, StoreError> {
    steps::lease::lease_check(&mut SqliteUnit { conn }, lease, now).await
}

/// Puts a write's notifications into the queues.
pub async fn announce(
    conn: &mut SqliteConnection,
    announcements: &[Announcement],
    now: Timestamp,
) -> Result<Woken, StoreError> {
    steps::announce::announce(&mut SqliteUnit { conn }, announcements, now).await
}

/// Whether that tracking id names an operation of the tenant.
pub async fn is_operation(
    conn: &mut SqliteConnection,
    tenant: &TenantId,
    tracking_id: &TrackingId,
) -> Result<bool, StoreError> {
    steps::announce::is_operation(&mut SqliteUnit { conn }, tenant, tracking_id).await
}

/// The first of these tracking ids that names an operation of the tenant, in one statement however many they are.
pub async fn operation_among(
    conn: &mut SqliteConnection,
    tenant: &TenantId,
    tracking_ids: &[TrackingId],
) -> Result<Option<TrackingId>, StoreError> {
    if tracking_ids.is_empty() {
        return Ok(None);
    }
    let texts: Vec<&str> = tracking_ids.iter().map(TrackingId::as_str).collect();
    let found: Option<i64> = sqlx::query_scalar(
        "SELECT j.key FROM jsonb_each(?2) AS j CROSS JOIN cqs_operation AS o
           ON o.tenant = ?1 AND o.tracking_id = j.value
         ORDER BY j.key LIMIT 1",
    )
    .bind(tenant.as_str())
    .bind(serde_json::to_string(&texts)?)
    .fetch_optional(conn)
    .await?;
    Ok(found.and_then(|index| tracking_ids.get(usize::try_from(index).ok()?).cloned()))
}
