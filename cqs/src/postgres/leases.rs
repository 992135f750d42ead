//! Leases and leased rows.

use db::postgres::{Prune, by_tenant};
use domain::Timestamp;

use super::{PostgresUnit, arrays::queue_int, floors::Awaited};
use crate::{
    StoreError,
    columns::{limit_int, read_lease, read_rows, store_text},
    model::{Lease, Row, SplitCounts},
    unit::{Dropped, Leases, SplitKey},
};

/// How far above the floor numbers may have been given already when it is raised: other servers go on giving them, at
/// most one a millisecond, while this one looks.
const FLOOR_MARGIN: i64 = 10_000;

impl Leases for PostgresUnit<'_> {
    async fn lease_take(&mut self, lease: &Lease, rows: &[Row]) -> Result<i64, StoreError> {
        let tenant = self.tenant_of_stored(lease.lane).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let (generation, moved): (i64, i64) = sqlx::query_as(TAKE)
            .bind(tenant.as_str())
            // The tenant's number stands in the lane's id.
            .bind(lease.lane)
            .bind(queue_int(lease.queue))
            .bind(store_text(lease.store.as_ref()))
            .bind(lease.owner.as_str())
            .bind(&lease.worker_id)
            .bind(lease.expires_at.as_ms())
            .bind(&ids)
            .fetch_one(&mut *self.conn)
            .await?;
        if usize::try_from(moved).ok() != Some(ids.len()) {
            return Err(StoreError::BrokenRow { table: "cqs_waiting", column: "id", id: generation.to_string() });
        }
        self.kept.insert(lease.lane);
        Ok(generation)
    }

    async fn lease_add(&mut self, lease: &Lease, rows: &[Row]) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lease.generation).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let moved: i64 = sqlx::query_scalar(ADD)
            .bind(tenant.as_str())
            .bind(lease.generation)
            .bind(&ids)
            .fetch_one(&mut *self.conn)
            .await?;
        if usize::try_from(moved).ok() != Some(ids.len()) {
            return Err(StoreError::BrokenRow { table: "cqs_waiting", column: "id", id: lease.generation.to_string() });
        }
        self.kept.insert(lease.lane);
        Ok(())
    }

    async fn lease_find(&mut self, generation: i64) -> Result<Option<Lease>, StoreError> {
        let Some(tenant) = self.tenant_of(generation).await? else { return Ok(None) };
        let found = sqlx::query(
            "SELECT generation, queue, lane, store, owner, worker_id, expires_at FROM cqs_lease
             WHERE tenant = $1 AND generation = $2 FOR UPDATE",
        )
        .bind(tenant.as_str())
        .bind(generation)
        .fetch_optional(&mut *self.conn)
        .await?;
        let lease = found.as_ref().map(read_lease).transpose()?;
        if let Some(lease) = &lease {
            self.leases.insert(generation, lease.lane);
        }
        Ok(lease)
    }

    async fn lease_rows(&mut self, generation: i64) -> Result<Vec<Row>, StoreError> {
        let tenant = self.tenant_of_stored(generation).await?;
        let rows = sqlx::query(
            "SELECT r.id, l.lane, l.store, r.is_parent, r.dto_type, r.urn, r.alias, r.sla, r.tracking_id, r.attempts,
                NULL::bigint AS due_at, r.alone, r.lapses_alone, r.cursor, '' AS cause, r.handed_over
             FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation
             WHERE l.tenant = $1 AND l.generation = $2 ORDER BY r.id",
        )
        .bind(tenant.as_str())
        .bind(generation)
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_leased", &rows)
    }

    async fn lease_rows_of(&mut self, generation: i64, ids: &[i64]) -> Result<Vec<Row>, StoreError> {
        let tenant = self.tenant_of_stored(generation).await?;
        let rows = sqlx::query(
            "SELECT r.id, l.lane, l.store, r.is_parent, r.dto_type, r.urn, r.alias, r.sla, r.tracking_id, r.attempts,
                NULL::bigint AS due_at, r.alone, r.lapses_alone, r.cursor, '' AS cause, r.handed_over
             FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation
             WHERE l.tenant = $1 AND l.generation = $2 AND r.id = ANY($3) ORDER BY r.id",
        )
        .bind(tenant.as_str())
        .bind(generation)
        .bind(ids)
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_leased", &rows)
    }

    async fn lease_handed_over(&mut self, lane: i64) -> Result<i64, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        Ok(sqlx::query_scalar(
            "SELECT count(*) FROM cqs_lease l JOIN cqs_leased r ON r.tenant = l.tenant AND r.lease = l.generation
             WHERE l.tenant = $1 AND l.lane = $2 AND l.lane <> 0 AND r.handed_over",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .fetch_one(&mut *self.conn)
        .await?)
    }

    async fn lease_extend(&mut self, generation: i64, expires_at: Timestamp) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(generation).await?;
        sqlx::query("UPDATE cqs_lease SET expires_at = $3 WHERE tenant = $1 AND generation = $2")
            .bind(tenant.as_str())
            .bind(generation)
            .bind(expires_at.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn lease_release(&mut self, generation: i64, ids: &[i64]) -> Result<bool, StoreError> {
        let tenant = self.tenant_of_stored(generation).await?;
        if !ids.is_empty() {
            sqlx::query("DELETE FROM cqs_leased WHERE tenant = $1 AND lease = $2 AND id = ANY($3)")
                .bind(tenant.as_str())
                .bind(generation)
                .bind(ids)
                .execute(&mut *self.conn)
                .await?;
        }
        let ended = sqlx::query(
            "DELETE FROM cqs_lease WHERE tenant = $1 AND generation = $2
                AND NOT EXISTS (SELECT 1 FROM cqs_leased WHERE tenant = $1 AND lease = $2)",
        )
        .bind(tenant.as_str())
        .bind(generation)
        .execute(&mut *self.conn)
        .await?
        .rows_affected()
            > 0;
        if !ended && let Some(lane) = self.leases.get(&generation) {
            // The lease is locked by this unit, so the lane is not idle before it ends.
            self.kept.insert(*lane);
        }
        Ok(ended)
    }

    async fn lease_lapsed(&mut self, queue: i64, now: Timestamp, limit: usize) -> Result<Vec<Lease>, StoreError> {
        let from = self.queues.floors.from((Awaited::Leases, queue), now);
        let lapsed: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT tenant, generation, expires_at FROM cqs_lease WHERE queue = $1 AND expires_at <= $2 AND expires_at >= $3
             ORDER BY expires_at, generation LIMIT $4",
        )
        .bind(queue_int(queue))
        .bind(now.as_ms())
        .bind(from.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        let first = lapsed.first().map(|(_, _, expires_at)| Timestamp::from_ms(*expires_at));
        self.queues.floors.looked((Awaited::Leases, queue), (from, now), first);
        let mut found = Vec::new();
        for (tenant, generations) in by_tenant(lapsed.into_iter().map(|(tenant, generation, _)| (tenant, generation))) {
            let rows = sqlx::query(
                "SELECT generation, queue, lane, store, owner, worker_id, expires_at FROM cqs_lease
                 WHERE tenant = $1 AND generation = ANY($2) AND expires_at <= $3
                 ORDER BY generation FOR UPDATE SKIP LOCKED",
            )
            .bind(tenant)
            .bind(generations)
            .bind(now.as_ms())
            .fetch_all(&mut *self.conn)
            .await?;
            for row in &rows {
                found.push(read_lease(row)?);
            }
        }
        found.sort_unstable_by_key(|lease| (lease.expires_at, lease.generation));
        Ok(found)
    }

    async fn lease_drop(&mut self, generation: i64, ids: &[i64]) -> Result<Dropped, StoreError> {
        let tenant = self.tenant_of_stored(generation).await?;
        let (labels, handed_over, parents): (i64, i64, Vec<i64>) = sqlx::query_as(
            "WITH gone AS (
                DELETE FROM cqs_leased WHERE tenant = $1 AND lease = $2 AND id = ANY($3) RETURNING id, is_parent, handed_over)
             SELECT count(*) FILTER (WHERE NOT is_parent), count(*) FILTER (WHERE handed_over),
                coalesce(array_agg(id) FILTER (WHERE is_parent), '{}') FROM gone",
        )
        .bind(tenant.as_str())
        .bind(generation)
        .bind(ids)
        .fetch_one(&mut *self.conn)
        .await?;
        Ok(Dropped { labels, parents, handed_over })
    }

    async fn lease_generation_raise(&mut self, floor: i64) -> Result<(), StoreError> {
        // Never backwards, also when two servers start at once: far enough below the floor is far enough below what
        // anybody gives meanwhile.
        sqlx::query("SELECT setval('cqs_generation', $1) FROM cqs_generation WHERE last_value < $1 - $2")
            .bind(floor)
            .bind(FLOOR_MARGIN)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn lease_next_lapse(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> =
            sqlx::query_scalar("SELECT min(expires_at) FROM cqs_lease WHERE queue = $1 AND expires_at >= $2")
                .bind(queue_int(queue))
                .bind(self.queues.floors.next((Awaited::Leases, queue)).as_ms())
                .fetch_one(&mut *self.conn)
                .await?;
        Ok(next.map(Timestamp::from_ms))
    }

    async fn lapse_put(&mut self, lease: &Lease, ids: &[i64], now: Timestamp) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lease.generation).await?;
        sqlx::query("INSERT INTO cqs_lapse (tenant, generation, lane, ids, at) VALUES ($1, $2, $3, $4, $5)")
            .bind(tenant.as_str())
            .bind(lease.generation)
            .bind(lease.lane)
            .bind(ids)
            .bind(now.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn lapse_take(&mut self, generation: i64) -> Result<Option<(i64, Vec<i64>)>, StoreError> {
        let Some(tenant) = self.tenant_of(generation).await? else { return Ok(None) };
        Ok(sqlx::query_as("DELETE FROM cqs_lapse WHERE tenant = $1 AND generation = $2 RETURNING lane, ids")
            .bind(tenant.as_str())
            .bind(generation)
            .fetch_optional(&mut *self.conn)
            .await?)
    }

    async fn lapse_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        LAPSES_OVER.run(self.conn, before, limit_int(limit)).await?;
        Ok(())
    }

    async fn lapse_pardon(&mut self, lane: i64, ids: &[i64]) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        for statement in [PARDON_WAITING, PARDON_LEASED] {
            sqlx::query(statement).bind(tenant.as_str()).bind(lane).bind(ids).execute(&mut *self.conn).await?;
        }
        Ok(())
    }

    async fn split_find(&mut self, key: SplitKey) -> Result<Option<SplitCounts>, StoreError> {
        let Some(tenant) = self.tenant_of(key.generation).await? else { return Ok(None) };
        let found: Option<(i64, i64)> = sqlx::query_as(
            "SELECT enqueued, coalesced FROM cqs_split WHERE tenant = $1 AND queue = $2 AND generation = $3 AND id = $4",
        )
        .bind(tenant.as_str())
        .bind(queue_int(key.queue))
        .bind(key.generation)
        .bind(key.id)
        .fetch_optional(&mut *self.conn)
        .await?;
        Ok(found.map(|(enqueued, coalesced)| SplitCounts { enqueued, coalesced }))
    }

    async fn split_put(&mut self, key: SplitKey, counts: SplitCounts, now: Timestamp) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(key.generation).await?;
        sqlx::query(
            "INSERT INTO cqs_split (tenant, queue, generation, id, enqueued, coalesced, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(tenant.as_str())
        .bind(queue_int(key.queue))
        .bind(key.generation)
        .bind(key.id)
        .bind(counts.enqueued)
        .bind(counts.coalesced)
        .bind(now.as_ms())
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn split_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        SPLITS_OVER.run(self.conn, before, limit_int(limit)).await?;
        Ok(())
    }
}

const LAPSES_OVER: Prune = Prune {
    find: "SELECT tenant, generation FROM cqs_lapse WHERE at < $1 ORDER BY at LIMIT $2",
    forget: "DELETE FROM cqs_lapse WHERE tenant = $1 AND generation = ANY($2) AND at < $3",
};

const SPLITS_OVER: Prune = Prune {
    find: "SELECT tenant, generation FROM cqs_split WHERE at < $1 ORDER BY at LIMIT $2",
    forget: "DELETE FROM cqs_split WHERE tenant = $1 AND generation = ANY($2) AND at < $3",
};

/// A lease is made and rows move to it, in one statement. The rows are locked by this unit already.
const TAKE: &str = "
WITH lease AS (
    INSERT INTO cqs_lease (tenant, generation, queue, lane, store, owner, worker_id, expires_at)
    VALUES ($1, (nextval('cqs_generation') << 20) | ($2 & 1048575), $3, $2, $4, $5, $6, $7) RETURNING generation
), gone AS MATERIALIZED (
    DELETE FROM cqs_waiting WHERE tenant = $1 AND id = ANY($8) RETURNING *
), moved AS (
    INSERT INTO cqs_leased (tenant, lease, id, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, alone,
        lapses_alone, cursor, handed_over)
    SELECT $1, lease.generation, g.id, g.is_parent, g.dto_type, g.urn, g.alias, g.sla, g.tracking_id, g.attempts, g.alone,
        g.lapses_alone, g.cursor, g.handed_over
    FROM gone g CROSS JOIN lease
    RETURNING 1
)
SELECT generation, (SELECT count(*) FROM moved) FROM lease";

/// Rows move to a lease that this unit has locked, as they are.
const ADD: &str = "
WITH gone AS MATERIALIZED (
    DELETE FROM cqs_waiting WHERE tenant = $1 AND id = ANY($3) RETURNING *
), moved AS (
    INSERT INTO cqs_leased (tenant, lease, id, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, alone,
        lapses_alone, cursor)
    SELECT $1, $2, g.id, g.is_parent, g.dto_type, g.urn, g.alias, g.sla, g.tracking_id, g.attempts, g.alone,
        g.lapses_alone, g.cursor
    FROM gone g
    RETURNING 1
)
SELECT count(*) FROM moved";

/// Waiting first: a claim that moves a row meanwhile is waited for, and the row is found leased then.
const PARDON_WAITING: &str = "
UPDATE cqs_waiting SET alone = lapses_alone > 0, lapses_alone = greatest(lapses_alone - 1, 0)
WHERE tenant = $1 AND lane = $2 AND id = ANY($3) AND alone";

const PARDON_LEASED: &str = "
UPDATE cqs_leased r SET alone = lapses_alone > 0, lapses_alone = greatest(lapses_alone - 1, 0)
FROM cqs_lease l
WHERE l.tenant = $1 AND l.lane = $2 AND l.lane <> 0 AND r.tenant = $1 AND r.lease = l.generation AND r.id = ANY($3) AND r.alone";
