//! Lanes, and what steps ask of their heads.

use std::collections::BTreeMap;

use domain::{LaneKind, StoreId, TenantId, Timestamp};

use super::{PostgresUnit, arrays::queue_int, floors::Awaited, locks::Lock, tenants::id_with};
use crate::{
    StoreError,
    columns::{limit_int, read_lane, read_place},
    model::{Gate, Head, HeadChange, HeadKey, Lane, NewLane, PlaceReport},
    unit::{Held, Lanes},
};

impl Lanes for PostgresUnit<'_> {
    async fn lane_find(&mut self, lane: i64) -> Result<Option<Lane>, StoreError> {
        if let Some(found) = self.lanes.get(&lane) {
            return Ok(Some(found.clone()));
        }
        let Some(tenant) = self.tenant_of(lane).await? else { return Ok(None) };
        let mut found = self.lane_read(FIND, &tenant, lane).await?;
        // Only an operation's gate ever changes; all others go by without a lock.
        if self.writes && found.as_ref().is_some_and(|lane| lane.kind == LaneKind::Operation) {
            found = self.lane_read(FIND_SHARED, &tenant, lane).await?;
        }
        if let Some(found) = &found {
            self.lanes.insert(lane, found.clone());
        }
        Ok(found)
    }

    async fn lane_ordinary(&mut self, tenant: &TenantId, now: Timestamp) -> Result<Lane, StoreError> {
        if let Some(lane) = self.ordinary(tenant).await? {
            return Ok(lane);
        }
        let new = NewLane { tenant: tenant.clone(), kind: LaneKind::Ordinary, tracking_id: None };
        // Whoever opens it at the same time meets this one at the unique index, and runs again.
        self.lane_open(new, now).await
    }

    async fn lane_open(&mut self, lane: NewLane, now: Timestamp) -> Result<Lane, StoreError> {
        let number = self.tenant_number(&lane.tenant).await?;
        let sequence: i64 = sqlx::query_scalar("SELECT nextval('cqs_lane_number')").fetch_one(&mut *self.conn).await?;
        let id = id_with(sequence, number);
        sqlx::query("INSERT INTO cqs_lane (tenant, lane, kind, tracking_id, created_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(lane.tenant.as_str())
            .bind(id)
            .bind(lane.kind.as_str())
            .bind(lane.tracking_id.as_ref().map_or("", |id| id.as_str()))
            .bind(now.as_ms())
            .execute(&mut *self.conn)
            .await?;
        let NewLane { tenant, kind, tracking_id } = lane;
        let lane = Lane { id, tenant, kind, tracking_id, gate: Gate::default() };
        self.opened.insert(id);
        self.lanes.insert(id, lane.clone());
        Ok(lane)
    }

    async fn lane_is_idle(&mut self, lane: i64) -> Result<bool, StoreError> {
        if self.kept.contains(&lane) {
            return Ok(false);
        }
        // Two units that end the last two leases would each see the other's: they look one after the other, and each
        // statement sees what was committed before it.
        self.lock(Lock::Settling(lane)).await?;
        let tenant = self.tenant_of_stored(lane).await?;
        Ok(sqlx::query_scalar(IDLE).bind(tenant.as_str()).bind(lane).fetch_one(&mut *self.conn).await?)
    }

    async fn lane_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        let old: Vec<(String, i64)> = sqlx::query_as(
            "SELECT tenant, lane FROM cqs_lane WHERE kind = 'split' AND created_at < $1 ORDER BY created_at LIMIT $2",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        for (tenant, lane) in old {
            let idle: bool = sqlx::query_scalar(IDLE).bind(&tenant).bind(lane).fetch_one(&mut *self.conn).await?;
            if idle {
                for statement in [
                    "DELETE FROM cqs_head WHERE tenant = $1 AND lane = $2",
                    "DELETE FROM cqs_place WHERE tenant = $1 AND lane = $2",
                    "DELETE FROM cqs_lane WHERE tenant = $1 AND lane = $2 AND kind = 'split'",
                ] {
                    sqlx::query(statement).bind(&tenant).bind(lane).execute(&mut *self.conn).await?;
                }
            }
        }
        Ok(())
    }

    async fn head_change(
        &mut self,
        changes: &[(HeadKey, LaneKind, HeadChange)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        // Of an operation it is noted, for people, since when something waits; others pay nothing for that.
        let mut noted: BTreeMap<(i64, i64), i64> = BTreeMap::new();
        for (key, kind, change) in changes {
            if let Some(marks) = self.ready.remove(key) {
                self.lower(key, *kind, marks).await?;
            }
            self.advance(key).await?;
            if *kind == LaneKind::Operation {
                let more = change.ready_labels + change.ready_parents + change.delayed;
                *noted.entry((key.queue, key.lane)).or_default() += more;
            }
        }
        for ((queue, lane), more) in noted {
            self.note_waiting((queue, lane), more, now).await?;
        }
        Ok(())
    }

    async fn head_hold(&mut self, _: i64, _: &StoreId, _: Held) -> Result<(), StoreError> {
        // The lease says so itself; there is at most one for a store in a queue.
        Ok(())
    }

    async fn head_upkeep(&mut self) -> Result<(), StoreError> {
        self.raise_some().await
    }

    async fn head_first(&mut self, queue: i64, kind: LaneKind) -> Result<Option<Head>, StoreError> {
        self.first_head(queue, kind).await
    }

    async fn head_in_turn(&mut self, queue: i64, kind: LaneKind, after: i64) -> Result<Option<Head>, StoreError> {
        self.next_head(queue, kind, after).await
    }

    async fn head_held(&mut self, head: &HeadKey) -> Result<Option<Head>, StoreError> {
        self.held_head(head).await
    }

    async fn head_elsewhere(&mut self, queue: i64, store: &StoreId, lane: i64) -> Result<bool, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        Ok(sqlx::query_scalar(ELSEWHERE)
            .bind(tenant.as_str())
            .bind(queue_int(queue))
            .bind(store.as_str())
            .bind(lane)
            .fetch_one(&mut *self.conn)
            .await?)
    }

    async fn place_close(&mut self, queue: i64, lane: i64, until: Timestamp) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query("UPDATE cqs_place SET closed_until = $4 WHERE tenant = $1 AND lane = $2 AND queue = $3")
            .bind(tenant.as_str())
            .bind(lane)
            .bind(queue_int(queue))
            .bind(until.as_ms())
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn place_open(&mut self, queue: i64, now: Timestamp) -> Result<(), StoreError> {
        let from = self.queues.floors.from((Awaited::Places, queue), now);
        let due: Vec<(String, i64, i64)> = sqlx::query_as(
            "SELECT tenant, lane, closed_until FROM cqs_place WHERE queue = $1 AND closed_until IS NOT NULL AND closed_until <= $2
                AND closed_until >= $3
             ORDER BY closed_until LIMIT $4",
        )
        .bind(queue_int(queue))
        .bind(now.as_ms())
        .bind(from.as_ms())
        .bind(limit_int(OPENED))
        .fetch_all(&mut *self.conn)
        .await?;
        let first = due.first().map(|(_, _, until)| Timestamp::from_ms(*until));
        self.queues.floors.looked((Awaited::Places, queue), (from, now), first);
        for (tenant, lane, _) in due {
            sqlx::query(OPEN)
                .bind(tenant)
                .bind(lane)
                .bind(queue_int(queue))
                .bind(now.as_ms())
                .execute(&mut *self.conn)
                .await?;
        }
        Ok(())
    }

    async fn place_next_open(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let next: Option<i64> =
            sqlx::query_scalar("SELECT min(closed_until) FROM cqs_place WHERE queue = $1 AND closed_until IS NOT NULL AND closed_until >= $2")
                .bind(queue_int(queue))
                .bind(self.queues.floors.next((Awaited::Places, queue)).as_ms())
                .fetch_one(&mut *self.conn)
                .await?;
        Ok(next.map(Timestamp::from_ms))
    }

    async fn place_list(&mut self, lane: i64) -> Result<Vec<PlaceReport>, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let rows = sqlx::query(PLACES)
            .bind(tenant.as_str())
            .bind(lane)
            .bind(PlaceReport::COUNTED_MAX)
            .fetch_all(&mut *self.conn)
            .await?;
        rows.iter().map(read_place).collect()
    }
}

impl PostgresUnit<'_> {
    async fn ordinary(&mut self, tenant: &TenantId) -> Result<Option<Lane>, StoreError> {
        let found = sqlx::query(
            "SELECT lane, tenant, kind, tracking_id, closed, throttle_per_s, max_in_flight, stops,
                cancelled_at IS NOT NULL AS cancelled
             FROM cqs_lane WHERE tenant = $1 AND kind = 'ordinary'",
        )
        .bind(tenant.as_str())
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_lane).transpose()
    }

    async fn lane_read(
        &mut self,
        statement: &'static str,
        tenant: &TenantId,
        lane: i64,
    ) -> Result<Option<Lane>, StoreError> {
        let found = sqlx::query(statement).bind(tenant.as_str()).bind(lane).fetch_optional(&mut *self.conn).await?;
        found.as_ref().map(read_lane).transpose()
    }

    /// Notes since when something of an operation waits in a queue, where that changed: written when the first row came,
    /// or the last one went.
    async fn note_waiting(&mut self, (queue, lane): (i64, i64), more: i64, now: Timestamp) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let since: Option<Option<i64>> =
            sqlx::query_scalar("SELECT waiting_since FROM cqs_place WHERE tenant = $1 AND lane = $2 AND queue = $3")
                .bind(tenant.as_str())
                .bind(lane)
                .bind(queue_int(queue))
                .fetch_optional(&mut *self.conn)
                .await?;
        let noted = since.flatten();
        if noted.is_some() && more > 0 {
            return Ok(());
        }
        let waits: bool = sqlx::query_scalar(WAITS)
            .bind(tenant.as_str())
            .bind(lane)
            .bind(queue_int(queue))
            .fetch_one(&mut *self.conn)
            .await?;
        if waits == noted.is_some() {
            return Ok(());
        }
        sqlx::query(NOTE)
            .bind(tenant.as_str())
            .bind(lane)
            .bind(queue_int(queue))
            .bind(waits.then_some(now.as_ms()))
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }
}

/// Places opened by one look.
const OPENED: usize = 256;

const FIND: &str = "
SELECT lane, tenant, kind, tracking_id, closed, throttle_per_s, max_in_flight, stops, cancelled_at IS NOT NULL AS cancelled
FROM cqs_lane WHERE tenant = $1 AND lane = $2";

/// Whoever changes the gate waits for this unit's end, and this one for that one's.
const FIND_SHARED: &str = "
SELECT lane, tenant, kind, tracking_id, closed, throttle_per_s, max_in_flight, stops, cancelled_at IS NOT NULL AS cancelled
FROM cqs_lane WHERE tenant = $1 AND lane = $2 FOR SHARE";

const OPEN: &str = "
UPDATE cqs_place SET closed_until = NULL
WHERE tenant = $1 AND lane = $2 AND queue = $3 AND closed_until IS NOT NULL AND closed_until <= $4";

const NOTE: &str = "
INSERT INTO cqs_place AS p (tenant, lane, queue, kind, closed, waiting_since)
SELECT tenant, lane, $3, kind, closed, $4 FROM cqs_lane WHERE tenant = $1 AND lane = $2
ON CONFLICT (tenant, lane, queue) DO UPDATE SET waiting_since = excluded.waiting_since";

/// Whether something of a lane waits in a queue.
const WAITS: &str = "
SELECT EXISTS (
        SELECT 1 FROM cqs_head h CROSS JOIN LATERAL (
            SELECT 1 FROM cqs_waiting w
            WHERE w.tenant = $1 AND w.lane = $2 AND w.queue = $3 AND w.store = h.store AND NOT w.is_parent
                AND w.due_at IS NULL AND (w.sla, w.id) >= (h.label_sla, h.label_id)
            ORDER BY w.sla DESC, w.id DESC LIMIT 1) AS label
        WHERE h.tenant = $1 AND h.lane = $2 AND h.queue = $3)
    OR EXISTS (
        SELECT 1 FROM cqs_head h CROSS JOIN LATERAL (
            SELECT 1 FROM cqs_waiting w
            WHERE w.tenant = $1 AND w.lane = $2 AND w.queue = $3 AND w.store = h.store AND w.is_parent
                AND w.due_at IS NULL AND (w.sla, w.id) >= (h.parent_sla, h.parent_id)
            ORDER BY w.sla DESC, w.id DESC LIMIT 1) AS parent
        WHERE h.tenant = $1 AND h.lane = $2 AND h.queue = $3)
    OR EXISTS (
        SELECT 1 FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND queue = $3 AND due_at IS NOT NULL
        ORDER BY due_at DESC LIMIT 1)";

/// The places of a lane with what waits and is leased there; what waits is counted from the far end.
const PLACES: &str = "
SELECT q.queue, w.ready, w.delayed, w.next_due, l.leased_labels, l.leased_until, p.closed_until, p.waiting_since
FROM cqs_queue q
LEFT JOIN cqs_place p ON p.tenant = $1 AND p.lane = $2 AND p.queue = q.queue
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM (
            SELECT 1 FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND queue = q.queue AND due_at IS NULL
            ORDER BY store DESC, is_parent DESC, sla DESC, id DESC LIMIT $3) AS counted) AS ready,
        (SELECT count(*) FROM (
            SELECT 1 FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND queue = q.queue AND due_at IS NOT NULL
            ORDER BY due_at DESC LIMIT $3) AS counted) AS delayed,
        (SELECT due_at FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND queue = q.queue AND due_at IS NOT NULL
            ORDER BY due_at LIMIT 1) AS next_due) AS w
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE NOT r.is_parent) AS leased_labels, max(s.expires_at) AS leased_until
    FROM cqs_lease s LEFT JOIN cqs_leased r ON r.tenant = s.tenant AND r.lease = s.generation
    WHERE s.tenant = $1 AND s.lane = $2 AND s.lane <> 0 AND s.queue = q.queue) AS l
WHERE w.ready + w.delayed > 0 OR l.leased_until IS NOT NULL OR p.closed_until IS NOT NULL
ORDER BY q.queue";

/// Whether nothing of a lane waits or is leased; rows of a cancelled one do not count. From the far end of each index, where the newest lies: rows and leases
/// go from the near end, and may leave many behind that are not removable yet.
const IDLE: &str = "
SELECT NOT EXISTS (
        SELECT 1 FROM cqs_lease WHERE tenant = $1 AND lane = $2 AND lane <> 0 ORDER BY queue DESC, generation DESC LIMIT 1)
    AND (EXISTS (SELECT 1 FROM cqs_lane WHERE tenant = $1 AND lane = $2 AND cancelled_at IS NOT NULL)
    OR NOT EXISTS (SELECT 1 FROM cqs_retry WHERE tenant = $1 AND lane = $2 AND NOT done)
    AND NOT EXISTS (
        SELECT 1 FROM cqs_head h CROSS JOIN LATERAL (
            SELECT 1 FROM cqs_waiting w
            WHERE w.tenant = $1 AND w.lane = $2 AND w.queue = h.queue AND w.store = h.store AND NOT w.is_parent
                AND w.due_at IS NULL AND (w.sla, w.id) >= (h.label_sla, h.label_id)
            ORDER BY w.sla DESC, w.id DESC LIMIT 1) AS label
        WHERE h.tenant = $1 AND h.lane = $2)
    AND NOT EXISTS (
        SELECT 1 FROM cqs_head h CROSS JOIN LATERAL (
            SELECT 1 FROM cqs_waiting w
            WHERE w.tenant = $1 AND w.lane = $2 AND w.queue = h.queue AND w.store = h.store AND w.is_parent
                AND w.due_at IS NULL AND (w.sla, w.id) >= (h.parent_sla, h.parent_id)
            ORDER BY w.sla DESC, w.id DESC LIMIT 1) AS parent
        WHERE h.tenant = $1 AND h.lane = $2)
    AND NOT EXISTS (
        SELECT 1 FROM cqs_waiting WHERE tenant = $1 AND lane = $2 AND due_at IS NOT NULL ORDER BY due_at DESC LIMIT 1))";

/// Whether something of the store `$3` may be claimable in another lane than `$4`. Marks say where to look, the rows what is
/// there. That many ready labels close a lane for parents is not looked at: then the store is let go for once.
const ELSEWHERE: &str = "
SELECT EXISTS (
    SELECT 1 FROM cqs_place p
    JOIN cqs_lane l ON l.tenant = $1 AND l.lane = p.lane
    JOIN cqs_head h ON h.tenant = $1 AND h.lane = p.lane AND h.queue = p.queue AND h.store = $3
    WHERE p.tenant = $1 AND p.queue = $2 AND p.lane <> $4 AND p.first_sla IS NOT NULL AND NOT p.closed
        AND p.closed_until IS NULL AND h.claim_sla IS NOT NULL
        AND (l.max_in_flight IS NULL OR l.max_in_flight > (
            SELECT count(*) FROM cqs_lease s JOIN cqs_leased r ON r.tenant = $1 AND r.lease = s.generation
            WHERE s.tenant = $1 AND s.lane = p.lane AND s.lane <> 0 AND s.queue = p.queue AND NOT r.is_parent))
        AND (EXISTS (
                SELECT 1 FROM cqs_waiting w
                WHERE w.tenant = $1 AND w.lane = h.lane AND w.queue = h.queue AND w.store = h.store
                    AND NOT w.is_parent AND w.due_at IS NULL AND (w.sla, w.id) >= (h.label_sla, h.label_id))
            OR (EXISTS (
                SELECT 1 FROM cqs_waiting w
                WHERE w.tenant = $1 AND w.lane = h.lane AND w.queue = h.queue AND w.store = h.store
                    AND w.is_parent AND w.due_at IS NULL AND (w.sla, w.id) >= (h.parent_sla, h.parent_id))
                AND NOT EXISTS (
                    SELECT 1 FROM cqs_lease s JOIN cqs_leased r ON r.tenant = $1 AND r.lease = s.generation
                    WHERE s.tenant = $1 AND s.lane = p.lane AND s.lane <> 0 AND s.queue = p.queue AND r.is_parent))))";
