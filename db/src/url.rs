//! Which database: `sqlite://path` or `postgres://…`.

use std::{fmt, path::PathBuf, str::FromStr};

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// `sqlite://path`: a file; the path is relative to the working directory unless it starts with a slash.
    Sqlite(PathBuf),
    /// `postgres://user:password@host/database`: a server.
    Postgres(PostgresUrl),
}

/// Where a PostgreSQL database is, as libpq writes it. May hold a password, so it is shown without.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// The whole of it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Between the scheme and the last @ before the path stand user and password; a query may name both, too.
        let text = self.0.split('?').next().unwrap_or_default();
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        write!(f, "{scheme}://{place}")
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

/// Why a text names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a database URL: use sqlite:// followed by the path of the file, e.g. sqlite:///var/lib/reshelf/reshelf.db, or postgres://user@host/database"
)]
pub struct DatabaseUrlError;

impl FromStr for PostgresUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        // Without a database's name, the user's would be taken: better said.
        let named =
            rest.and_then(|rest| rest.split('?').next()?.split_once('/')).is_some_and(|(_, name)| !name.is_empty());
        if named { Ok(Self(text.to_owned())) } else { Err(DatabaseUrlError) }
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        if text.starts_with("postgres") {
            return text.parse().map(Self::Postgres);
        }
        let path = text.strip_prefix("sqlite://").ok_or(DatabaseUrlError)?;
        // A query string would be taken for part of the file's name, and SQLite's in-memory names for a database that
        // survives a restart: both are mistakes better refused.
        if path.is_empty() || path.contains('?') || path.contains(":memory:") {
            return Err(DatabaseUrlError);
        }
        Ok(Self::Sqlite(PathBuf::from(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_servers_are_named() {
        assert_eq!("sqlite:///a/b.db".parse(), Ok(DatabaseUrl::Sqlite(PathBuf::from("/a/b.db"))));
        assert_eq!("sqlite://b.db".parse(), Ok(DatabaseUrl::Sqlite(PathBuf::from("b.db"))));
        assert!(matches!("postgres://u@h/d".parse(), Ok(DatabaseUrl::Postgres(_))));
        assert!(matches!("postgresql:///d?host=/run/postgresql".parse(), Ok(DatabaseUrl::Postgres(_))));
        for bad in [
            "",
            "sqlite://",
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite://a?mode=ro",
            "mysql://h/d",
            "/a.db",
            "postgres://",
            "postgres://host",
            "postgres://host/",
            "postgres://host/?dbname=d",
        ] {
            let error = bad.parse::<DatabaseUrl>().expect_err(bad);
            assert!(error.to_string().contains("sqlite://"), "names what is supported");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let url: DatabaseUrl = "postgres://me:se@cret@db.example:5433/shelf?password=se@cret".parse().unwrap();
        let DatabaseUrl::Postgres(url) = url else { panic!("a server") };
        assert_eq!(url.to_string(), "postgres://db.example:5433/shelf");
        assert!(!format!("{url:?}").contains("cret"));
        assert!(url.expose().contains("cret"));
    }
}
