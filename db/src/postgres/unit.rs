//! A unit of work: one transaction in a task of its own, run again where PostgreSQL asks for it.

use std::{panic::AssertUnwindSafe, time::Duration};

use domain::Timestamp;
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{Executor as _, PgConnection, PgPool, Row as _, pool::PoolConnection, postgres::Postgres};

use super::Failure;
use crate::DbError;

/// How often a unit runs before its conflict is the caller's: two units that meet resolve by the second attempt, and a
/// restart of PostgreSQL takes a second or two, which the pauses between them add up to.
pub const ATTEMPTS_MAX: u32 = 9;
/// Pause before the second attempt, doubled each time: 5 ms … 640 ms.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest unit. The slowest one meant to be here (4,096 children) takes well under a second.
const UNIT_TIME_MAX: Duration = Duration::from_secs(30);

/// Begins and tells the time, in one text. The bounds hold for this transaction only, so that they also hold behind a
/// pooler that hands transactions to whatever connection is free:
/// - a lock that is not had within 10 s is somebody's fault who must not take us along;
/// - whoever goes silent inside a transaction holds locks for a minute at most, also when its machine is gone.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL lock_timeout = '10s';
    SET LOCAL statement_timeout = '30s';
    SET LOCAL idle_in_transaction_session_timeout = '60s';
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(super) async fn write<T, E, F>(pool: PgPool, work: F) -> Result<T, E>
where
    F: for<'c> Fn(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
    T: Send + 'static,
    E: Failure,
{
    // A caller that goes away drops its handle, not the task.
    let running = tokio::spawn(async move {
        let mut pause = PAUSE_FIRST;
        for _ in 1..ATTEMPTS_MAX {
            match attempt(&pool, &work).await {
                Err(error) if error.database().is_some_and(DbError::passes) => {
                    tracing::debug!(error = ?error.database(), "unit of work runs again");
                }
                end => return end,
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        attempt(&pool, &work).await
    });
    running.await.unwrap_or_else(|_| Err(DbError::Closed.into()))
}

async fn attempt<T, E, F>(pool: &PgPool, work: &F) -> Result<T, E>
where
    F: for<'c> Fn(&'c mut PgConnection, Timestamp) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
    E: Failure,
{
    let mut conn = pool.acquire().await.map_err(DbError::from)?;
    let now = match begin(&mut conn, BEGIN).await {
        Ok(now) => now,
        Err(error) => {
            conn.close_on_drop();
            return Err(error.into());
        }
    };
    let running = AssertUnwindSafe(async { work(&mut conn, now).await }).catch_unwind();
    let end = match tokio::time::timeout(UNIT_TIME_MAX, running).await {
        Ok(Ok(end)) => end,
        Ok(Err(_)) => {
            tracing::error!("a unit of work panicked");
            Err(DbError::Panicked.into())
        }
        Err(_) => {
            tracing::error!("a unit of work took too long");
            // A statement of it may still be under way: nobody else gets this connection.
            conn.close_on_drop();
            return Err(DbError::TimedOut.into());
        }
    };
    match end {
        Ok(value) => commit(conn).await.map(|()| value).map_err(E::from),
        Err(error) => {
            roll_back(conn).await;
            Err(error)
        }
    }
}

/// Begins by `text`, whose last statement tells the time.
pub(super) async fn begin(conn: &mut PgConnection, text: &'static str) -> Result<Timestamp, DbError> {
    let row = sqlx::raw_sql(text).fetch_one(conn).await?;
    Ok(Timestamp::from_ms(row.try_get(0)?))
}

async fn commit(mut conn: PoolConnection<Postgres>) -> Result<(), DbError> {
    match conn.execute("COMMIT").await {
        Ok(_) => Ok(()),
        Err(error) => {
            conn.close_on_drop();
            // What PostgreSQL itself says did not happen; without an answer nobody knows.
            match (matches!(error, sqlx::Error::Database(_)), DbError::from(error)) {
                (true, said) if !matches!(said, DbError::Lost(_)) => Err(said),
                (_, unknown) => {
                    Err(DbError::NotCommitted(std::sync::Arc::new(sqlx::Error::Protocol(unknown.to_string()))))
                }
            }
        }
    }
}

pub(super) async fn roll_back(mut conn: PoolConnection<Postgres>) {
    if conn.execute("ROLLBACK").await.is_err() {
        conn.close_on_drop();
    }
}
