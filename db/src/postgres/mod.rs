//! PostgreSQL: one database, any number of processes.
//!
//! In reading order: `open` (self-check, migrations, pools), `unit` (a unit of work and when it runs again), `reader`,
//! `prune` (forgetting, tenant by tenant), `statistics` (of tables that grow fast), `bells` (wake-ups between processes), `pin` (an old snapshot, for measuring).
//!
//! Invariants
//! - A unit of work is one explicit transaction, READ COMMITTED: each statement sees what was committed before it began.
//! - A unit runs in a task of its own. A caller that goes away never leaves a connection inside a transaction, where the
//!   next unit's acknowledged write would vanish with it; for the same reason nothing is ever written outside one, and a
//!   connection that comes back to the pool is rolled back.
//! - Time is the database's, so that leases mean the same to every process.
//! - Nothing outlives a transaction: no session's lock, setting or temporary table.
//!
//! # What a unit of work may do
//! - Statements on the connection it is given, and computing. No waiting for anything else: it holds locks.
//! - Run again from its beginning: PostgreSQL ends a transaction to resolve a deadlock, and where two units insert the same
//!   key the later one fails. Both are [`DbError::Conflict`], and the unit is run anew, at most [`ATTEMPTS_MAX`] times.
//! - No `BEGIN` or `COMMIT` of its own.
//!
//! # What is fast
//! - One statement over many rows: arrays bound to `unnest($1, $2, …)`; one plan whatever the number of rows.

mod bells;
mod migrations;
mod open;
mod pin;
mod prune;
mod reader;
mod self_check;
mod statistics;
#[cfg(test)]
mod tests;
mod unit;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::Timestamp;
use futures::future::BoxFuture;
use sqlx::{PgConnection, PgPool};

use crate::{DbError, PostgresUrl};

pub use bells::Bell;
pub use open::OpenError;
pub use pin::Pin;
pub use prune::{Prune, by_tenant};
pub use self_check::{SelfCheckError, VERSION_MIN};
pub use unit::ATTEMPTS_MAX;

use crate::sqlite::SchemaChange;

/// How long an answer is waited for that says whether the database serves: a healthy one takes milliseconds.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// What is asked then: one that became a standby still answers.
const TAKES_WRITES: &str = "SELECT NOT pg_is_in_recovery()";

/// How to open a database.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Where it is.
    pub url: PostgresUrl,
    /// What to do about an older schema.
    pub schema: SchemaChange,
}

impl OpenOptions {
    /// The database at `url`, migrated as needed.
    pub fn new(url: PostgresUrl) -> Self {
        Self { url, schema: SchemaChange::default() }
    }
}

/// What a unit of work can fail with. A unit whose failure is a conflict, or a lost connection, is run again.
pub trait Failure: From<DbError> + Send + 'static {
    /// The database's part in it.
    fn database(&self) -> Option<&DbError>;
}

impl Failure for DbError {
    fn database(&self) -> Option<&DbError> {
        Some(self)
    }
}

/// An open database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PostgresDb {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    writers: PgPool,
    readers: PgPool,
    begun: AtomicU64,
}

impl PostgresDb {
    /// Opens the database: checks what it promises, brings its schema up to date.
    pub async fn open(options: OpenOptions) -> Result<Self, OpenError> {
        open::open(options).await
    }

    /// Runs one unit of work in a transaction and answers after it is committed and synced. It gets the database's time.
    /// The unit runs to its end even when the caller goes away. See the module for what it may do.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: Failure,
    {
        self.inner.begun.fetch_add(1, Ordering::Relaxed);
        unit::write(self.inner.writers.clone(), work).await
    }

    /// Writing units of work that this process asked for so far: whoever has something to do that can wait sees whether
    /// others work. Of other processes nothing is known here.
    pub fn units_begun(&self) -> u64 {
        self.inner.begun.load(Ordering::Relaxed)
    }

    /// Runs reading statements on one snapshot of the database. Writing there fails.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Failure,
    {
        reader::read(self.inner.readers.clone(), work).await
    }

    /// Whether it answers now, and takes writes.
    pub async fn answers(&self) -> bool {
        let asked = self.read(|conn, _| {
            Box::pin(async { Ok::<bool, DbError>(sqlx::query_scalar(TAKES_WRITES).fetch_one(conn).await?) })
        });
        matches!(tokio::time::timeout(ANSWER_WAIT, asked).await, Ok(Ok(true)))
    }

    /// The bell of that name, which all processes on this database hear.
    pub fn bell(&self, name: &'static str) -> Bell {
        Bell::new(self.inner.writers.clone(), name)
    }

    /// Waits for what runs and closes every connection. Later calls fail with [`DbError::Closed`].
    pub async fn close(&self) {
        self.inner.writers.close().await;
        self.inner.readers.close().await;
    }
}
