//! Which database: `sqlite://path`.

use std::{path::PathBuf, str::FromStr};

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// `sqlite://path`: a file; the path is relative to the working directory unless it starts with a slash.
    Sqlite(PathBuf),
}

/// Why a text names no database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a database URL: use sqlite:// followed by the path of the file, e.g. sqlite:///var/lib/reshelf/reshelf.db"
)]
pub struct DatabaseUrlError;

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
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
    fn only_sqlite_files_are_named() {
        assert_eq!("sqlite:///a/b.db".parse(), Ok(DatabaseUrl::Sqlite(PathBuf::from("/a/b.db"))));
        assert_eq!("sqlite://b.db".parse(), Ok(DatabaseUrl::Sqlite(PathBuf::from("b.db"))));
        for bad in
            ["", "sqlite://", "sqlite::memory:", "sqlite://:memory:", "sqlite://a?mode=ro", "mysql://h/d", "/a.db"]
        {
            let error = bad.parse::<DatabaseUrl>().expect_err(bad);
            assert!(error.to_string().contains("sqlite://"), "names what is supported");
        }
    }
}
