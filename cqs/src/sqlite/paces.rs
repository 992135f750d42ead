//! Samples of how far operations were.

use domain::Timestamp;

use super::{SqliteUnit, json::json_text};
use crate::{
    StoreError,
    columns::{limit_int, read_pace},
    model::Pace,
    unit::Paces,
};

impl Paces for SqliteUnit<'_> {
    async fn pace_last(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let last: Option<i64> = sqlx::query_scalar("SELECT max(at) FROM cqs_pace").fetch_one(&mut *self.conn).await?;
        Ok(last.map(Timestamp::from_ms))
    }

    async fn pace_put(&mut self, paces: &[Pace]) -> Result<(), StoreError> {
        let paces: Vec<_> = paces.iter().map(|pace| (pace.lane, pace.queue, pace.at.as_ms(), pace.gone)).collect();
        sqlx::query(
            "INSERT INTO cqs_pace (lane, queue, at, gone)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(?1) WHERE true
             ON CONFLICT DO NOTHING",
        )
        .bind(json_text(&paces)?)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn pace_find(&mut self, lanes: &[i64], since: Timestamp) -> Result<Vec<Pace>, StoreError> {
        let rows = sqlx::query(
            "SELECT lane, queue, at, gone FROM cqs_pace
             WHERE lane IN (SELECT value FROM jsonb_each(?1)) AND at >= ?2 ORDER BY at, lane, queue",
        )
        .bind(json_text(&lanes)?)
        .bind(since.as_ms())
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_pace).collect()
    }

    async fn pace_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM cqs_pace WHERE (lane, queue, at) IN (
                SELECT lane, queue, at FROM cqs_pace WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}
