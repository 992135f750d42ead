//! The start-up self-check: what must hold of the server and of our connections before anybody is served.

use sqlx::PgConnection;

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
    /// A pooler that does not keep prepared statements with their connection.
    #[error(
        "prepared statements do not survive between transactions (a pooler in transaction mode?): connect to PostgreSQL itself, or let the pooler pool sessions"
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
    pub(super) own_statements: bool,
}

impl Facts {
    pub(super) async fn of(conn: &mut PgConnection) -> Result<Self, sqlx::Error> {
        type Row = (i32, String, String, String, String, String, bool);
        let (number, version, synchronous_commit, fsync, full_page_writes, encoding, writable): Row = sqlx::query_as(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
                current_setting('server_encoding'),
                NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'",
        )
        .fetch_one(&mut *conn)
        .await?;
        // A pooler that serves transactions gives each whatever connection is free, and forgets, or mixes up, statements
        // prepared by name. Whoever sees its own in the catalogue is on a connection of its own.
        let own: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%server_version_num%'",
        )
        .fetch_one(conn)
        .await?;
        Ok(Self {
            version: (number.into(), version),
            synchronous_commit,
            fsync,
            full_page_writes,
            encoding,
            writable,
            own_statements: own > 0,
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
        if !self.own_statements {
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
            own_statements: true,
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
            (Facts { own_statements: false, ..good() }, "pooler"),
        ] {
            let text = facts.check().expect_err(word).to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}
