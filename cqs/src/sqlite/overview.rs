//! How all of it stands, over all tenants.

use super::SqliteUnit;
use crate::{
    StoreError,
    columns::{read_failed, read_load, read_tally},
    model::{Load, OperationTally},
    unit::Overviews,
};

impl Overviews for SqliteUnit<'_> {
    async fn load_list(&mut self, _: i64) -> Result<Vec<Load>, StoreError> {
        // Waiting rows are counted by their heads, so this costs as much as there are lanes and leased rows.
        let rows = sqlx::query(
            "SELECT queue, kind, sum(ready) AS ready, sum(delayed) AS delayed, sum(cancelled) AS cancelled,
                sum(leased) AS leased, min(first_sla) AS first_sla
             FROM (
                SELECT h.queue, l.kind, h.ready_labels + h.ready_parents AS ready, h.delayed, 0 AS cancelled, 0 AS leased,
                    CASE WHEN l.closed = 0
                        THEN min(coalesce(h.label_sla, h.parent_sla), coalesce(h.parent_sla, h.label_sla))
                    END AS first_sla
                FROM cqs_head h JOIN cqs_lane l ON l.lane = h.lane
                WHERE l.cancelled_at IS NULL
                UNION ALL
                SELECT h.queue, l.kind, 0, 0, h.ready_labels + h.ready_parents + h.delayed, 0, NULL
                FROM cqs_head h JOIN cqs_lane l ON l.lane = h.lane
                WHERE l.cancelled_at IS NOT NULL
                UNION ALL
                SELECT s.queue, l.kind, 0, 0, 0, count(*), NULL
                FROM cqs_lease s JOIN cqs_lane l ON l.lane = s.lane JOIN cqs_leased r ON r.lease = s.generation
                GROUP BY s.queue, l.kind
             ) GROUP BY queue, kind ORDER BY queue, kind",
        )
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_load).collect()
    }

    async fn failed_list(&mut self, limit: i64) -> Result<Vec<(i64, i64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT queue, count(*) AS failed
             FROM (SELECT queue FROM cqs_dead WHERE retried_by IS NULL LIMIT ?1) GROUP BY queue",
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
             FROM cqs_operation o JOIN cqs_control c ON c.lane = o.lane
             WHERE o.finished_at IS NULL",
        )
        .fetch_one(&mut *self.conn)
        .await?;
        read_tally(&row)
    }
}
