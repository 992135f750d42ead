//! Waiting rows.

use std::collections::BTreeMap;

use domain::{AliasName, DtoType, SplitItem, Timestamp, TrackingId, Urn};

use super::{
    SqliteUnit,
    json::{json_text, kind_int, records_json, rows_json, urns_json},
};
use crate::{
    StoreError,
    columns::{alias_text, company_columns, limit_int, read_records, read_rows, store_text},
    model::{Company, RecordKey, Row},
    unit::{ReadyRange, Rows},
};

/// Rows that one statement inserts by their URNs must be so many on average.
const ALIKE_ROWS_MIN: usize = 8;

const OF_LANE_READY: &str = "
SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor,
    cause, handed_over
FROM cqs_waiting WHERE queue = ?1 AND lane = ?2 AND due_at IS NULL
ORDER BY store, is_parent, sla, id LIMIT ?3";

const OF_LANE_DELAYED: &str = "
SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor,
    cause, handed_over
FROM cqs_waiting WHERE lane = ?2 AND queue = ?1 AND due_at IS NOT NULL
ORDER BY due_at, id LIMIT ?3";

/// Everything of a new row but its URN; none is handed over.
#[derive(PartialEq, Eq)]
struct Alike<'a> {
    lane: i64,
    store: &'a str,
    is_parent: i64,
    dto_type: DtoType,
    alias: Option<AliasName>,
    sla: Timestamp,
    tracking_id: Option<&'a TrackingId>,
    attempts: i32,
    due_at: Option<Timestamp>,
    company: Company,
    cursor: &'a str,
    cause: &'a str,
}

impl<'a> Alike<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            lane: row.lane,
            store: store_text(row.store.as_ref()),
            is_parent: kind_int(row.kind()),
            dto_type: row.item.dto_type,
            alias: row.item.alias,
            sla: row.sla,
            tracking_id: row.tracking_id.as_ref(),
            attempts: row.attempts,
            due_at: row.due_at,
            company: row.company,
            cursor: &row.cursor,
            cause: &row.cause,
        }
    }
}

impl SqliteUnit<'_> {
    /// Inserts new rows that differ in their URNs only.
    async fn row_insert_alike(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        let Some(alike) = rows.first().map(Alike::of) else { return Ok(()) };
        let (alone, lapses) = company_columns(alike.company);
        sqlx::query(
            "INSERT INTO cqs_waiting (queue, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts,
                due_at, alone, lapses_alone, cursor, cause)
             SELECT ?2, ?3, ?4, ?5, ?6, value, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15 FROM jsonb_each(?1)",
        )
        .bind(urns_json(rows.iter().map(|row| row.item.target.urn()))?)
        .bind(queue)
        .bind(alike.lane)
        .bind(alike.store)
        .bind(alike.is_parent)
        .bind(alike.dto_type.as_str())
        .bind(alias_text(alike.alias))
        .bind(alike.sla.as_ms())
        .bind(alike.tracking_id.map_or("", |id| id.as_str()))
        .bind(alike.attempts)
        .bind(alike.due_at.map(Timestamp::as_ms))
        .bind(alone)
        .bind(lapses)
        .bind(alike.cursor)
        .bind(alike.cause)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}

impl Rows for SqliteUnit<'_> {
    async fn row_same(&mut self, queue: i64, lane: i64, items: &[&SplitItem]) -> Result<Vec<Row>, StoreError> {
        let mut by_key: BTreeMap<(&str, &str), Vec<&Urn>> = BTreeMap::new();
        for item in items {
            by_key.entry((item.dto_type.as_str(), alias_text(item.alias))).or_default().push(item.target.urn());
        }
        let mut found = Vec::new();
        for ((dto_type, alias), urns) in by_key {
            let rows = sqlx::query(
                "SELECT w.id, w.lane, w.store, w.is_parent, w.dto_type, w.urn, w.alias, w.sla, w.tracking_id,
                    w.attempts, w.due_at, w.alone, w.lapses_alone, w.cursor, w.cause,
                    w.handed_over
                 FROM jsonb_each(?1) CROSS JOIN cqs_waiting w
                    ON w.urn = value AND w.queue = ?2 AND w.lane = ?3 AND w.dto_type = ?4 AND w.alias = ?5",
            )
            .bind(urns_json(urns.into_iter())?)
            .bind(queue)
            .bind(lane)
            .bind(dto_type)
            .bind(alias)
            .fetch_all(&mut *self.conn)
            .await?;
            found.extend(read_rows("cqs_waiting", &rows)?);
        }
        Ok(found)
    }

    async fn row_insert(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        let alike = |a: &Row, b: &Row| a.id == 0 && b.id == 0 && Alike::of(a) == Alike::of(b);
        // A split's children differ in their URNs only, and then a row costs a third. Rows that differ more go together in
        // one statement rather than in one each.
        if rows.chunk_by(alike).count() * ALIKE_ROWS_MIN <= rows.len() && rows.iter().all(|row| row.id == 0) {
            for rows in rows.chunk_by(alike) {
                self.row_insert_alike(queue, rows).await?;
            }
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO cqs_waiting (id, queue, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts,
                due_at, alone, lapses_alone, cursor, cause, handed_over)
             SELECT value ->> 0, ?2, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13,
                value ->> 14, value ->> 15
             FROM jsonb_each(?1)",
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
                due_at = value ->> 10, alone = value ->> 11, lapses_alone = value ->> 12, cursor = value ->> 13,
                cause = value ->> 14, handed_over = value ->> 15
             FROM jsonb_each(?1) WHERE cqs_waiting.id = value ->> 0 AND cqs_waiting.queue = ?2",
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
                lapses_alone, cursor, cause, handed_over
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
                lapses_alone, cursor, cause, handed_over
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

    async fn row_of_lane(&mut self, queue: i64, lane: i64, limit: usize) -> Result<Vec<Row>, StoreError> {
        let mut found = Vec::new();
        // Each kind by its own index.
        for statement in [OF_LANE_READY, OF_LANE_DELAYED] {
            let left = limit - found.len().min(limit);
            if left == 0 {
                break;
            }
            let rows =
                sqlx::query(statement).bind(queue).bind(lane).bind(limit_int(left)).fetch_all(&mut *self.conn).await?;
            found.extend(read_rows("cqs_waiting", &rows)?);
        }
        Ok(found)
    }

    async fn row_remove(&mut self, queue: i64, _: i64, ids: &[i64]) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM cqs_waiting WHERE id IN (SELECT value FROM jsonb_each(?1)) AND queue = ?2")
            .bind(json_text(&ids)?)
            .bind(queue)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn row_elsewhere(
        &mut self,
        queue: i64,
        lane: i64,
        records: &[RecordKey],
    ) -> Result<Vec<RecordKey>, StoreError> {
        let rows = sqlx::query(
            "SELECT value ->> 0 AS urn, value ->> 1 AS dto_type FROM jsonb_each(?1)
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
