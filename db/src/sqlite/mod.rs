//! SQLite: one file, one process, one writer, a few readers.
//!
//! In reading order: `open` (lock file, pragmas, self-check, migrations), `writer` (group commit), `reader`; `snapshot` looks
//! at a database from outside and copies it, whoever has it open.
//!
//! Invariants
//! - One process holds the database: an exclusive lock on a lock file beside it, for the life of the [`SqliteDb`].
//! - Writes go through one connection; a unit of work is a SAVEPOINT in a transaction it may share with others.
//! - WAL, `synchronous=FULL`, foreign keys on, SQLite at least [`VERSION_MIN`]; anything else refuses to open.
//!
//! # What a unit of work may do
//! - Statements on the connection it is given, and computing. No waiting for anything else: it holds the one writer.
//! - Return at its first failed statement. SQLite may by then have rolled everything back (a full disk does), and a
//!   statement after that would run, and commit, on its own.
//! - No `BEGIN`, `COMMIT` or `SAVEPOINT` of its own, and no deferred constraints: a failing COMMIT fails its neighbours.
//!
//! # What is fast
//! - One statement over many rows: bind a JSON array and join `jsonb_each(?)`; bytes go beside it as one blob that
//!   `substr(?, offset, length)` takes apart. The text stays the same whatever the number of rows, so it is prepared
//!   once. A statement costs about 20 µs beyond its own work.
//! - Rows that differ in one text only: a flat array of these texts, the rest as parameters. Inserted into a table with
//!   two indexes, a row of 15 columns costs 0.4 µs so, 1.4 µs as an array of its own that `value ->> n` takes apart, and
//!   3.3 µs with `json_each`, which writes every row's array out as text again for each `->>`.
//! - `UPDATE … FROM jsonb_each(?)` and `INSERT … SELECT … FROM jsonb_each(?) WHERE true ON CONFLICT …` (the `WHERE true`
//!   is what SQLite's grammar needs there).
//! - `CROSS JOIN` where the left side must be the outer loop: `jsonb_each(?) CROSS JOIN t ON t.key = …`.
//! - Partial indexes, where the query repeats the index's condition literally.

mod lock;
mod migrations;
mod open;
mod reader;
mod self_check;
mod snapshot;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::BoxFuture;
use sqlx::{SqliteConnection, SqlitePool};

use crate::DbError;

pub use open::OpenError;
pub use self_check::{SelfCheckError, VERSION_MIN};
pub use snapshot::{Inspection, copy, inspect};

/// Whether opening may change the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaChange {
    /// Missing migrations are applied.
    #[default]
    Migrate,
    /// An older schema refuses to open.
    Refuse,
}

/// How to open a database.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The file; made when absent. Its folder must exist.
    pub path: PathBuf,
    /// What to do about an older schema.
    pub schema: SchemaChange,
    /// Most pages (of 4 KiB) the file may have; none: as many as the disk holds. Reaching it is a full disk.
    pub pages_max: Option<u32>,
}

impl OpenOptions {
    /// The file at `path`, migrated as needed, without a bound of its own.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), schema: SchemaChange::default(), pages_max: None }
    }
}

/// An open database. Cheap to clone; the last clone to go closes it.
#[derive(Debug, Clone)]
pub struct SqliteDb {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    writer: writer::Writer,
    readers: SqlitePool,
    begun: AtomicU64,
}

impl SqliteDb {
    /// Opens the database: takes its lock, sets and checks its pragmas, brings its schema up to date.
    pub async fn open(options: OpenOptions) -> Result<Self, OpenError> {
        open::open(options, writer::GATHER_TIME_MAX).await
    }

    /// The file, as it was found on the disk.
    pub fn path(&self) -> &std::path::Path {
        &self.inner.path
    }

    /// Runs one unit of work in a transaction and answers after it is committed and synced. The unit runs to its end
    /// even when the caller goes away. See the module for what it may do.
    pub async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.inner.begun.fetch_add(1, Ordering::Relaxed);
        self.inner.writer.write(work).await
    }

    /// Writing units of work that were asked for so far: whoever has something to do that can wait sees whether others work.
    pub fn units_begun(&self) -> u64 {
        self.inner.begun.load(Ordering::Relaxed)
    }

    /// Runs reading statements on one snapshot of the database, beside the writer. Writing there fails.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        reader::read(self.inner.readers.clone(), work).await
    }

    /// Finishes what is queued, moves the log into the file and gives the lock back. Later calls fail with
    /// [`DbError::Closed`].
    pub async fn close(&self) -> Result<(), DbError> {
        self.inner.readers.close().await;
        self.inner.writer.close().await
    }
}
