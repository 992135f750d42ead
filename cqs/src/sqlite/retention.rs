//! What is forgotten after its time.

use domain::Timestamp;

use super::SqliteUnit;
use crate::{StoreError, columns::limit_int, unit::Retention};

impl Retention for SqliteUnit<'_> {
    async fn operation_expired(&mut self, before: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT lane FROM cqs_operation o
             WHERE finished_at IS NOT NULL AND finished_at < ?1
                AND NOT EXISTS (SELECT 1 FROM cqs_retry r WHERE r.parent_lane = o.lane AND r.done = 0)
             ORDER BY finished_at, lane LIMIT ?2",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?)
    }

    async fn operation_forget(&mut self, lane: i64, limit: usize) -> Result<bool, StoreError> {
        for statement in [
            "DELETE FROM cqs_dead WHERE id IN (SELECT id FROM cqs_dead WHERE lane = ?1 ORDER BY queue, id LIMIT ?2)",
            "DELETE FROM cqs_dead_group WHERE (lane, queue, cause) IN (
                SELECT lane, queue, cause FROM cqs_dead_group WHERE lane = ?1 LIMIT ?2)",
        ] {
            let forgotten = sqlx::query(statement).bind(lane).bind(limit_int(limit)).execute(&mut *self.conn).await?;
            if usize::try_from(forgotten.rows_affected()) == Ok(limit) {
                return Ok(false);
            }
        }
        for statement in [
            "DELETE FROM cqs_ledger WHERE lane = ?1",
            "DELETE FROM cqs_ledger_delta WHERE lane = ?1",
            "DELETE FROM cqs_retry WHERE lane = ?1",
            "DELETE FROM cqs_control WHERE lane = ?1",
            "DELETE FROM cqs_pace WHERE lane = ?1",
            "DELETE FROM cqs_place WHERE lane = ?1",
            "DELETE FROM cqs_operation WHERE lane = ?1",
            "DELETE FROM cqs_lane WHERE lane = ?1",
        ] {
            sqlx::query(statement).bind(lane).execute(&mut *self.conn).await?;
        }
        Ok(true)
    }

    async fn dead_prune(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let forgotten = sqlx::query(
            "DELETE FROM cqs_dead WHERE id IN (
                SELECT id FROM cqs_dead WHERE of_operation = 0 AND at < ?1 ORDER BY at, id LIMIT ?2)",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(usize::try_from(forgotten.rows_affected()).unwrap_or(usize::MAX))
    }
}
