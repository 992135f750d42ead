//! Leases and leased rows.

use domain::Timestamp;

use super::{SqliteUnit, json::json_text};
use crate::{
    StoreError,
    columns::{limit_int, read_lease, read_rows, store_text},
    model::{Lease, Row, SplitCounts},
    unit::{Dropped, Leases, SplitKey},
};

impl Leases for SqliteUnit<'_> {
    async fn lease_take(&mut self, lease: &Lease, rows: &[Row]) -> Result<i64, StoreError> {
        let generation: i64 = sqlx::query_scalar(
            "INSERT INTO cqs_lease (queue, lane, store, owner, worker_id, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             RETURNING generation",
        )
        .bind(lease.queue)
        .bind(lease.lane)
        .bind(store_text(lease.store.as_ref()))
        .bind(lease.owner.as_str())
        .bind(&lease.worker_id)
        .bind(lease.expires_at.as_ms())
        .fetch_one(&mut *self.conn)
        .await?;
        self.lease_add(&Lease { generation, ..lease.clone() }, rows).await?;
        Ok(generation)
    }

    async fn lease_add(&mut self, lease: &Lease, rows: &[Row]) -> Result<(), StoreError> {
        let ids = json_text(&rows.iter().map(|row| row.id).collect::<Vec<_>>())?;
        sqlx::query(
            "INSERT INTO cqs_leased (lease, id, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, alone,
                lapses_alone, cursor, handed_over)
             SELECT ?2, w.id, w.is_parent, w.dto_type, w.urn, w.alias, w.sla, w.tracking_id, w.attempts, w.alone,
                w.lapses_alone, w.cursor, w.handed_over
             FROM jsonb_each(?1) CROSS JOIN cqs_waiting w ON w.id = value;
             DELETE FROM cqs_waiting WHERE id IN (SELECT value FROM jsonb_each(?1))",
        )
        .bind(ids)
        .bind(lease.generation)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn lease_find(&mut self, generation: i64) -> Result<Option<Lease>, StoreError> {
        let found = sqlx::query(
            "SELECT generation, queue, lane, store, owner, worker_id, expires_at FROM cqs_lease WHERE generation = ?1",
        )
        .bind(generation)
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_lease).transpose()
    }

    async fn lease_rows(&mut self, generation: i64) -> Result<Vec<Row>, StoreError> {
        let rows = sqlx::query(
            "SELECT r.id, l.lane, l.store, r.is_parent, r.dto_type, r.urn, r.alias, r.sla, r.tracking_id, r.attempts,
                NULL AS due_at, r.alone, r.lapses_alone, r.cursor, '' AS cause, r.handed_over
             FROM cqs_lease l CROSS JOIN cqs_leased r ON r.lease = l.generation
             WHERE l.generation = ?1 ORDER BY r.id",
        )
        .bind(generation)
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_leased", &rows)
    }

    async fn lease_rows_of(&mut self, generation: i64, ids: &[i64]) -> Result<Vec<Row>, StoreError> {
        let rows = sqlx::query(
            "SELECT r.id, l.lane, l.store, r.is_parent, r.dto_type, r.urn, r.alias, r.sla, r.tracking_id, r.attempts,
                NULL AS due_at, r.alone, r.lapses_alone, r.cursor, '' AS cause, r.handed_over
             FROM cqs_lease l CROSS JOIN cqs_leased r ON r.lease = l.generation
             WHERE l.generation = ?1 AND r.id IN (SELECT value FROM jsonb_each(?2)) ORDER BY r.id",
        )
        .bind(generation)
        .bind(json_text(&ids)?)
        .fetch_all(&mut *self.conn)
        .await?;
        read_rows("cqs_leased", &rows)
    }

    async fn lease_handed_over(&mut self, lane: i64) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT count(*) FROM cqs_lease l CROSS JOIN cqs_leased r ON r.lease = l.generation
             WHERE l.lane = ?1 AND r.handed_over = 1",
        )
        .bind(lane)
        .fetch_one(&mut *self.conn)
        .await?)
    }

    async fn lease_extend(&mut self, generation: i64, expires_at: Timestamp) -> Result<(), StoreError> {
        sqlx::query("UPDATE cqs_lease SET expires_at = ?2 WHERE generation = ?1")
            .bind(generation)
            .bind(expires_at.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn lease_release(&mut self, generation: i64, ids: &[i64]) -> Result<bool, StoreError> {
        sqlx::query("DELETE FROM cqs_leased WHERE lease = ?1 AND id IN (SELECT value FROM jsonb_each(?2))")
            .bind(generation)
            .bind(json_text(&ids)?)
            .execute(&mut *self.conn)
            .await?;
        let ended = sqlx::query(
            "DELETE FROM cqs_lease WHERE generation = ?1 AND NOT EXISTS (SELECT 1 FROM cqs_leased WHERE lease = ?1)",
        )
        .bind(generation)
        .execute(&mut *self.conn)
        .await?;
        Ok(ended.rows_affected() > 0)
    }

    async fn lease_lapsed(&mut self, queue: i64, now: Timestamp, limit: usize) -> Result<Vec<Lease>, StoreError> {
        let rows = sqlx::query(
            "SELECT generation, queue, lane, store, owner, worker_id, expires_at FROM cqs_lease
             WHERE queue = ?1 AND expires_at <= ?2 ORDER BY expires_at, generation LIMIT ?3",
        )
        .bind(queue)
        .bind(now.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_lease).collect()
    }

    async fn lease_drop(&mut self, generation: i64, ids: &[i64]) -> Result<Dropped, StoreError> {
        // All rows are fetched, because the second statement runs only then.
        let found: Vec<(i64, i64, String)> = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE is_parent = 0), coalesce(sum(handed_over), 0), json_group_array(id) FILTER (WHERE is_parent = 1) FROM cqs_leased
             WHERE lease = ?1 AND id IN (SELECT value FROM jsonb_each(?2));
             DELETE FROM cqs_leased WHERE lease = ?1 AND id IN (SELECT value FROM jsonb_each(?2))",
        )
        .bind(generation)
        .bind(json_text(&ids)?)
        .fetch_all(&mut *self.conn)
        .await?;
        let Some((labels, handed_over, parents)) = found.first() else { return Ok(Dropped::default()) };
        Ok(Dropped { labels: *labels, parents: serde_json::from_str(parents)?, handed_over: *handed_over })
    }

    async fn lease_generation_raise(&mut self, floor: i64) -> Result<(), StoreError> {
        // Where AUTOINCREMENT keeps the largest value so far; the row appears with the table's first one.
        sqlx::query(
            "INSERT INTO sqlite_sequence (name, seq)
             SELECT 'cqs_lease', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'cqs_lease')",
        )
        .execute(&mut *self.conn)
        .await?;
        sqlx::query("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'cqs_lease' AND seq < ?1")
            .bind(floor)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn lease_next_lapse(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> = sqlx::query_scalar("SELECT min(expires_at) FROM cqs_lease WHERE queue = ?1")
            .bind(queue)
            .fetch_one(&mut *self.conn)
            .await?;
        Ok(next.map(Timestamp::from_ms))
    }

    async fn lapse_put(&mut self, lease: &Lease, ids: &[i64], now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO cqs_lapse (generation, lane, ids, at) VALUES (?1, ?2, ?3, ?4)")
            .bind(lease.generation)
            .bind(lease.lane)
            .bind(json_text(&ids)?)
            .bind(now.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn lapse_take(&mut self, generation: i64) -> Result<Option<(i64, Vec<i64>)>, StoreError> {
        let taken: Option<(i64, String)> =
            sqlx::query_as("DELETE FROM cqs_lapse WHERE generation = ?1 RETURNING lane, ids")
                .bind(generation)
                .fetch_all(&mut *self.conn)
                .await?
                .pop();
        let Some((lane, ids)) = taken else { return Ok(None) };
        let broken = |_| StoreError::BrokenRow { table: "cqs_lapse", column: "ids", id: generation.to_string() };
        Ok(Some((lane, serde_json::from_str(&ids).map_err(broken)?)))
    }

    async fn lapse_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM cqs_lapse WHERE generation IN (
                SELECT generation FROM cqs_lapse WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn lapse_pardon(&mut self, lane: i64, ids: &[i64]) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE cqs_waiting SET alone = lapses_alone > 0, lapses_alone = max(lapses_alone - 1, 0)
             WHERE id IN (SELECT value FROM jsonb_each(?1)) AND lane = ?2 AND alone;
             UPDATE cqs_leased SET alone = lapses_alone > 0, lapses_alone = max(lapses_alone - 1, 0)
             WHERE lease IN (SELECT generation FROM cqs_lease WHERE lane = ?2)
                AND id IN (SELECT value FROM jsonb_each(?1)) AND alone",
        )
        .bind(json_text(&ids)?)
        .bind(lane)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn split_find(&mut self, key: SplitKey) -> Result<Option<SplitCounts>, StoreError> {
        let found: Option<(i64, i64)> = sqlx::query_as(
            "SELECT enqueued, coalesced FROM cqs_split WHERE queue = ?1 AND generation = ?2 AND id = ?3",
        )
        .bind(key.queue)
        .bind(key.generation)
        .bind(key.id)
        .fetch_optional(&mut *self.conn)
        .await?;
        Ok(found.map(|(enqueued, coalesced)| SplitCounts { enqueued, coalesced }))
    }

    async fn split_put(&mut self, key: SplitKey, counts: SplitCounts, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO cqs_split (queue, generation, id, enqueued, coalesced, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .bind(key.queue)
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
        sqlx::query(
            "DELETE FROM cqs_split WHERE (queue, generation, id) IN (
                SELECT queue, generation, id FROM cqs_split WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}
