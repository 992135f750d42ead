//! Opening: lock file, connections, self-check, migrations.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    Inner, OpenOptions, SelfCheckError, SqliteDb, lock, migrations,
    self_check::Facts,
    writer::{State, Writer},
};
use crate::DbError;

/// Prepared statements kept per connection: more than all rooms have together, so none is prepared twice.
const STATEMENTS_CACHED: usize = 512;
/// Page cache of the writer, in KiB: the indexes of a store's labels stay in memory.
const WRITER_CACHE_KIB: i64 = 64 * 1024;
/// Page cache of each reader, in KiB.
const READER_CACHE_KIB: i64 = 16 * 1024;
/// Rows SQLite's thread may be ahead of the one that takes them: a whole batch, so that a statement over many rows is two
/// switches between the threads and not one for every few rows.
const ROWS_AHEAD: usize = 4_096;
/// Readers: two per core of a small machine, since each holds one thread while it reads.
const READERS_MAX: u32 = 4;
/// Longest wait for a reader. Below the longest call (60 s), so that the caller learns why.
const READER_WAIT: Duration = Duration::from_secs(10);
/// Longest wait for SQLite's own locks: only a foreign tool (a backup, a shell) can hold one.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Pages in the log after which a commit moves them into the file: 32 MiB, so that a batch of pictures does not
/// checkpoint at every commit, and a restart replays well under a second of it.
const LOG_PAGES: &str = "8000";
/// Bytes the log file is cut to after it was reset.
const LOG_BYTES_KEPT: &str = "67108864";

/// Why a database did not open. Each text is one line and names what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{} is in use by another process: stop that one, or choose another data directory", path.display())]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// No space.
    #[error("the disk is full: free some space and start again")]
    DiskFull,
    /// Written by a newer build.
    #[error(
        "the database has schema {found}, this build knows {known}: start the newer build again, or restore a backup from before it"
    )]
    NewerSchema {
        /// Schema of the file.
        found: i64,
        /// Newest schema of this build.
        known: i64,
    },
    /// Written by an older build, and migrating was not asked for.
    #[error(
        "the database has the older schema {found}, this build needs {known}: back it up and run `reshelf migrate --database …`"
    )]
    OlderSchema {
        /// Schema of the file.
        found: i64,
        /// Newest schema of this build.
        known: i64,
    },
    /// Written by a build whose migrations differ.
    #[error(
        "migration {version} of the database is not this build's: use the build that made it, or start with an empty data directory"
    )]
    OtherSchema {
        /// The migration that differs.
        version: i64,
    },
    /// A database, but another program's.
    #[error("the file is a database of another program: choose another path")]
    NotOurs,
    /// Damaged, or not a database.
    #[error("the database's file is damaged or no database ({0}): restore a backup, or choose another path")]
    Corrupt(String),
    /// The self-check failed.
    #[error("refusing to serve: {0}")]
    SelfCheck(#[from] SelfCheckError),
    /// The file system refuses.
    #[error("cannot open {}: {cause}: check that the folder exists and may be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        cause: std::io::Error,
    },
    /// Anything else SQLite says.
    #[error("cannot open the database: {0}")]
    Database(DbError),
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        match DbError::from(error) {
            DbError::DiskFull => Self::DiskFull,
            DbError::Corrupt(text) => Self::Corrupt(text),
            other => Self::Database(other),
        }
    }
}

/// `gather` is how long a commit takes units in.
pub(super) async fn open(options: OpenOptions, gather: Duration) -> Result<SqliteDb, OpenError> {
    let path = lock::resolve(&options.path)?;
    open_at(path.clone(), options, gather).await.map_err(|error| match error {
        OpenError::Corrupt(text) => OpenError::Corrupt(format!("{}: {text}", path.display())),
        other => other,
    })
}

async fn open_at(path: PathBuf, options: OpenOptions, gather: Duration) -> Result<SqliteDb, OpenError> {
    let lock = lock::LockFile::take(&path)?;
    // SQLite's own message for a folder that cannot be written ("unable to open database file") names no cause.
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|cause| OpenError::Io { path: path.clone(), cause })?;

    let writer_options = connection(&path).pragma("cache_size", format!("-{WRITER_CACHE_KIB}"));
    let writer_options = match options.pages_max {
        Some(pages) => writer_options.pragma("max_page_count", pages.to_string()),
        None => writer_options,
    };
    let mut conn = writer_options.connect().await?;
    Facts::of(&mut conn).await?.check()?;
    if let Err(error) = migrations::migrate(&mut conn, options.schema).await {
        // Closed in order, so that the lock is not given back before the connection is gone.
        conn.close().await?;
        return Err(error);
    }

    let readers = SqlitePoolOptions::new()
        .max_connections(READERS_MAX)
        .acquire_timeout(READER_WAIT)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_lazy_with(
            connection(&path).pragma("cache_size", format!("-{READER_CACHE_KIB}")).pragma("query_only", "ON"),
        );
    let writer = Writer::start(State { conn, reopen: writer_options, gather }, lock);
    Ok(SqliteDb { inner: Arc::new(Inner { path, writer, readers, begun: AtomicU64::default() }) })
}

fn connection(path: &std::path::Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_WAIT)
        .statement_cache_capacity(STATEMENTS_CACHED)
        .row_buffer_size(ROWS_AHEAD)
        // Errors of the disk come back as errors, not as signals, only without memory mapping.
        .pragma("mmap_size", "0")
        .pragma("temp_store", "MEMORY")
        .pragma("wal_autocheckpoint", LOG_PAGES)
        .pragma("journal_size_limit", LOG_BYTES_KEPT)
        .thread_name(|id| format!("sqlite-{id}"))
}
