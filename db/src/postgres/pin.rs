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

/// As the server counts them, in the tables that claims pass through.
const DEAD_ROWS: &str = "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE relname LIKE 'cqs_%'";

impl PostgresDb {
    /// How many rows are gone and still there.
    pub async fn dead_rows(&self) -> Result<i64, DbError> {
        self.read(|conn, _| Box::pin(async { Ok(sqlx::query_scalar(DEAD_ROWS).fetch_one(conn).await?) })).await
    }
}

impl Pin {
    /// Lets it go.
    pub async fn release(self) -> Result<(), DbError> {
        Ok(self.conn.close().await?)
    }
}
