//! The ledger and the dead letter.

use domain::Timestamp;

use super::{
    PostgresUnit,
    arrays::{RowArrays, queue_int, record_arrays},
};
use crate::{
    StoreError,
    columns::{limit_int, read_counts, read_group, read_records},
    model::{Counts, DeadLetter, FailureGroup, LedgerKey, RecordKey, RowKind},
    unit::Ledger,
};

impl Ledger for PostgresUnit<'_> {
    async fn ledger_append(&mut self, deltas: &[(LedgerKey, Counts)]) -> Result<(), StoreError> {
        // One statement a delta: a step has one to three.
        for (key, counts) in deltas {
            let tenant = self.tenant_of_stored(key.lane).await?;
            sqlx::query(
                "INSERT INTO cqs_ledger_delta (tenant, lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced,
                    cancelled, waiting, leased, handed_over, written, transferred, displayed, failed_handed_over)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
            )
            .bind(tenant.as_str())
            .bind(key.lane)
            .bind(queue_int(key.queue))
            .bind(key.kind == RowKind::Parent)
            .bind(counts.enqueued)
            .bind(counts.done)
            .bind(counts.unchanged)
            .bind(counts.failed)
            .bind(counts.coalesced)
            .bind(counts.cancelled)
            .bind(counts.waiting)
            .bind(counts.leased)
            .bind(counts.handed_over)
            .bind(counts.confirmed_by.written)
            .bind(counts.confirmed_by.transferred)
            .bind(counts.confirmed_by.displayed)
            .bind(counts.failed_handed_over)
            .execute(&mut *self.conn)
            .await?;
        }
        Ok(())
    }

    async fn ledger_read(&mut self, lanes: &[i64]) -> Result<Vec<(LedgerKey, Counts)>, StoreError> {
        let mut all = Vec::new();
        for (tenant, lanes) in self.by_tenant(lanes).await? {
            let rows = sqlx::query(LEDGER).bind(tenant.as_str()).bind(lanes).fetch_all(&mut *self.conn).await?;
            for row in &rows {
                all.push(read_counts(row)?);
            }
        }
        all.sort_unstable_by_key(|(key, _)| *key);
        Ok(all)
    }

    async fn ledger_revision(&mut self, lanes: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
        let mut all: Vec<(i64, i64)> = Vec::new();
        for (tenant, lanes) in self.by_tenant(lanes).await? {
            let some: Vec<(i64, i64)> =
                sqlx::query_as(REVISION).bind(tenant.as_str()).bind(lanes).fetch_all(&mut *self.conn).await?;
            all.extend(some);
        }
        all.sort_unstable();
        Ok(all)
    }

    async fn ledger_fold(&mut self, limit: usize) -> Result<usize, StoreError> {
        let tenants: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT tenant FROM (SELECT tenant FROM cqs_ledger_delta LIMIT $1) AS deltas ORDER BY tenant",
        )
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        let mut folded = 0;
        for tenant in tenants {
            let left = limit.saturating_sub(folded);
            if left == 0 {
                break;
            }
            let rows: i64 =
                sqlx::query_scalar(FOLD).bind(tenant).bind(limit_int(left)).fetch_one(&mut *self.conn).await?;
            folded += usize::try_from(rows).unwrap_or_default();
        }
        Ok(folded)
    }

    async fn dead_append(&mut self, queue: i64, dead: &[DeadLetter], now: Timestamp) -> Result<(), StoreError> {
        let Some(first) = dead.first() else { return Ok(()) };
        let tenant = first.row.tenant().clone();
        let rows = RowArrays::of(dead.iter().map(|letter| &letter.row));
        let causes: Vec<&str> = dead.iter().map(|letter| letter.cause.as_str()).collect();
        sqlx::query(DEAD)
            .bind(tenant.as_str())
            .bind(queue_int(queue))
            .bind(now.as_ms())
            .bind(rows.ids)
            .bind(&rows.lanes)
            .bind(rows.are_parents)
            .bind(rows.dto_types)
            .bind(&rows.urns)
            .bind(rows.aliases)
            .bind(rows.slas)
            .bind(rows.tracking_ids)
            .bind(rows.attempts)
            .bind(rows.cursors)
            .bind(&causes)
            .bind(&rows.handed_over)
            .execute(&mut *self.conn)
            .await?;
        sqlx::query(DEAD_GROUPS)
            .bind(tenant.as_str())
            .bind(queue_int(queue))
            .bind(rows.lanes)
            .bind(rows.urns)
            .bind(causes)
            .bind(rows.handed_over)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn dead_groups(&mut self, lane: i64, limit: usize) -> Result<Vec<FailureGroup>, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let rows = sqlx::query(
            "SELECT q.name, g.cause, g.failed, g.retried, g.handed_over, g.sample_urn
             FROM cqs_dead_group g JOIN cqs_queue q ON q.queue = g.queue
             WHERE g.tenant = $1 AND g.lane = $2 ORDER BY g.failed DESC, q.name, g.cause LIMIT $3",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_group).collect()
    }

    async fn undelivered_any(&mut self, queue: i64, lane: i64) -> Result<bool, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM cqs_undelivered WHERE tenant = $1 AND queue = $2)")
            .bind(tenant.as_str())
            .bind(queue_int(queue))
            .fetch_one(&mut *self.conn)
            .await?)
    }

    async fn undelivered_among(&mut self, queue: i64, records: &[RecordKey]) -> Result<Vec<RecordKey>, StoreError> {
        let Some(first) = records.first() else { return Ok(Vec::new()) };
        let (urns, dto_types) = record_arrays(records);
        let rows = sqlx::query(
            "SELECT u.urn, u.dto_type FROM cqs_undelivered u
             JOIN unnest($3::text[], $4::text[]) AS r (urn, dto_type) ON u.urn = r.urn AND u.dto_type = r.dto_type
             WHERE u.tenant = $1 AND u.queue = $2",
        )
        .bind(first.urn.tenant().as_str())
        .bind(queue_int(queue))
        .bind(urns)
        .bind(dto_types)
        .fetch_all(&mut *self.conn)
        .await?;
        read_records("cqs_undelivered", &rows)
    }

    async fn undelivered_put(&mut self, queue: i64, records: &[RecordKey]) -> Result<(), StoreError> {
        let Some(first) = records.first() else { return Ok(()) };
        let (urns, dto_types) = record_arrays(records);
        sqlx::query(
            "INSERT INTO cqs_undelivered (tenant, queue, urn, dto_type)
             SELECT $1, $2, r.urn, r.dto_type FROM unnest($3::text[], $4::text[]) AS r (urn, dto_type)
             ORDER BY r.urn, r.dto_type ON CONFLICT DO NOTHING",
        )
        .bind(first.urn.tenant().as_str())
        .bind(queue_int(queue))
        .bind(urns)
        .bind(dto_types)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn undelivered_clear_leased(&mut self, queue: i64, generation: i64, ids: &[i64]) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(generation).await?;
        sqlx::query(
            "DELETE FROM cqs_undelivered u USING cqs_leased r
             WHERE r.tenant = $1 AND r.lease = $2 AND r.id = ANY($3) AND NOT r.is_parent
                AND u.tenant = $1 AND u.queue = $4 AND u.urn = r.urn AND u.dto_type = r.dto_type",
        )
        .bind(tenant.as_str())
        .bind(generation)
        .bind(ids)
        .bind(queue_int(queue))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn undelivered_clear(&mut self, queue: i64, records: &[RecordKey]) -> Result<(), StoreError> {
        let Some(first) = records.first() else { return Ok(()) };
        let (urns, dto_types) = record_arrays(records);
        sqlx::query(
            "DELETE FROM cqs_undelivered u USING unnest($3::text[], $4::text[]) AS r (urn, dto_type)
             WHERE u.tenant = $1 AND u.queue = $2 AND u.urn = r.urn AND u.dto_type = r.dto_type",
        )
        .bind(first.urn.tenant().as_str())
        .bind(queue_int(queue))
        .bind(urns)
        .bind(dto_types)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}

/// Rows go to the dead letter, and their records are marked by the last of them.
const DEAD: &str = "
WITH letters AS (
    INSERT INTO cqs_dead (tenant, queue, at, of_operation, row_id, lane, is_parent, dto_type, urn, alias, sla, tracking_id,
        attempts, cursor, cause, handed_over)
    SELECT $1, $2, $3, EXISTS (SELECT 1 FROM cqs_operation o WHERE o.tenant = $1 AND o.lane = r.lane), r.*
    FROM unnest($4::bigint[], $5::bigint[], $6::boolean[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::text[],
        $12::integer[], $13::text[], $14::text[], $15::boolean[])
        AS r (row_id, lane, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, cursor, cause, handed_over)
    RETURNING id, is_parent, urn, dto_type
)
INSERT INTO cqs_undelivered (tenant, queue, urn, dto_type, dead)
SELECT $1, $2, urn, dto_type, max(id) FROM letters WHERE NOT is_parent GROUP BY urn, dto_type ORDER BY urn, dto_type
ON CONFLICT (tenant, queue, urn, dto_type) DO UPDATE SET dead = excluded.dead";

const DEAD_GROUPS: &str = "
INSERT INTO cqs_dead_group AS g (tenant, lane, queue, cause, failed, retried, handed_over, sample_urn)
SELECT $1, r.lane, $2, r.cause, count(*), 0, count(*) FILTER (WHERE r.handed_over), min(r.urn COLLATE \"C\")
FROM unnest($3::bigint[], $4::text[], $5::text[], $6::boolean[]) AS r (lane, urn, cause, handed_over)
WHERE EXISTS (SELECT 1 FROM cqs_operation o WHERE o.tenant = $1 AND o.lane = r.lane)
GROUP BY r.lane, r.cause ORDER BY r.lane, r.cause
ON CONFLICT (tenant, lane, queue, cause) DO UPDATE SET failed = g.failed + excluded.failed,
    handed_over = g.handed_over + excluded.handed_over,
    sample_urn = least(g.sample_urn, excluded.sample_urn)";

/// Folded counts and deltas together, of one snapshot.
const LEDGER: &str = "
SELECT lane, queue, is_parent, sum(enqueued)::bigint AS enqueued, sum(done)::bigint AS done,
    sum(unchanged)::bigint AS unchanged, sum(failed)::bigint AS failed, sum(coalesced)::bigint AS coalesced,
    sum(cancelled)::bigint AS cancelled, sum(waiting)::bigint AS waiting, sum(leased)::bigint AS leased,
    sum(handed_over)::bigint AS handed_over, sum(written)::bigint AS written, sum(transferred)::bigint AS transferred,
    sum(displayed)::bigint AS displayed, sum(failed_handed_over)::bigint AS failed_handed_over
FROM (
    SELECT lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased,
        handed_over, written, transferred, displayed, failed_handed_over
    FROM cqs_ledger WHERE tenant = $1 AND lane = ANY($2)
    UNION ALL
    SELECT lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled, waiting, leased,
        handed_over, written, transferred, displayed, failed_handed_over
    FROM cqs_ledger_delta WHERE tenant = $1 AND lane = ANY($2)
) AS counts
GROUP BY lane, queue, is_parent";

/// How often the counts of lanes changed so far.
const REVISION: &str = "
SELECT lane, sum(changes)::bigint FROM (
    SELECT lane, changes FROM cqs_ledger WHERE tenant = $1 AND lane = ANY($2)
    UNION ALL
    SELECT lane, 1 FROM cqs_ledger_delta WHERE tenant = $1 AND lane = ANY($2)
) AS counts
GROUP BY lane";

/// Takes some deltas of a tenant away and adds them to its ledger; how many. Beside other processes that fold: each delta
/// is one process's.
const FOLD: &str = "
WITH picked AS MATERIALIZED (
    SELECT lane, id FROM cqs_ledger_delta WHERE tenant = $1 ORDER BY lane, id LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM cqs_ledger_delta d USING picked WHERE d.tenant = $1 AND d.lane = picked.lane AND d.id = picked.id RETURNING d.*
), folded AS (
    INSERT INTO cqs_ledger AS l (tenant, lane, queue, is_parent, enqueued, done, unchanged, failed, coalesced, cancelled,
        waiting, leased, handed_over, written, transferred, displayed, failed_handed_over, changes)
    SELECT tenant, lane, queue, is_parent, sum(enqueued), sum(done), sum(unchanged), sum(failed), sum(coalesced),
        sum(cancelled), sum(waiting), sum(leased), sum(handed_over), sum(written), sum(transferred), sum(displayed),
        sum(failed_handed_over), count(*)
    FROM gone GROUP BY tenant, lane, queue, is_parent ORDER BY lane, queue, is_parent
    ON CONFLICT (tenant, lane, queue, is_parent) DO UPDATE SET enqueued = l.enqueued + excluded.enqueued,
        done = l.done + excluded.done, unchanged = l.unchanged + excluded.unchanged, failed = l.failed + excluded.failed,
        coalesced = l.coalesced + excluded.coalesced, cancelled = l.cancelled + excluded.cancelled,
        waiting = l.waiting + excluded.waiting, leased = l.leased + excluded.leased,
        handed_over = l.handed_over + excluded.handed_over, written = l.written + excluded.written,
        transferred = l.transferred + excluded.transferred, displayed = l.displayed + excluded.displayed,
        failed_handed_over = l.failed_handed_over + excluded.failed_handed_over,
        changes = l.changes + excluded.changes
)
SELECT count(*) FROM gone";
