//! The start-up self-check: what must hold of the library and of the writing connection before anybody is
//! served.

use sqlx::SqliteConnection;

/// Oldest SQLite that is served from: 3.7.0 to 3.51.2 can lose committed writes or damage the file when two connections
/// write and checkpoint together (the WAL-reset bug, fixed in 3.51.3).
pub const VERSION_MIN: (u32, u32, u32) = (3, 51, 3);

/// What the self-check found wrong, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelfCheckError {
    /// The library is too old.
    #[error(
        "SQLite {found} can lose committed writes; at least 3.51.3 is needed: build with libsqlite3-sys 0.37.0 or newer"
    )]
    Version {
        /// What `sqlite_version()` says.
        found: String,
    },
    /// The journal is not a write-ahead log.
    #[error(
        "journal_mode is {found}, not wal: readers would block the writer; put the database on a local file system"
    )]
    JournalMode {
        /// What the pragma says.
        found: String,
    },
    /// Commits are not synced.
    #[error("synchronous is {found}, not 2 (FULL): an acknowledged write could be lost with the power")]
    Synchronous {
        /// What the pragma says.
        found: i64,
    },
    /// Foreign keys are not enforced.
    #[error("foreign_keys is {found}, not 1: rows could point nowhere")]
    ForeignKeys {
        /// What the pragma says.
        found: i64,
    },
}

/// What a connection says of itself.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) version: String,
    pub(super) journal_mode: String,
    pub(super) synchronous: i64,
    pub(super) foreign_keys: i64,
}

impl Facts {
    pub(super) async fn of(conn: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        Ok(Self {
            version: sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *conn).await?,
            journal_mode: sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *conn).await?,
            synchronous: sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *conn).await?,
            foreign_keys: sqlx::query_scalar("PRAGMA foreign_keys").fetch_one(&mut *conn).await?,
        })
    }

    pub(super) fn check(&self) -> Result<(), SelfCheckError> {
        if version(&self.version).is_none_or(|found| found < VERSION_MIN) {
            return Err(SelfCheckError::Version { found: self.version.clone() });
        }
        if self.journal_mode != "wal" {
            return Err(SelfCheckError::JournalMode { found: self.journal_mode.clone() });
        }
        if self.synchronous != 2 {
            return Err(SelfCheckError::Synchronous { found: self.synchronous });
        }
        if self.foreign_keys != 1 {
            return Err(SelfCheckError::ForeignKeys { found: self.foreign_keys });
        }
        Ok(())
    }
}

fn version(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('.').map(str::parse::<u32>);
    Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts { version: "3.51.3".to_owned(), journal_mode: "wal".to_owned(), synchronous: 2, foreign_keys: 1 }
    }

    #[test]
    fn good_facts_pass() {
        assert_eq!(good().check(), Ok(()));
        assert_eq!(Facts { version: "3.100.0".to_owned(), ..good() }.check(), Ok(()));
    }

    #[test]
    fn each_wrong_fact_is_refused_with_its_reason() {
        for (facts, word) in [
            (Facts { version: "3.51.2".to_owned(), ..good() }, "lose committed writes"),
            (Facts { version: "unknown".to_owned(), ..good() }, "lose committed writes"),
            (Facts { journal_mode: "delete".to_owned(), ..good() }, "wal"),
            (Facts { synchronous: 1, ..good() }, "power"),
            (Facts { foreign_keys: 0, ..good() }, "nowhere"),
        ] {
            let text = facts.check().expect_err(word).to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
