//! Queues.

use domain::{QueueName, Timestamp};

use super::SqliteUnit;
use crate::{
    StoreError,
    columns::{bind_queue, read_queue},
    model::Queue,
    unit::Queues,
};

impl Queues for SqliteUnit<'_> {
    async fn queue_find(&mut self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        let found = sqlx::query(
            "SELECT queue, name, subscriptions, shapes, exclusive_by_store, polled_at FROM cqs_queue WHERE name = ?1",
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
        sqlx::query("UPDATE cqs_queue SET polled_at = ?2 WHERE queue = ?1")
            .bind(queue)
            .bind(now.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn queue_put(&mut self, queue: &Queue) -> Result<(), StoreError> {
        let put = sqlx::query(
            "INSERT INTO cqs_queue (name, subscriptions, shapes, exclusive_by_store) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET subscriptions = excluded.subscriptions, shapes = excluded.shapes",
        );
        bind_queue(put, queue)?.execute(&mut *self.conn).await?;
        Ok(())
    }
}
