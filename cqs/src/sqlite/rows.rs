//! Waiting rows.

use domain::{SplitItem, Timestamp};

use super::{
    SqliteUnit,
    columns::{
        alias_text, json_text, kind_int, limit_int, read_records, read_rows, records_json, rows_json, store_text,
    },
};
use crate::{
    StoreError,
    model::{RecordKey, Row},
    unit::{ReadyRange, Rows},
};

impl Rows for SqliteUnit<'_> {
    async fn row_same(&mut self, queue: i64, lane: i64, items: &[&SplitItem]) -> Result<Vec<Row>, StoreError> {
        let keys = items
            .iter()
            .map(|item| (item.target.urn().to_string(), item.dto_type.as_str(), alias_text(item.alias)))
            .collect::<Vec<_>>();
        let rows = sqlx::query(
            "SELECT w.id, w.lane, w.store, w.is_parent, w.dto_type, w.urn, w.alias, w.sla, w.tracking_id, w.attempts,
                w.due_at, w.alone, w.lapses_alone, w.cursor
             FROM json_each(?1) CROSS JOIN cqs_waiting w
                ON w.urn = value ->> 0 AND w.queue = ?2 AND w.lane = ?3 AND w.dto_type = value ->> 1
                AND w.alias = value ->> 2",
        )
        .bind(json_text(&keys)?)
        .bind(queue)
        .bind(lane)
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_waiting", &rows)
    }

    async fn row_insert(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO cqs_waiting (id, queue, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts,
                due_at, alone, lapses_alone, cursor)
             SELECT value ->> 0, ?2, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13
             FROM json_each(?1)",
        )
        .bind(rows_json(rows)?)
        .bind(queue)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn row_update(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE cqs_waiting SET sla = value ->> 7, tracking_id = value ->> 8, attempts = value ->> 9,
                due_at = value ->> 10, alone = value ->> 11, lapses_alone = value ->> 12, cursor = value ->> 13
             FROM json_each(?1) WHERE cqs_waiting.id = value ->> 0 AND cqs_waiting.queue = ?2",
        )
        .bind(rows_json(rows)?)
        .bind(queue)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn row_ready(&mut self, range: ReadyRange<'_>) -> Result<Vec<Row>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone,
                lapses_alone, cursor
             FROM cqs_waiting
             WHERE queue = ?1 AND lane = ?2 AND store = ?3 AND is_parent = ?4 AND due_at IS NULL
             ORDER BY sla, id LIMIT ?5",
        )
        .bind(range.head.queue)
        .bind(range.head.lane)
        .bind(store_text(range.head.store.as_ref()))
        .bind(kind_int(range.kind))
        .bind(limit_int(range.limit))
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_waiting", &rows)
    }

    async fn row_due(&mut self, queue: i64, now: Timestamp, limit: usize) -> Result<Vec<Row>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone,
                lapses_alone, cursor
             FROM cqs_waiting
             WHERE queue = ?1 AND due_at IS NOT NULL AND due_at <= ?2
             ORDER BY due_at, id LIMIT ?3",
        )
        .bind(queue)
        .bind(now.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_waiting", &rows)
    }

    async fn row_next_due(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> =
            sqlx::query_scalar("SELECT min(due_at) FROM cqs_waiting WHERE queue = ?1 AND due_at IS NOT NULL")
                .bind(queue)
                .fetch_one(&mut *self.conn)
                .await?;
        Ok(next.map(Timestamp::from_ms))
    }

    async fn row_elsewhere(
        &mut self,
        queue: i64,
        lane: i64,
        records: &[RecordKey],
    ) -> Result<Vec<RecordKey>, StoreError> {
        let rows = sqlx::query(
            "SELECT value ->> 0 AS urn, value ->> 1 AS dto_type FROM json_each(?1)
             WHERE EXISTS (
                SELECT 1 FROM cqs_waiting w
                WHERE w.urn = value ->> 0 AND w.queue = ?2 AND w.lane <> ?3 AND w.dto_type = value ->> 1
                    AND w.is_parent = 0)",
        )
        .bind(records_json(records)?)
        .bind(queue)
        .bind(lane)
        .fetch_all(&mut *self.conn)
        .await?;
        read_records("cqs_waiting", &rows)
    }
}
