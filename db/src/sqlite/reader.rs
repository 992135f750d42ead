//! Reading: one snapshot per call, on a connection that cannot write.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{SqliteConnection, SqlitePool};

use crate::DbError;

/// Longest read. A snapshot kept open stops the log from being reset, so none may stay for ever.
const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Runs `work` in its own task, so that a caller that goes away never leaves a snapshot open on a pooled connection.
pub(super) async fn read<T, E, F>(readers: SqlitePool, work: F) -> Result<T, E>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<DbError> + Send + 'static,
{
    let reading = tokio::spawn(async move {
        let mut conn = readers.acquire().await.map_err(DbError::from)?;
        sqlx::query("BEGIN").execute(&mut *conn).await.map_err(DbError::from)?;
        let end = tokio::time::timeout(READ_TIME_MAX, AssertUnwindSafe(async { work(&mut conn).await }).catch_unwind());
        let end = match end.await {
            Ok(Ok(end)) => end,
            Ok(Err(_)) => Err(DbError::Panicked.into()),
            Err(_) => Err(DbError::TimedOut.into()),
        };
        if sqlx::query("ROLLBACK").execute(&mut *conn).await.is_err() {
            // Whatever state it is in, nobody else gets it.
            conn.close_on_drop();
        }
        end
    });
    reading.await.unwrap_or_else(|_| Err(DbError::Closed.into()))
}
