//! Lanes and their heads.
//!
//! Differs by necessity: heads are rows whose counts a step changes by what it did, and whose SLAs are read again from the
//! claiming index, one probe each.

use domain::{LaneKind, StoreId, TenantId, Timestamp, limits};
use serde_json::json;
use sqlx::sqlite::SqliteRow;

use super::{
    SqliteUnit,
    columns::{Columns, json_text, limit_int, store_text},
};
use crate::{
    StoreError,
    model::{Head, HeadChange, HeadKey, Lane, LaneClass, NewLane},
    unit::{Held, Lanes},
};

impl Lanes for SqliteUnit<'_> {
    async fn lane_find(&mut self, lane: i64) -> Result<Option<Lane>, StoreError> {
        let found = sqlx::query("SELECT lane, tenant, kind, tracking_id FROM cqs_lane WHERE lane = ?1")
            .bind(lane)
            .fetch_optional(&mut *self.conn)
            .await?;
        found.as_ref().map(read_lane).transpose()
    }

    async fn lane_ordinary(&mut self, tenant: &TenantId, now: Timestamp) -> Result<Lane, StoreError> {
        let found =
            sqlx::query("SELECT lane, tenant, kind, tracking_id FROM cqs_lane WHERE tenant = ?1 AND kind = 'ordinary'")
                .bind(tenant.as_str())
                .fetch_optional(&mut *self.conn)
                .await?;
        if let Some(row) = &found {
            return read_lane(row);
        }
        let new = NewLane { tenant: tenant.clone(), kind: LaneKind::Ordinary, tracking_id: None };
        self.lane_open(new, now).await
    }

    async fn lane_open(&mut self, lane: NewLane, now: Timestamp) -> Result<Lane, StoreError> {
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO cqs_lane (tenant, kind, tracking_id, created_at) VALUES (?1, ?2, ?3, ?4) RETURNING lane",
        )
        .bind(lane.tenant.as_str())
        .bind(lane.kind.as_str())
        .bind(lane.tracking_id.as_ref().map_or("", |id| id.as_str()))
        .bind(now.as_ms())
        .fetch_one(&mut *self.conn)
        .await?;
        Ok(Lane { id, tenant: lane.tenant, kind: lane.kind, tracking_id: lane.tracking_id })
    }

    async fn lane_is_idle(&mut self, lane: i64) -> Result<bool, StoreError> {
        // A head that holds nothing is removed, but one that only keeps a leased parent stays: its lease is there, too.
        let idle = sqlx::query_scalar(
            "SELECT NOT EXISTS (SELECT 1 FROM cqs_head WHERE lane = ?1)
                AND NOT EXISTS (SELECT 1 FROM cqs_lease WHERE lane = ?1)",
        )
        .bind(lane)
        .fetch_one(&mut *self.conn)
        .await?;
        Ok(idle)
    }

    async fn lane_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM cqs_lane WHERE lane IN (
                SELECT lane FROM cqs_lane
                WHERE kind = 'split' AND created_at < ?1
                    AND NOT EXISTS (SELECT 1 FROM cqs_head WHERE cqs_head.lane = cqs_lane.lane)
                    AND NOT EXISTS (SELECT 1 FROM cqs_lease WHERE cqs_lease.lane = cqs_lane.lane)
                ORDER BY created_at LIMIT ?2)",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn lane_lock(&mut self, _: i64, _: i64) -> Result<(), StoreError> {
        // One writer runs all units of work.
        Ok(())
    }

    async fn head_change(&mut self, changes: &[(HeadKey, LaneClass, HeadChange)]) -> Result<(), StoreError> {
        let keys = changes.iter().map(|(key, class, change)| {
            json!([
                key.queue,
                key.lane,
                store_text(key.store.as_ref()),
                i64::from(*class == LaneClass::Bulk),
                change.ready_labels,
                change.ready_parents,
                change.delayed,
                change.leased_parents,
            ])
        });
        let changes = json_text(&keys.collect::<Vec<_>>())?;
        sqlx::query(HEADS_CHANGE).bind(&changes).bind(limits::LANE_READY_MAX).execute(&mut *self.conn).await?;
        Ok(())
    }

    async fn head_hold(&mut self, queue: i64, store: &StoreId, held: Held) -> Result<(), StoreError> {
        sqlx::query("UPDATE cqs_head SET held = ?3 WHERE queue = ?1 AND store = ?2 AND store <> ''")
            .bind(queue)
            .bind(store.as_str())
            .bind(held == Held::Held)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn head_first(&mut self, queue: i64, class: LaneClass) -> Result<Option<Head>, StoreError> {
        let found = sqlx::query(
            "SELECT lane, store, claim_sla, label_sla, iif(open, parent_sla, NULL) AS parent_sla FROM cqs_head
             WHERE queue = ?1 AND bulk = ?2 AND claim_sla IS NOT NULL ORDER BY claim_sla, lane, store LIMIT 1",
        )
        .bind(queue)
        .bind(class == LaneClass::Bulk)
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_head).transpose()
    }

    async fn head_in_turn(&mut self, queue: i64, after: i64) -> Result<Option<Head>, StoreError> {
        let found = sqlx::query(
            "SELECT lane, store, claim_sla, label_sla, iif(open, parent_sla, NULL) AS parent_sla FROM cqs_head
             WHERE queue = ?1 AND bulk = 1 AND claim_sla IS NOT NULL AND lane > ?2
             ORDER BY lane, claim_sla, store LIMIT 1",
        )
        .bind(queue)
        .bind(after)
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_head).transpose()
    }
}

/// One text of four statements, so that the two threads change hands once. `?1` rows [queue, lane, store, bulk, ready
/// labels, ready parents, delayed, leased parents], `?2` how many ready labels close a lane for parents.
/// - Missing heads, at zero: an upsert of a difference would meet the CHECKs before the conflict.
/// - Counts and SLAs.
/// - Whether parents may be claimed, which holds for a lane, so for all its heads in the queue alike.
/// - Empty heads go.
const HEADS_CHANGE: &str = "
INSERT INTO cqs_head (queue, lane, store, bulk, held)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3,
    EXISTS (SELECT 1 FROM cqs_lease l WHERE l.queue = value ->> 0 AND l.store = value ->> 2 AND l.store <> '')
FROM jsonb_each(?1) WHERE true
ON CONFLICT DO NOTHING;

UPDATE cqs_head SET
    ready_labels = ready_labels + (value ->> 4),
    ready_parents = ready_parents + (value ->> 5),
    delayed = delayed + (value ->> 6),
    leased_parents = leased_parents + (value ->> 7),
    label_sla = (
        SELECT sla FROM cqs_waiting w
        WHERE w.queue = cqs_head.queue AND w.lane = cqs_head.lane AND w.store = cqs_head.store AND w.is_parent = 0
            AND w.due_at IS NULL
        ORDER BY sla LIMIT 1),
    parent_sla = (
        SELECT sla FROM cqs_waiting w
        WHERE w.queue = cqs_head.queue AND w.lane = cqs_head.lane AND w.store = cqs_head.store AND w.is_parent = 1
            AND w.due_at IS NULL
        ORDER BY sla LIMIT 1)
FROM jsonb_each(?1)
WHERE cqs_head.queue = value ->> 0 AND cqs_head.lane = value ->> 1 AND cqs_head.store = value ->> 2;

UPDATE cqs_head SET open = lanes.open
FROM (
    SELECT h.queue, h.lane, sum(h.ready_labels) < ?2 AND sum(h.leased_parents) = 0 AS open
    FROM (SELECT DISTINCT value ->> 0 AS queue, value ->> 1 AS lane FROM jsonb_each(?1)) touched
    CROSS JOIN cqs_head h ON h.queue = touched.queue AND h.lane = touched.lane
    GROUP BY h.queue, h.lane
) lanes
WHERE cqs_head.queue = lanes.queue AND cqs_head.lane = lanes.lane AND cqs_head.open <> lanes.open;

DELETE FROM cqs_head
WHERE (queue, lane, store) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(?1))
    AND ready_labels = 0 AND ready_parents = 0 AND delayed = 0 AND leased_parents = 0";

fn read_lane(row: &SqliteRow) -> Result<Lane, StoreError> {
    let columns = Columns { table: "cqs_lane", row, key: "lane" };
    Ok(Lane {
        id: columns.get("lane")?,
        tenant: columns.parse("tenant")?,
        kind: columns.parse("kind")?,
        tracking_id: columns.parse_if("tracking_id")?,
    })
}

fn read_head(row: &SqliteRow) -> Result<Head, StoreError> {
    let columns = Columns { table: "cqs_head", row, key: "lane" };
    Ok(Head {
        lane: columns.get("lane")?,
        store: columns.parse_if("store")?,
        claim_sla: columns.time("claim_sla")?,
        label_sla: columns.time_if("label_sla")?,
        parent_sla: columns.time_if("parent_sla")?,
    })
}
