//! The start-up self-check: what must hold of the server and of our connections before anybody is served.

use sqlx::{PgConnection, Row as _};

/// Oldest server that is served from, as `server_version_num` says it: the oldest one the tests run on.
pub const VERSION_MIN: i64 = 150_000;

/// What the self-check found wrong, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelfCheckError {
    /// The server is too old.
    #[error("PostgreSQL {found} is older than {}, the oldest that is tested: upgrade it", VERSION_MIN / 10_000)]
    Version {
        /// What `server_version` says.
        found: String,
    },
    /// Commits are not synced.
    #[error(
        "{setting} is off: an acknowledged write could be lost with the power; set it to on for this server, database or user"
    )]
    Durability {
        /// Which setting.
        setting: &'static str,
    },
    /// Texts are not UTF-8.
    #[error(
        "the encoding is {found}, not UTF8: names of items would not survive; make the database with ENCODING 'UTF8'"
    )]
    Encoding {
        /// What the database has.
        found: String,
    },
    /// A standby, or a database that refuses writes.
    #[error("the server takes no writes (a standby, or default_transaction_read_only): name the primary")]
    ReadOnly,
    /// A pooler that gives transactions of one client to several connections.
    #[error(
        "a pooler in transaction mode stands before the database, where prepared statements get lost: connect to PostgreSQL itself, or let the pooler pool sessions"
    )]
    Pooler,
}

/// What a connection says of itself.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) version: (i64, String),
    pub(super) synchronous_commit: String,
    pub(super) fsync: String,
    pub(super) full_page_writes: String,
    pub(super) encoding: String,
    pub(super) writable: bool,
    pub(super) own_connection: bool,
}

/// Whether all transactions of `conn` are on one connection of the server. Two transactions at once take two of a pooler's
/// connections, given back in one order and then in the other: whether it hands out the last or the first of them next,
/// one of the rounds shows it.
async fn is_own(conn: &mut PgConnection, other: &mut PgConnection) -> Result<bool, sqlx::Error> {
    for other_first in [false, true] {
        let before = begin(conn).await?;
        begin(other).await?;
        if other_first {
            commit(other).await?;
            commit(conn).await?;
        } else {
            commit(conn).await?;
            commit(other).await?;
        }
        let after = begin(conn).await?;
        commit(conn).await?;
        if before != after {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Begins a transaction and tells the server's process.
async fn begin(conn: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql("BEGIN; SELECT pg_backend_pid()").fetch_one(conn).await?.try_get(0)
}

async fn commit(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("COMMIT").execute(conn).await.map(|_| ())
}

impl Facts {
    /// What `conn` says; `other` is a second connection by the same way.
    pub(super) async fn of(conn: &mut PgConnection, other: &mut PgConnection) -> Result<Self, sqlx::Error> {
        type Row = (i32, String, String, String, String, String, bool);
        // First, and without a prepared statement: behind a pooler those get lost, and this is what tells.
        let own_connection = is_own(conn, other).await?;
        let (number, version, synchronous_commit, fsync, full_page_writes, encoding, writable): Row = sqlx::query_as(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
                current_setting('server_encoding'),
                NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'",
        )
        .fetch_one(&mut *conn)
        .await?;
        Ok(Self {
            version: (number.into(), version),
            synchronous_commit,
            fsync,
            full_page_writes,
            encoding,
            writable,
            own_connection,
        })
    }

    pub(super) fn check(&self) -> Result<(), SelfCheckError> {
        if self.version.0 < VERSION_MIN {
            return Err(SelfCheckError::Version { found: self.version.1.clone() });
        }
        for (setting, value) in [
            ("synchronous_commit", &self.synchronous_commit),
            ("fsync", &self.fsync),
            ("full_page_writes", &self.full_page_writes),
        ] {
            if value == "off" {
                return Err(SelfCheckError::Durability { setting });
            }
        }
        if self.encoding != "UTF8" {
            return Err(SelfCheckError::Encoding { found: self.encoding.clone() });
        }
        if !self.writable {
            return Err(SelfCheckError::ReadOnly);
        }
        if !self.own_connection {
            return Err(SelfCheckError::Pooler);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            version: (150_018, "15.18".to_owned()),
            synchronous_commit: "on".to_owned(),
            fsync: "on".to_owned(),
            full_page_writes: "on".to_owned(),
            encoding: "UTF8".to_owned(),
            writable: true,
            own_connection: true,
        }
    }

    #[test]
    fn good_facts_pass() {
        assert_eq!(good().check(), Ok(()));
        assert_eq!(Facts { synchronous_commit: "remote_apply".to_owned(), ..good() }.check(), Ok(()));
    }

    #[test]
    fn each_wrong_fact_is_refused_with_its_reason() {
        let off = || "off".to_owned();
        for (facts, word) in [
            (Facts { version: (140_011, "14.11".to_owned()), ..good() }, "oldest that is tested"),
            (Facts { synchronous_commit: off(), ..good() }, "synchronous_commit is off"),
            (Facts { fsync: off(), ..good() }, "fsync is off"),
            (Facts { full_page_writes: off(), ..good() }, "full_page_writes is off"),
            (Facts { encoding: "SQL_ASCII".to_owned(), ..good() }, "not UTF8"),
            (Facts { writable: false, ..good() }, "no writes"),
            (Facts { own_connection: false, ..good() }, "pooler"),
        ] {
            let text = facts.check().expect_err(word).to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
