//! Reading: one snapshot per call, in a transaction that cannot write.

use std::{panic::AssertUnwindSafe, time::Duration};

use domain::Timestamp;
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{PgConnection, PgPool};

use super::{
    Failure,
    unit::{begin, roll_back},
};
use crate::DbError;

/// Longest read. A snapshot kept open keeps dead rows from being removed, so none may stay for ever.
const READ_TIME_MAX: Duration = Duration::from_secs(30);

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL statement_timeout = '30s';
    SET LOCAL idle_in_transaction_session_timeout = '60s';
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Connections tried: one from before a restart of PostgreSQL is met as lost, each only once.
const ATTEMPTS_MAX: u32 = 8;

/// Runs `work` in its own task, so that a caller that goes away never leaves a snapshot open on a pooled connection.
pub(super) async fn read<T, E, F>(readers: PgPool, work: F) -> Result<T, E>
where
    F: for<'c> FnOnce(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: Failure,
{
    let reading = tokio::spawn(async move {
        let (mut conn, now) = begun(&readers).await?;
        let running = AssertUnwindSafe(async { work(&mut conn, now).await }).catch_unwind();
        let end = match tokio::time::timeout(READ_TIME_MAX, running).await {
            Ok(Ok(end)) => end,
            Ok(Err(_)) => Err(DbError::Panicked.into()),
            Err(_) => {
                conn.close_on_drop();
                return Err(DbError::TimedOut.into());
            }
        };
        roll_back(conn).await;
        end
    });
    reading.await.unwrap_or_else(|_| Err(DbError::Closed.into()))
}

async fn begun(readers: &PgPool) -> Result<(sqlx::pool::PoolConnection<sqlx::Postgres>, Timestamp), DbError> {
    let mut tried = 1;
    loop {
        let mut conn = readers.acquire().await?;
        match begin(&mut conn, BEGIN).await {
            Ok(now) => return Ok((conn, now)),
            Err(error) => {
                conn.close_on_drop();
                if !error.passes() || tried == ATTEMPTS_MAX {
                    return Err(error);
                }
                tried += 1;
            }
        }
    }
}
