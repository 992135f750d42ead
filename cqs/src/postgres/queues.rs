//! Queues.

use domain::{QueueName, Timestamp};

use super::{PostgresUnit, arrays::queue_int};
use crate::{
    StoreError,
    columns::{bind_queue, read_backlog, read_queue},
    model::{Backlog, Queue},
    unit::Queues,
};

/// Rows of a queue counted at most, ready and delayed ones each: more are told as so many. Counting a million takes some
/// hundred milliseconds.
const COUNTED_MAX: i64 = 1_000_000;

impl Queues for PostgresUnit<'_> {
    async fn queue_find(&mut self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        let found = sqlx::query(
            "SELECT queue, name, subscriptions, shapes, exclusive_by_store, polled_at FROM cqs_queue WHERE name = $1",
        )
        .bind(name.as_str())
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_queue).transpose()
    }

    async fn queue_list(&mut self) -> Result<Vec<Queue>, StoreError> {
        let rows = sqlx::query(
            "SELECT queue, name, subscriptions, shapes, exclusive_by_store, polled_at FROM cqs_queue ORDER BY queue",
        )
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_queue).collect()
    }

    async fn queue_polled(&mut self, queue: i64, now: Timestamp) -> Result<(), StoreError> {
        // Who finds it being noted by somebody else need not wait to note the same.
        sqlx::query(
            "UPDATE cqs_queue SET polled_at = $2
             WHERE queue = (SELECT queue FROM cqs_queue WHERE queue = $1 FOR UPDATE SKIP LOCKED)",
        )
        .bind(queue_int(queue))
        .bind(now.as_ms())
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn queue_backlogs(&mut self) -> Result<Vec<Backlog>, StoreError> {
        let rows = sqlx::query(
            "SELECT q.name,
                (SELECT count(*) FROM (
                    SELECT 1 FROM cqs_place p CROSS JOIN LATERAL (
                        SELECT 1 FROM cqs_waiting w
                        WHERE w.tenant = p.tenant AND w.lane = p.lane AND w.queue = q.queue AND w.due_at IS NULL OFFSET 0)
                        AS ready
                    WHERE p.queue = q.queue LIMIT $1) AS counted)
                + (SELECT count(*) FROM (
                    SELECT 1 FROM cqs_waiting w WHERE w.queue = q.queue AND w.due_at IS NOT NULL LIMIT $1) AS counted) AS waiting,
                (SELECT count(*) FROM (
                    SELECT 1 FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation
                    WHERE l.queue = q.queue LIMIT $1) AS counted) AS leased
             FROM cqs_queue q ORDER BY q.queue",
        )
        .bind(COUNTED_MAX)
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_backlog).collect()
    }

    async fn queue_put(&mut self, queue: &Queue) -> Result<(), StoreError> {
        let put = sqlx::query(
            "INSERT INTO cqs_queue (name, subscriptions, shapes, exclusive_by_store) VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO UPDATE SET subscriptions = excluded.subscriptions, shapes = excluded.shapes",
        );
        bind_queue(put, queue)?.execute(&mut *self.conn).await?;
        Ok(())
    }
}
