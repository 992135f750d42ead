//! A snapshot that is kept open, as a long dump or a forgotten session keeps one: for measuring, and for tests of, what goes
//! on meanwhile. Nothing that serves keeps one.

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::PostgresDb;
use crate::DbError;

/// While it is there, no row that goes can be removed. Ends when dropped.
#[derive(Debug)]
pub struct Pin {
    conn: PgConnection,
}

impl PostgresDb {
    /// Takes a snapshot and keeps it, on a connection of its own.
    pub async fn pin(&self) -> Result<Pin, DbError> {
        // Taken out of the pool, which makes another one in its place.
        let mut conn = self.inner.readers.acquire().await?.detach();
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        // The snapshot is taken by the first statement.
        conn.execute("SELECT 1").await?;
        Ok(Pin { conn })
    }
}

impl Pin {
    /// Lets it go.
    pub async fn release(self) -> Result<(), DbError> {
        Ok(self.conn.close().await?)
    }
}
