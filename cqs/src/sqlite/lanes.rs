//! Lanes and their heads.
//!
//! Differs by necessity: heads are rows whose counts a step changes by what it did, and whose SLAs are read again from the
//! claiming index, one probe each. Places are rows whose first SLA is read again from their heads, one probe each; it is
//! NULL while the lane is closed there, so that the choice's indexes do not hold such a place at all.

use domain::{LaneKind, StoreId, TenantId, Timestamp, limits};
use serde_json::json;
use sqlx::sqlite::SqliteRow;

use super::{SqliteUnit, json::json_text};
use crate::{
    StoreError,
    columns::{Columns, limit_int, read_lane, read_place, store_text},
    model::{Gate, Head, HeadChange, HeadKey, Lane, NewLane, PlaceReport},
    unit::{Held, Lanes},
};

impl Lanes for SqliteUnit<'_> {
    async fn lane_find(&mut self, lane: i64) -> Result<Option<Lane>, StoreError> {
        let found = sqlx::query(
            "SELECT lane, tenant, kind, tracking_id, closed, cancelled_at IS NOT NULL AS cancelled, throttle_per_s,
                max_in_flight, stops
             FROM cqs_lane WHERE lane = ?1",
        )
        .bind(lane)
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_lane).transpose()
    }

    async fn lane_ordinary(&mut self, tenant: &TenantId, now: Timestamp) -> Result<Lane, StoreError> {
        let found = sqlx::query(
            "SELECT lane, tenant, kind, tracking_id, closed, cancelled_at IS NOT NULL AS cancelled, throttle_per_s,
                max_in_flight, stops
             FROM cqs_lane WHERE tenant = ?1 AND kind = 'ordinary'",
        )
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
        let NewLane { tenant, kind, tracking_id } = lane;
        Ok(Lane { id, tenant, kind, tracking_id, gate: Gate::default() })
    }

    async fn lane_is_idle(&mut self, lane: i64) -> Result<bool, StoreError> {
        // A head that holds nothing is removed, but one that only keeps a leased parent stays: its lease is there, too.
        let idle = sqlx::query_scalar(
            "SELECT NOT EXISTS (SELECT 1 FROM cqs_lease WHERE lane = ?1)
                AND ((NOT EXISTS (SELECT 1 FROM cqs_head WHERE lane = ?1)
                        AND NOT EXISTS (SELECT 1 FROM cqs_retry WHERE lane = ?1 AND done = 0))
                    OR EXISTS (SELECT 1 FROM cqs_lane WHERE lane = ?1 AND cancelled_at IS NOT NULL))",
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

    async fn head_change(
        &mut self,
        changes: &[(HeadKey, LaneKind, HeadChange)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let keys = changes.iter().map(|(key, kind, change)| {
            json!([
                key.queue,
                key.lane,
                store_text(key.store.as_ref()),
                i64::from(*kind != LaneKind::Ordinary),
                change.ready_labels,
                change.ready_parents,
                change.delayed,
                change.leased_parents,
                change.leased_labels,
                kind.as_str(),
            ])
        });
        let changes = json_text(&keys.collect::<Vec<_>>())?;
        sqlx::query(HEADS_CHANGE)
            .bind(&changes)
            .bind(limits::LANE_READY_MAX)
            .bind(now.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn head_hold(&mut self, queue: i64, store: &StoreId, held: Held) -> Result<(), StoreError> {
        sqlx::query(HEADS_HOLD)
            .bind(queue)
            .bind(store.as_str())
            .bind(held == Held::Held)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn head_first(&mut self, queue: i64, kind: LaneKind) -> Result<Option<Head>, StoreError> {
        let found = sqlx::query(
            "SELECT h.lane, h.store, h.claim_sla, h.label_sla, iif(h.open, h.parent_sla, NULL) AS parent_sla,
                p.leased_labels
             FROM (SELECT queue, lane, leased_labels FROM cqs_place
                WHERE queue = ?1 AND kind = ?2 AND first_sla IS NOT NULL ORDER BY first_sla, lane LIMIT 1) p
             CROSS JOIN cqs_head h ON h.queue = p.queue AND h.lane = p.lane
             WHERE h.claim_sla IS NOT NULL ORDER BY h.claim_sla, h.store LIMIT 1",
        )
        .bind(queue)
        .bind(kind.as_str())
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_head).transpose()
    }

    async fn head_in_turn(&mut self, queue: i64, kind: LaneKind, after: i64) -> Result<Option<Head>, StoreError> {
        let found = sqlx::query(
            "SELECT h.lane, h.store, h.claim_sla, h.label_sla, iif(h.open, h.parent_sla, NULL) AS parent_sla,
                p.leased_labels
             FROM (SELECT queue, lane, leased_labels FROM cqs_place
                WHERE queue = ?1 AND kind = ?2 AND first_sla IS NOT NULL AND lane > ?3 ORDER BY lane LIMIT 1) p
             CROSS JOIN cqs_head h ON h.queue = p.queue AND h.lane = p.lane
             WHERE h.claim_sla IS NOT NULL ORDER BY h.claim_sla, h.store LIMIT 1",
        )
        .bind(queue)
        .bind(kind.as_str())
        .bind(after)
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_head).transpose()
    }

    async fn head_held(&mut self, head: &HeadKey) -> Result<Option<Head>, StoreError> {
        let found = sqlx::query(
            "SELECT h.lane, h.store, h.label_sla, iif(h.open, h.parent_sla, NULL) AS parent_sla,
                coalesce(min(h.label_sla, iif(h.open, h.parent_sla, NULL)), h.label_sla, h.parent_sla) AS claim_sla,
                coalesce(p.leased_labels, 0) AS leased_labels
             FROM cqs_head h LEFT JOIN cqs_place p ON p.queue = h.queue AND p.lane = h.lane
             WHERE h.queue = ?1 AND h.lane = ?2 AND h.store = ?3
                AND (h.label_sla IS NOT NULL OR (h.open AND h.parent_sla IS NOT NULL))",
        )
        .bind(head.queue)
        .bind(head.lane)
        .bind(store_text(head.store.as_ref()))
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_head).transpose()
    }

    async fn head_elsewhere(&mut self, queue: i64, store: &StoreId, lane: i64) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar(
            "SELECT EXISTS (
                SELECT 1 FROM cqs_head h
                CROSS JOIN cqs_place p ON p.queue = h.queue AND p.lane = h.lane
                CROSS JOIN cqs_lane l ON l.lane = h.lane
                WHERE h.queue = ?1 AND h.store = ?2 AND h.store <> '' AND h.lane <> ?3
                    AND (h.label_sla IS NOT NULL OR (h.open AND h.parent_sla IS NOT NULL))
                    AND l.closed = 0 AND p.closed_until IS NULL
                    AND (l.max_in_flight IS NULL OR l.max_in_flight > p.leased_labels))",
        )
        .bind(queue)
        .bind(store.as_str())
        .bind(lane)
        .fetch_one(&mut *self.conn)
        .await?;
        Ok(found)
    }

    async fn place_close(&mut self, queue: i64, lane: i64, until: Timestamp) -> Result<(), StoreError> {
        sqlx::query("UPDATE cqs_place SET closed_until = ?3, first_sla = NULL WHERE queue = ?1 AND lane = ?2")
            .bind(queue)
            .bind(lane)
            .bind(until.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn place_open(&mut self, queue: i64, now: Timestamp) -> Result<(), StoreError> {
        let due: Vec<i64> = sqlx::query_scalar(
            "SELECT lane FROM cqs_place WHERE queue = ?1 AND closed_until IS NOT NULL AND closed_until <= ?2",
        )
        .bind(queue)
        .bind(now.as_ms())
        .fetch_all(&mut *self.conn)
        .await?;
        if !due.is_empty() {
            sqlx::query(PLACES_OPEN).bind(json_text(&due)?).bind(queue).execute(&mut *self.conn).await?;
        }
        Ok(())
    }

    async fn place_next_open(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> =
            sqlx::query_scalar("SELECT min(closed_until) FROM cqs_place WHERE queue = ?1 AND closed_until IS NOT NULL")
                .bind(queue)
                .fetch_one(&mut *self.conn)
                .await?;
        Ok(next.map(Timestamp::from_ms))
    }

    async fn place_list(&mut self, lane: i64) -> Result<Vec<PlaceReport>, StoreError> {
        let rows = sqlx::query(
            "SELECT p.queue, p.lane, p.leased_labels, p.closed_until, p.waiting_since,
                (SELECT coalesce(sum(ready_labels + ready_parents), 0) FROM cqs_head h
                    WHERE h.queue = p.queue AND h.lane = p.lane) AS ready,
                (SELECT coalesce(sum(delayed), 0) FROM cqs_head h
                    WHERE h.queue = p.queue AND h.lane = p.lane) AS delayed,
                (SELECT min(due_at) FROM cqs_waiting w
                    WHERE w.lane = p.lane AND w.queue = p.queue AND w.due_at IS NOT NULL) AS next_due,
                (SELECT max(expires_at) FROM cqs_lease s WHERE s.lane = p.lane AND s.queue = p.queue) AS leased_until
             FROM cqs_place p WHERE p.lane = ?1 ORDER BY p.queue",
        )
        .bind(lane)
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_place).collect()
    }
}

/// One text of seven statements, so that the two threads change hands once. `?1` rows [queue, lane, store, bulk, ready
/// labels, ready parents, delayed, leased parents, leased labels, kind], `?2` how many ready labels close a lane for
/// parents, `?3` now.
/// - Missing heads, at zero: an upsert of a difference would meet the CHECKs before the conflict.
/// - Counts and SLAs.
/// - Whether parents may be claimed, which holds for a lane, so for all its heads in the queue alike.
/// - Empty heads go.
/// - Missing places.
/// - Their leased labels and first SLA.
/// - Empty places go.
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
    AND ready_labels = 0 AND ready_parents = 0 AND delayed = 0 AND leased_parents = 0;

INSERT INTO cqs_place (queue, lane, kind)
SELECT value ->> 0, value ->> 1, value ->> 9 FROM jsonb_each(?1) WHERE true
ON CONFLICT DO NOTHING;

UPDATE cqs_place SET
    leased_labels = leased_labels + touched.leased,
    waiting_since = CASE
        WHEN EXISTS (SELECT 1 FROM cqs_head h WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane
            AND h.ready_labels + h.ready_parents + h.delayed > 0)
        THEN coalesce(waiting_since, ?3) END,
    first_sla = CASE
        WHEN closed_until IS NOT NULL OR EXISTS (SELECT 1 FROM cqs_lane l WHERE l.lane = cqs_place.lane
            AND (l.closed = 1 OR l.max_in_flight <= leased_labels + touched.leased)) THEN NULL
        ELSE (SELECT claim_sla FROM cqs_head h
            WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane AND h.claim_sla IS NOT NULL
            ORDER BY claim_sla LIMIT 1) END
FROM (
    SELECT value ->> 0 AS queue, value ->> 1 AS lane, sum(value ->> 8) AS leased FROM jsonb_each(?1)
    GROUP BY value ->> 0, value ->> 1
) touched
WHERE cqs_place.queue = touched.queue AND cqs_place.lane = touched.lane;

DELETE FROM cqs_place
WHERE (queue, lane) IN (SELECT value ->> 0, value ->> 1 FROM jsonb_each(?1))
    AND leased_labels = 0 AND closed_until IS NULL
    AND NOT EXISTS (SELECT 1 FROM cqs_head h WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane)";

/// Marks the heads of a store, then reads the first SLA of the places that have one of them. `?1` queue, `?2` store, `?3`
/// held or free.
const HEADS_HOLD: &str = "
UPDATE cqs_head SET held = ?3 WHERE queue = ?1 AND store = ?2 AND store <> '';

UPDATE cqs_place SET first_sla = CASE
    WHEN closed_until IS NOT NULL OR EXISTS (SELECT 1 FROM cqs_lane l WHERE l.lane = cqs_place.lane
        AND (l.closed = 1 OR l.max_in_flight <= leased_labels)) THEN NULL
    ELSE (SELECT claim_sla FROM cqs_head h
        WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane AND h.claim_sla IS NOT NULL
        ORDER BY claim_sla LIMIT 1) END
WHERE queue = ?1 AND lane IN (SELECT lane FROM cqs_head WHERE queue = ?1 AND store = ?2 AND store <> '')";

/// Opens the places of the lanes `?1` in the queue `?2`; empty ones go.
const PLACES_OPEN: &str = "
UPDATE cqs_place SET closed_until = NULL, first_sla = CASE
    WHEN EXISTS (SELECT 1 FROM cqs_lane l WHERE l.lane = cqs_place.lane
        AND (l.closed = 1 OR l.max_in_flight <= leased_labels)) THEN NULL
    ELSE (SELECT claim_sla FROM cqs_head h
        WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane AND h.claim_sla IS NOT NULL
        ORDER BY claim_sla LIMIT 1) END
WHERE queue = ?2 AND lane IN (SELECT value FROM jsonb_each(?1));

DELETE FROM cqs_place
WHERE queue = ?2 AND lane IN (SELECT value FROM jsonb_each(?1)) AND leased_labels = 0
    AND NOT EXISTS (SELECT 1 FROM cqs_head h WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane)";

/// After a change of the gate of the lane `?1`: its places are open for its throttle, and their first SLA is read.
pub(super) const PLACES_GATE: &str = "
UPDATE cqs_place SET closed_until = NULL, first_sla = CASE
    WHEN EXISTS (SELECT 1 FROM cqs_lane l WHERE l.lane = cqs_place.lane
        AND (l.closed = 1 OR l.max_in_flight <= leased_labels)) THEN NULL
    ELSE (SELECT claim_sla FROM cqs_head h
        WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane AND h.claim_sla IS NOT NULL
        ORDER BY claim_sla LIMIT 1) END
WHERE lane = ?1;

DELETE FROM cqs_place WHERE lane = ?1 AND leased_labels = 0
    AND NOT EXISTS (SELECT 1 FROM cqs_head h WHERE h.queue = cqs_place.queue AND h.lane = cqs_place.lane)";

fn read_head(row: &SqliteRow) -> Result<Head, StoreError> {
    let columns = Columns { table: "cqs_head", row, key: "lane" };
    Ok(Head {
        lane: columns.get("lane")?,
        store: columns.parse_if("store")?,
        claim_sla: columns.time("claim_sla")?,
        label_sla: columns.time_if("label_sla")?,
        parent_sla: columns.time_if("parent_sla")?,
        leased_labels: columns.get("leased_labels")?,
    })
}
