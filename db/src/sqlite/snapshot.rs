//! Looking at a database from outside, and copying it, while whoever has it open goes on.
//!
//! Neither needs the lock: both only read, and a reader of a write-ahead log never stands in a writer's way. What is
//! seen is one committed state. While a copy is made the log cannot be reset, so it grows by what is written meanwhile.

use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{OpenError, lock, migrations};

/// Complaints of the check that are told; the first says that a backup is needed, the others add nothing.
const COMPLAINTS_MAX: usize = 10;

/// What a database says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The file, as it was found on the disk.
    pub path: PathBuf,
    /// Whether another process has it open.
    pub in_use: bool,
    /// Its schema.
    pub schema: i64,
    /// The newest schema of this build.
    pub known: i64,
    /// Bytes of the file, its log apart.
    pub bytes: u64,
    /// What SQLite's own check found wrong; empty when nothing.
    pub complaints: Vec<String>,
}

/// Looks at the database at `path` and checks every page of it, which reads the whole file once.
pub async fn inspect(path: &Path) -> Result<Inspection, OpenError> {
    let path = existing(path)?;
    let in_use = lock::is_held(&path);
    let mut conn = reading(&path).await?;
    let schema = migrations::schema_found(&mut conn).await?;
    let complaints = check(&mut conn).await?;
    conn.close().await?;
    let bytes = std::fs::metadata(&path).map_err(|cause| OpenError::Io { path: path.clone(), cause })?.len();
    Ok(Inspection { path, in_use, schema, known: migrations::latest(), bytes, complaints })
}

/// Writes the present state of the database at `from` to the new file `to`, synced and checked.
pub async fn copy(from: &Path, to: &Path) -> Result<Inspection, OpenError> {
    let from = existing(from)?;
    let io = |cause| OpenError::Io { path: to.to_owned(), cause };
    if to.exists() {
        return Err(io(std::io::Error::from(std::io::ErrorKind::AlreadyExists)));
    }
    let target = to.to_str().ok_or_else(|| io(std::io::Error::from(std::io::ErrorKind::InvalidFilename)))?;
    let mut conn = reading(&from).await?;
    // Another program's file is none that we could restore.
    migrations::schema_found(&mut conn).await?;
    sqlx::query("VACUUM INTO ?").bind(target).execute(&mut conn).await?;
    conn.close().await?;
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(io)?;
    inspect(to).await
}

fn existing(path: &Path) -> Result<PathBuf, OpenError> {
    path.canonicalize().map_err(|cause| OpenError::Io { path: path.to_owned(), cause })
}

async fn reading(path: &Path) -> Result<SqliteConnection, OpenError> {
    Ok(SqliteConnectOptions::new().filename(path).read_only(true).connect().await?)
}

async fn check(conn: &mut SqliteConnection) -> Result<Vec<String>, OpenError> {
    // A pragma takes no bound values; the number is ours.
    let pragma = format!("PRAGMA quick_check({COMPLAINTS_MAX})");
    let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(pragma)).fetch_all(conn).await?;
    Ok(if rows == ["ok"] { Vec::new() } else { rows })
}
