//! How all of it stands, over all tenants.
//!
//! Differs by necessity: heads keep no counts here, since every claim would have to write them; so waiting rows are counted,
//! each lane's to a bound. A head's SLA is a low-water mark, from which the first row is looked for.

use super::PostgresUnit;
use crate::{
    StoreError,
    columns::{read_failed, read_load, read_tally},
    model::{Load, OperationTally},
    unit::Overviews,
};

impl Overviews for PostgresUnit<'_> {
    async fn load_list(&mut self, counted: i64) -> Result<Vec<Load>, StoreError> {
        let rows = sqlx::query(LOADS).bind(counted).fetch_all(&mut *self.conn).await?;
        rows.iter().map(read_load).collect()
    }

    async fn failed_list(&mut self, limit: i64) -> Result<Vec<(i64, i64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT queue, count(*) AS failed
             FROM (SELECT queue FROM cqs_dead WHERE retried_by IS NULL LIMIT $1) d GROUP BY queue",
        )
        .bind(limit)
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_failed).collect()
    }

    async fn operation_tally(&mut self) -> Result<OperationTally, StoreError> {
        let row = sqlx::query(
            "SELECT count(*) FILTER (WHERE c.cancelled_at IS NOT NULL) AS cancelling,
                count(*) FILTER (WHERE c.cancelled_at IS NULL AND c.approval = 'awaiting') AS awaiting,
                count(*) FILTER (WHERE c.cancelled_at IS NULL AND c.approval <> 'awaiting' AND c.held_at IS NOT NULL)
                    AS held,
                count(*) FILTER (WHERE c.cancelled_at IS NULL AND c.approval <> 'awaiting' AND c.held_at IS NULL
                    AND c.paused_at IS NOT NULL) AS paused,
                count(*) AS unfinished
             FROM cqs_operation o JOIN cqs_control c ON c.tenant = o.tenant AND c.lane = o.lane
             WHERE o.finished_at IS NULL",
        )
        .fetch_one(&mut *self.conn)
        .await?;
        read_tally(&row)
    }
}

/// What a queue holds in lanes of each kind; of what waits ready in one lane, and delayed in one queue, `$1` at most are counted.
/// What a cancelled lane still has is counted apart: everywhere else it counts as cancelled.
const LOADS: &str = "
SELECT p.queue, p.kind, sum(p.ready)::bigint AS ready, sum(p.delayed)::bigint AS delayed,
    sum(p.cancelled)::bigint AS cancelled, sum(p.leased)::bigint AS leased, min(p.first_sla) AS first_sla
FROM (
    SELECT p.queue, l.kind, CASE WHEN l.cancelled_at IS NULL THEN n.counted ELSE 0 END AS ready, 0 AS delayed,
        CASE WHEN l.cancelled_at IS NULL THEN 0 ELSE n.counted END AS cancelled, 0 AS leased,
        CASE WHEN l.cancelled_at IS NULL AND NOT l.closed THEN (
            SELECT min(least(
                (SELECT w.sla FROM cqs_waiting w
                    WHERE w.tenant = h.tenant AND w.lane = h.lane AND w.queue = h.queue AND w.store = h.store
                        AND NOT w.is_parent AND w.due_at IS NULL AND w.sla >= h.label_sla
                    ORDER BY w.sla LIMIT 1),
                (SELECT w.sla FROM cqs_waiting w
                    WHERE w.tenant = h.tenant AND w.lane = h.lane AND w.queue = h.queue AND w.store = h.store
                        AND w.is_parent AND w.due_at IS NULL AND w.sla >= h.parent_sla
                    ORDER BY w.sla LIMIT 1)))
            FROM cqs_head h WHERE h.tenant = p.tenant AND h.lane = p.lane AND h.queue = p.queue
        ) END AS first_sla
    FROM cqs_place p JOIN cqs_lane l ON l.tenant = p.tenant AND l.lane = p.lane
    CROSS JOIN LATERAL (
        SELECT count(*) AS counted FROM (
            SELECT 1 FROM cqs_waiting w
            WHERE w.tenant = p.tenant AND w.lane = p.lane AND w.queue = p.queue AND w.due_at IS NULL
            LIMIT $1) AS ready) AS n
    UNION ALL
    SELECT d.queue, l.kind, 0, count(*) FILTER (WHERE l.cancelled_at IS NULL),
        count(*) FILTER (WHERE l.cancelled_at IS NOT NULL), 0, NULL
    FROM cqs_queue q
    CROSS JOIN LATERAL (
        SELECT w.queue, w.tenant, w.lane FROM cqs_waiting w
        WHERE w.queue = q.queue AND w.due_at IS NOT NULL LIMIT $1) AS d
    JOIN cqs_lane l ON l.tenant = d.tenant AND l.lane = d.lane
    GROUP BY d.queue, l.kind
    UNION ALL
    SELECT s.queue, l.kind, 0, 0, 0, count(*), NULL
    FROM cqs_lease s
    JOIN cqs_lane l ON l.tenant = s.tenant AND l.lane = s.lane
    JOIN cqs_leased r ON r.tenant = s.tenant AND r.lease = s.generation
    GROUP BY s.queue, l.kind
) AS p
GROUP BY p.queue, p.kind ORDER BY p.queue, p.kind";
