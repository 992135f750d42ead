//! Queues.

use domain::{ParentShape, QueueName, Timestamp};
use sqlx::postgres::PgRow;

use super::{
    PostgresUnit,
    columns::{Columns, alias_text, queue_int},
};
use crate::{
    StoreError,
    model::{Backlog, Exclusive, Queue},
    unit::Queues,
};

impl Queues for PostgresUnit<'_> {
    async fn queue_find(&mut self, name: &QueueName) -> Result<Option<Queue>, StoreError> {
        let found = sqlx::query(
            "SELECT queue, name, subscriptions, shapes, exclusive_by_store, polled_at FROM cqs_queue WHERE name = $1",
        )
        .bind(name.as_str())
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(queue).transpose()
    }

    async fn queue_list(&mut self) -> Result<Vec<Queue>, StoreError> {
        let rows = sqlx::query(
            "SELECT queue, name, subscriptions, shapes, exclusive_by_store, polled_at FROM cqs_queue ORDER BY queue",
        )
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(queue).collect()
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
            "SELECT name,
                (SELECT count(*) FROM cqs_waiting WHERE cqs_waiting.queue = cqs_queue.queue) AS waiting,
                (SELECT count(*) FROM cqs_lease JOIN cqs_leased
                    ON cqs_leased.tenant = cqs_lease.tenant AND cqs_leased.lease = cqs_lease.generation
                    WHERE cqs_lease.queue = cqs_queue.queue) AS leased
             FROM cqs_queue ORDER BY queue",
        )
        .fetch_all(&mut *self.conn)
        .await?;
        let backlog = |row| {
            let columns = Columns { table: "cqs_queue", row, key: "name" };
            Ok(Backlog {
                queue: columns.parse("name")?,
                waiting: columns.get("waiting")?,
                leased: columns.get("leased")?,
            })
        };
        rows.iter().map(backlog).collect()
    }

    async fn queue_put(&mut self, queue: &Queue) -> Result<(), StoreError> {
        let subscriptions: Vec<&str> = queue.subscriptions.iter().map(|dto_type| dto_type.as_str()).collect();
        let shapes: Vec<(&str, &str)> =
            queue.shapes.iter().map(|shape| (shape.dto_type.as_str(), alias_text(shape.alias))).collect();
        sqlx::query(
            "INSERT INTO cqs_queue (name, subscriptions, shapes, exclusive_by_store) VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO UPDATE SET subscriptions = excluded.subscriptions, shapes = excluded.shapes",
        )
        .bind(queue.name.as_str())
        .bind(serde_json::to_string(&subscriptions)?)
        .bind(serde_json::to_string(&shapes)?)
        .bind(queue.exclusive == Exclusive::ByStore)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}

fn queue(row: &PgRow) -> Result<Queue, StoreError> {
    let columns = Columns { table: "cqs_queue", row, key: "name" };
    let subscriptions: Vec<String> =
        serde_json::from_str(columns.get("subscriptions")?).map_err(|_| columns.broken("subscriptions"))?;
    let shapes: Vec<(String, String)> =
        serde_json::from_str(columns.get("shapes")?).map_err(|_| columns.broken("shapes"))?;
    let shape = |(dto_type, alias): (String, String)| {
        let alias = if alias.is_empty() { None } else { Some(alias.parse().map_err(|_| columns.broken("shapes"))?) };
        Ok(ParentShape { dto_type: dto_type.parse().map_err(|_| columns.broken("shapes"))?, alias })
    };
    Ok(Queue {
        id: columns.key("queue")?,
        name: columns.parse("name")?,
        subscriptions: subscriptions
            .iter()
            .map(|dto_type| dto_type.parse().map_err(|_| columns.broken("subscriptions")))
            .collect::<Result<_, _>>()?,
        shapes: shapes.into_iter().map(shape).collect::<Result<_, StoreError>>()?,
        exclusive: if columns.get("exclusive_by_store")? { Exclusive::ByStore } else { Exclusive::No },
        polled_at: columns.time_if("polled_at")?,
    })
}
