//! What a unit of work can fail with.

use std::sync::Arc;

use domain::{ErrorCode, Refusal};
use sqlx::postgres::PgDatabaseError;

/// A failure of the database. A unit's own error type is made from it, so one `?` serves both.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DbError {
    /// No space left on the disk (or the page bound is reached). Nothing was written; reads go on; writes succeed again
    /// once space is freed.
    #[error("the disk is full")]
    DiskFull,
    /// A connection or a lock was not to be had in time.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// The file is damaged or not a database.
    #[error("the database file is damaged: {0}")]
    Corrupt(String),
    /// A row violates a constraint of the schema.
    #[error("constraint violated: {0}")]
    Constraint(String),
    /// The COMMIT failed; no unit of the batch is acknowledged.
    #[error("not committed: {0}")]
    NotCommitted(Arc<sqlx::Error>),
    /// Another unit of work stood in the way: a deadlock, or the same key inserted by both. Nothing was written; run again,
    /// it passes.
    #[error("another unit of work stood in the way: {0}")]
    Conflict(String),
    /// The connection ended before COMMIT was sent. Nothing was written.
    #[error("the connection to the database was lost: {0}")]
    Lost(String),
    /// SQLite rolled the shared transaction back because of another unit's failure; nothing of this one was written.
    #[error("rolled back together with another unit of work")]
    RolledBack,
    /// The unit of work panicked; it was rolled back.
    #[error("the unit of work panicked")]
    Panicked,
    /// The unit of work took longer than its bound; it was rolled back.
    #[error("the unit of work took too long")]
    TimedOut,
    /// The database is closed.
    #[error("the database is closed")]
    Closed,
    /// A stored value is not what the schema promises.
    #[error("broken row: {table}.{column} of {id}: {cause}")]
    BrokenRow {
        /// Its table.
        table: &'static str,
        /// Its column.
        column: &'static str,
        /// Its key, as text.
        id: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Any other failure of a statement.
    #[error("{0}")]
    Sql(Arc<sqlx::Error>),
}

/// SQLite's primary result codes that mean something to us (sqlite3.h); the low byte of an extended code.
mod code {
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
    /// Extended: the shared-memory file could not grow, which is a full disk met at another place.
    pub(super) const IOERR_SHMSIZE: i32 = 4874;
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        let text = error.to_string();
        match &error {
            sqlx::Error::Database(database) if database.try_downcast_ref::<PgDatabaseError>().is_some() => {
                let code = database.code().unwrap_or_default().into_owned();
                of_postgres(&code, text, error)
            }
            sqlx::Error::Database(database) => {
                let extended = database.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
                if extended == code::IOERR_SHMSIZE {
                    return Self::DiskFull;
                }
                match extended & 0xff {
                    code::FULL => Self::DiskFull,
                    code::BUSY | code::LOCKED => Self::Busy(text),
                    code::CORRUPT | code::NOT_A_DATABASE => Self::Corrupt(text),
                    code::CONSTRAINT => Self::Constraint(text),
                    _ => Self::Sql(Arc::new(error)),
                }
            }
            sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => Self::DiskFull,
            // SQLite's library does no I/O of its own kind: these are a connection's to PostgreSQL.
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) => Self::Lost(text),
            sqlx::Error::PoolTimedOut => Self::Busy(text),
            sqlx::Error::PoolClosed => Self::Closed,
            _ => Self::Sql(Arc::new(error)),
        }
    }
}

/// PostgreSQL's codes that mean something to us (its manual's appendix A).
fn of_postgres(code: &str, text: String, error: sqlx::Error) -> DbError {
    match code {
        // serialization_failure, deadlock_detected, unique_violation. The last is a race of two units wherever one looked
        // first whether the key was there; one that is not fails again and again, and is told in the end.
        "40001" | "40P01" | "23505" => DbError::Conflict(text),
        // lock_not_available, query_canceled (by its time), too_many_connections, cannot_connect_now.
        "55P03" | "57014" | "53300" | "57P03" => DbError::Busy(text),
        "53100" => DbError::DiskFull,
        // admin_shutdown, crash_shutdown, idle_in_transaction_session_timeout; class 08: connection exceptions.
        "57P01" | "57P02" | "25P03" => DbError::Lost(text),
        code if code.starts_with("08") => DbError::Lost(text),
        code if code.starts_with("23") => DbError::Constraint(text),
        // data_corrupted, index_corrupted.
        "XX001" | "XX002" => DbError::Corrupt(text),
        _ => DbError::Sql(Arc::new(error)),
    }
}

impl DbError {
    /// Whether the same unit of work may succeed when it is run again.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Lost(_))
    }

    /// Whether it is the server that is away, or full, for now.
    pub(crate) fn passes_with_time(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Busy(_))
    }

    /// The error code people outside see.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::DiskFull => ErrorCode::StorageFull,
            Self::Busy(_) | Self::Conflict(_) | Self::Lost(_) | Self::RolledBack | Self::Closed => {
                ErrorCode::Unavailable
            }
            // What a failed COMMIT left behind is known only after a restart, so a caller must ask again by its key.
            Self::NotCommitted(_) => ErrorCode::DeadlineExceeded,
            Self::Corrupt(_)
            | Self::Constraint(_)
            | Self::Panicked
            | Self::TimedOut
            | Self::BrokenRow { .. }
            | Self::Sql(_) => ErrorCode::Internal,
        }
    }

    /// The refusal for people outside. The cause is for our log: whoever handles this error writes it there.
    pub fn refusal(&self) -> Refusal {
        match self.code() {
            ErrorCode::StorageFull => {
                Refusal::new(ErrorCode::StorageFull, "the platform's disk is full; nothing was written")
            }
            ErrorCode::Unavailable => {
                Refusal::new(ErrorCode::Unavailable, "the platform's database is not available; nothing was written")
            }
            ErrorCode::DeadlineExceeded => Refusal::new(
                ErrorCode::DeadlineExceeded,
                "the write was not confirmed; repeat with the same tracking id",
            ),
            _ => Refusal::internal(),
        }
    }
}
