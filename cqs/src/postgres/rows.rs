//! Waiting rows.

use std::collections::{BTreeMap, BTreeSet};

use db::postgres::by_tenant;
use domain::{SplitItem, TenantId, Timestamp, Urn};

use super::{
    PostgresUnit,
    arrays::{RowArrays, queue_int, record_arrays},
    floors::Awaited,
    heads::Mark,
    locks::Lock,
};
use crate::{
    StoreError,
    columns::{alias_text, limit_int, read_records, read_rows, store_text},
    model::{HeadKey, RecordKey, Row, RowKind},
    unit::{ReadyRange, Rows},
};

impl Rows for PostgresUnit<'_> {
    /// Locks them: what is merged into them must not be claimed meanwhile. One that is being claimed is waited for, and is
    /// gone then.
    async fn row_same(&mut self, queue: i64, lane: i64, items: &[&SplitItem]) -> Result<Vec<Row>, StoreError> {
        let mut by_key: BTreeMap<(&TenantId, &str, &str), Vec<String>> = BTreeMap::new();
        for item in items {
            let urn: &Urn = item.target.urn();
            let key = (urn.tenant(), item.dto_type.as_str(), alias_text(item.alias));
            by_key.entry(key).or_default().push(urn.to_string());
        }
        let mut found = Vec::new();
        for ((tenant, dto_type, alias), mut urns) in by_key {
            // Locked in this order by everybody, so that two never wait for each other.
            urns.sort_unstable();
            urns.dedup();
            // One by one by their unique key: as one list, a plan from when the table was small walks all of the tenant's rows.
            let rows = sqlx::query(
                "SELECT w.* FROM unnest($2::text[]) AS j (urn) CROSS JOIN LATERAL (
                    SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone,
                        lapses_alone, cursor, cause, handed_over
                    FROM cqs_waiting
                    WHERE tenant = $1 AND urn = j.urn AND queue = $3 AND lane = $4 AND dto_type = $5 AND alias = $6
                    FOR UPDATE) AS w",
            )
            .bind(tenant.as_str())
            .bind(urns)
            .bind(queue_int(queue))
            .bind(lane)
            .bind(dto_type)
            .bind(alias)
            .fetch_all(&mut *self.conn)
            .await?;
            found.extend(read_rows("cqs_waiting", &rows)?);
        }
        found.sort_unstable_by_key(|row| row.id);
        Ok(found)
    }

    async fn row_insert(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        let Some(first) = rows.first() else { return Ok(()) };
        self.arrives(queue, rows).await?;
        let tenant = first.tenant().clone();
        let arrays = RowArrays::of(rows.iter());
        let inserted: Vec<i64> = sqlx::query_scalar(
            "INSERT INTO cqs_waiting (tenant, queue, id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id,
                attempts, due_at, alone, lapses_alone, cursor, cause, handed_over)
             SELECT $1, $2, CASE WHEN r.id = 0 THEN nextval('cqs_row_id') ELSE r.id END, r.lane, r.store, r.is_parent,
                r.dto_type, r.urn, r.alias, r.sla, r.tracking_id, r.attempts, r.due_at, r.alone, r.lapses_alone, r.cursor,
                r.cause, r.handed_over
             FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::boolean[], $7::text[], $8::text[], $9::text[],
                $10::bigint[], $11::text[], $12::integer[], $13::bigint[], $14::boolean[], $15::integer[], $16::text[],
                $17::text[], $18::boolean[])
                AS r (id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone,
                    lapses_alone, cursor, cause, handed_over)
             RETURNING id",
        )
        .bind(tenant.as_str())
        .bind(queue_int(queue))
        .bind(arrays.ids)
        .bind(arrays.lanes)
        .bind(arrays.stores)
        .bind(arrays.are_parents)
        .bind(arrays.dto_types)
        .bind(arrays.urns)
        .bind(arrays.aliases)
        .bind(arrays.slas)
        .bind(arrays.tracking_ids)
        .bind(arrays.attempts)
        .bind(arrays.due_ats)
        .bind(arrays.alones)
        .bind(arrays.lapses)
        .bind(arrays.cursors)
        .bind(arrays.causes)
        .bind(arrays.handed_over)
        .fetch_all(&mut *self.conn)
        .await?;
        for (row, id) in rows.iter().zip(inserted) {
            self.waits(queue, row, id);
        }
        Ok(())
    }

    async fn row_update(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        let Some(first) = rows.first() else { return Ok(()) };
        self.arrives(queue, rows).await?;
        let tenant = first.tenant().clone();
        let arrays = RowArrays::of(rows.iter());
        sqlx::query(
            "UPDATE cqs_waiting w SET sla = r.sla, tracking_id = r.tracking_id, attempts = r.attempts, due_at = r.due_at,
                alone = r.alone, lapses_alone = r.lapses_alone, cursor = r.cursor, cause = r.cause,
                handed_over = r.handed_over
             FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[], $8::boolean[], $9::integer[],
                $10::text[], $11::text[], $12::boolean[])
                AS r (id, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor, cause, handed_over)
             WHERE w.tenant = $1 AND w.queue = $2 AND w.id = r.id",
        )
        .bind(tenant.as_str())
        .bind(queue_int(queue))
        .bind(arrays.ids)
        .bind(arrays.slas)
        .bind(arrays.tracking_ids)
        .bind(arrays.attempts)
        .bind(arrays.due_ats)
        .bind(arrays.alones)
        .bind(arrays.lapses)
        .bind(arrays.cursors)
        .bind(arrays.causes)
        .bind(arrays.handed_over)
        .execute(&mut *self.conn)
        .await?;
        for row in rows {
            self.waits(queue, row, row.id);
        }
        Ok(())
    }

    async fn row_ready(&mut self, range: ReadyRange<'_>) -> Result<Vec<Row>, StoreError> {
        let tenant = self.tenant_of_stored(range.head.lane).await?;
        let mark = self.mark_of(range.head, range.kind);
        let rows = sqlx::query(
            "SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone,
                lapses_alone, cursor, cause, handed_over
             FROM cqs_waiting
             WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4 AND is_parent = $5 AND due_at IS NULL
                AND (sla, id) >= ($6, $7)
             ORDER BY sla, id LIMIT $8 FOR UPDATE SKIP LOCKED",
        )
        .bind(tenant.as_str())
        .bind(range.head.lane)
        .bind(queue_int(range.head.queue))
        .bind(store_text(range.head.store.as_ref()))
        .bind(range.kind == RowKind::Parent)
        .bind(mark.sla)
        .bind(mark.id)
        .bind(limit_int(range.limit))
        .fetch_all(&mut *self.conn)
        .await?;
        self.queues.advances.claimed(range.head, rows.len());
        read_rows("cqs_waiting", &rows)
    }

    async fn row_of_lane(&mut self, queue: i64, lane: i64, limit: usize) -> Result<Vec<Row>, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let mut found = Vec::new();
        // Each kind by its own index.
        for statement in [OF_LANE_READY, OF_LANE_DELAYED] {
            let left = limit.saturating_sub(found.len());
            if left == 0 {
                break;
            }
            let rows = sqlx::query(statement)
                .bind(tenant.as_str())
                .bind(lane)
                .bind(queue_int(queue))
                .bind(limit_int(left))
                .fetch_all(&mut *self.conn)
                .await?;
            found.extend(read_rows("cqs_waiting", &rows)?);
        }
        Ok(found)
    }

    async fn row_remove(&mut self, queue: i64, lane: i64, ids: &[i64]) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query("DELETE FROM cqs_waiting WHERE tenant = $1 AND queue = $2 AND id = ANY($3)")
            .bind(tenant.as_str())
            .bind(queue_int(queue))
            .bind(ids)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn row_due(&mut self, queue: i64, now: Timestamp, limit: usize) -> Result<Vec<Row>, StoreError> {
        let from = self.queues.floors.from((Awaited::Rows, queue), now);
        let due: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT tenant, id, due_at FROM cqs_waiting WHERE queue = $1 AND due_at IS NOT NULL AND due_at <= $2 AND due_at >= $3
             ORDER BY due_at, id LIMIT $4",
        )
        .bind(queue_int(queue))
        .bind(now.as_ms())
        .bind(from.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        let first = due.first().map(|(_, _, due_at)| Timestamp::from_ms(*due_at));
        self.queues.floors.looked((Awaited::Rows, queue), (from, now), first);
        let mut found = Vec::new();
        for (tenant, ids) in by_tenant(due.into_iter().map(|(tenant, id, _)| (tenant, id))) {
            let rows = sqlx::query(
                "SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone,
                    lapses_alone, cursor, cause, handed_over
                 FROM cqs_waiting
                 WHERE tenant = $1 AND id = ANY($2) AND due_at IS NOT NULL AND due_at <= $3
                 ORDER BY id FOR UPDATE SKIP LOCKED",
            )
            .bind(tenant)
            .bind(ids)
            .bind(now.as_ms())
            .fetch_all(&mut *self.conn)
            .await?;
            found.extend(read_rows("cqs_waiting", &rows)?);
        }
        found.sort_unstable_by_key(|row| (row.due_at, row.id));
        Ok(found)
    }

    async fn row_next_due(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> = sqlx::query_scalar(
            "SELECT min(due_at) FROM cqs_waiting WHERE queue = $1 AND due_at IS NOT NULL AND due_at >= $2",
        )
        .bind(queue_int(queue))
        .bind(self.queues.floors.next((Awaited::Rows, queue)).as_ms())
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
        let tenant = self.tenant_of_stored(lane).await?;
        let (urns, dto_types) = record_arrays(records);
        let rows = sqlx::query(
            "SELECT r.urn, r.dto_type FROM unnest($4::text[], $5::text[]) AS r (urn, dto_type)
             WHERE EXISTS (
                SELECT 1 FROM cqs_waiting w
                WHERE w.tenant = $1 AND w.urn = r.urn AND w.queue = $2 AND w.lane <> $3 AND w.dto_type = r.dto_type
                    AND NOT w.is_parent)",
        )
        .bind(tenant.as_str())
        .bind(queue_int(queue))
        .bind(lane)
        .bind(urns)
        .bind(dto_types)
        .fetch_all(&mut *self.conn)
        .await?;
        read_records("cqs_waiting", &rows)
    }
}

const OF_LANE_READY: &str = "
SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor,
    cause, handed_over
FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND queue = $3 AND due_at IS NULL
ORDER BY store, is_parent, sla, id LIMIT $4 FOR UPDATE";

const OF_LANE_DELAYED: &str = "
SELECT id, lane, store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, due_at, alone, lapses_alone, cursor,
    cause, handed_over
FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND queue = $3 AND due_at IS NOT NULL
ORDER BY due_at, id LIMIT $4 FOR UPDATE";

impl PostgresUnit<'_> {
    /// Keeps the marks of lanes from being raised until this unit ends, before rows become ready there.
    async fn arrives(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        let lanes: BTreeSet<i64> = rows.iter().filter(|row| row.due_at.is_none()).map(|row| row.lane).collect();
        for lane in lanes {
            if !self.opened.contains(&lane) && self.arrivals.insert((queue, lane)) {
                self.lock(Lock::Arrivals(queue, lane)).await?;
            }
        }
        Ok(())
    }

    /// Notes a row that waits because of this unit.
    fn waits(&mut self, queue: i64, row: &Row, id: i64) {
        // Its lane has something in it that nobody can end before this unit ends.
        self.kept.insert(row.lane);
        if row.due_at.is_none() {
            let head = HeadKey { queue, lane: row.lane, store: row.store.clone() };
            self.ready.entry(head).or_default().lower(row.kind(), Mark { sla: row.sla.as_ms(), id });
        }
    }
}
