//! Failures, their retries, and where a record is.

use domain::{SplitItem, Urn};
use serde_json::json;

use super::{
    SqliteUnit,
    json::{json_text, urns_json},
};
use crate::{
    StoreError,
    columns::{alias_text, limit_int, read_dead, read_fate, read_rule},
    model::{DeadRange, DeadRow, RecordFate, RetryRule},
    unit::Failures,
};

impl Failures for SqliteUnit<'_> {
    async fn dead_last(&mut self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("SELECT coalesce(max(id), 0) FROM cqs_dead").fetch_one(&mut *self.conn).await?)
    }

    async fn dead_open(&mut self, lane: i64, queue: i64, cause: Option<&str>) -> Result<i64, StoreError> {
        // Two statements, so that one cause costs one look whatever their number.
        let statement = if cause.is_some() { OPEN_OF_CAUSE } else { OPEN };
        Ok(sqlx::query_scalar(statement)
            .bind(lane)
            .bind(queue)
            .bind(cause.unwrap_or_default())
            .fetch_one(&mut *self.conn)
            .await?)
    }

    async fn dead_page(&mut self, range: &DeadRange) -> Result<Vec<DeadRow>, StoreError> {
        let statement = if range.cause.is_some() { PAGE_OF_CAUSE } else { PAGE };
        let rows = sqlx::query(statement)
            .bind(range.lane)
            .bind(range.queue)
            .bind(range.after)
            .bind(range.up_to)
            .bind(limit_int(range.limit))
            .bind(range.cause.as_deref().unwrap_or_default())
            .fetch_all(&mut *self.conn)
            .await?;
        read_dead(range.queue, &rows)
    }

    async fn dead_retried(&mut self, positions: &[i64], lane: i64) -> Result<(), StoreError> {
        let positions = json_text(&positions)?;
        sqlx::query(
            "UPDATE cqs_dead_group SET retried = retried + taken.failed
             FROM (
                SELECT d.lane, d.queue, d.cause, count(*) AS failed FROM jsonb_each(?1) CROSS JOIN cqs_dead d ON d.id = value
                WHERE d.retried_by IS NULL GROUP BY d.lane, d.queue, d.cause
             ) taken
             WHERE cqs_dead_group.lane = taken.lane AND cqs_dead_group.queue = taken.queue
                AND cqs_dead_group.cause = taken.cause",
        )
        .bind(&positions)
        .execute(&mut *self.conn)
        .await?;
        sqlx::query("UPDATE cqs_dead SET retried_by = ?2 WHERE id IN (SELECT value FROM jsonb_each(?1))")
            .bind(&positions)
            .bind(lane)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn dead_given_back(&mut self, lane: i64, queue: i64, items: &[&SplitItem]) -> Result<(), StoreError> {
        let items = items
            .iter()
            .map(|item| json!([item.target.urn().to_string(), item.dto_type.as_str(), alias_text(item.alias)]));
        let items = json_text(&items.collect::<Vec<_>>())?;
        for statement in GIVEN_BACK {
            sqlx::query(statement).bind(&items).bind(lane).bind(queue).execute(&mut *self.conn).await?;
        }
        Ok(())
    }

    async fn retry_put(&mut self, rules: &[RetryRule]) -> Result<(), StoreError> {
        let rules = rules.iter().map(|rule| {
            json!([
                rule.lane,
                rule.queue,
                rule.parent_lane,
                rule.tracking_id.as_str(),
                rule.parent_tracking_id.as_str(),
                rule.cause,
                rule.up_to,
                rule.position,
                rule.labels,
                rule.parents,
                rule.handed_over,
                i64::from(rule.done),
            ])
        });
        sqlx::query(
            "INSERT INTO cqs_retry (lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to, position,
                labels, parents, handed_over, done)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
                value ->> 8, value ->> 9, value ->> 10, value ->> 11
             FROM jsonb_each(?1) WHERE true
             ON CONFLICT DO UPDATE SET position = excluded.position, labels = excluded.labels,
                parents = excluded.parents, handed_over = excluded.handed_over, done = excluded.done",
        )
        .bind(json_text(&rules.collect::<Vec<_>>())?)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn retry_pending(&mut self, limit: usize) -> Result<Vec<RetryRule>, StoreError> {
        let rows = sqlx::query(
            "SELECT lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to, position, labels, parents, handed_over,
                labels_given_back, parents_given_back, done
             FROM cqs_retry WHERE done = 0 ORDER BY lane, queue LIMIT ?1",
        )
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_rule).collect()
    }

    async fn retry_of(&mut self, lanes: &[i64]) -> Result<Vec<RetryRule>, StoreError> {
        let rows = sqlx::query(
            "SELECT lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to, position, labels, parents, handed_over,
                labels_given_back, parents_given_back, done
             FROM cqs_retry WHERE lane IN (SELECT value FROM jsonb_each(?1))
             UNION
             SELECT lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to, position, labels, parents, handed_over,
                labels_given_back, parents_given_back, done
             FROM cqs_retry WHERE parent_lane IN (SELECT value FROM jsonb_each(?1))
             ORDER BY lane, queue",
        )
        .bind(json_text(&lanes)?)
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_rule).collect()
    }

    async fn record_fates(&mut self, urns: &[Urn]) -> Result<Vec<RecordFate>, StoreError> {
        let rows = sqlx::query(FATES).bind(urns_json(urns.iter())?).fetch_all(&mut *self.conn).await?;
        rows.iter().map(read_fate).collect()
    }
}

/// What a retry took over of the items `?1` (URN, type, alias): counted as open by cause, taken from the retry's counts,
/// and last its own no more.
const GIVEN_BACK: [&str; 3] = [
    "UPDATE cqs_dead_group SET retried = retried - back.failed
     FROM (
        SELECT d.lane, d.queue, d.cause, count(DISTINCT d.id) AS failed
        FROM jsonb_each(?1) CROSS JOIN cqs_dead d ON d.retried_by = ?2 AND d.queue = ?3 AND d.urn = value ->> 0
            AND d.dto_type = value ->> 1 AND d.alias = value ->> 2
        GROUP BY d.lane, d.queue, d.cause
     ) back
     WHERE cqs_dead_group.lane = back.lane AND cqs_dead_group.queue = back.queue AND cqs_dead_group.cause = back.cause",
    "UPDATE cqs_retry SET labels = cqs_retry.labels - back.labels, parents = cqs_retry.parents - back.parents,
        handed_over = cqs_retry.handed_over - back.handed_over,
        labels_given_back = cqs_retry.labels_given_back + back.labels,
        parents_given_back = cqs_retry.parents_given_back + back.parents
     FROM (
        SELECT count(DISTINCT iif(d.is_parent = 0, d.id, NULL)) AS labels,
            count(DISTINCT iif(d.is_parent = 1, d.id, NULL)) AS parents,
            count(DISTINCT iif(d.handed_over = 1, d.id, NULL)) AS handed_over
        FROM jsonb_each(?1) CROSS JOIN cqs_dead d ON d.retried_by = ?2 AND d.queue = ?3 AND d.urn = value ->> 0
            AND d.dto_type = value ->> 1 AND d.alias = value ->> 2
     ) back
     WHERE cqs_retry.lane = ?2 AND cqs_retry.queue = ?3",
    "UPDATE cqs_dead SET retried_by = NULL WHERE id IN (
        SELECT d.id
        FROM jsonb_each(?1) CROSS JOIN cqs_dead d ON d.retried_by = ?2 AND d.queue = ?3 AND d.urn = value ->> 0
            AND d.dto_type = value ->> 1 AND d.alias = value ->> 2)",
];

const OPEN: &str = "
SELECT coalesce(sum(failed - retried), 0) FROM cqs_dead_group WHERE lane = ?1 AND queue = ?2 AND ?3 = ''";

const OPEN_OF_CAUSE: &str = "
SELECT coalesce(sum(failed - retried), 0) FROM cqs_dead_group WHERE lane = ?1 AND queue = ?2 AND cause = ?3";

/// The columns of a waiting row in their order, then those of a failure.
const PAGE: &str = "
SELECT row_id AS id, lane, '' AS store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, NULL AS due_at,
    0 AS alone, 0 AS lapses_alone, cursor, cause, handed_over, cqs_dead.id AS position, at, retried_by
FROM cqs_dead INDEXED BY cqs_dead_list
WHERE lane = ?1 AND queue = ?2 AND cqs_dead.id > ?3 AND cqs_dead.id <= ?4 AND ?6 = ''
ORDER BY cqs_dead.id LIMIT ?5";

const PAGE_OF_CAUSE: &str = "
SELECT row_id AS id, lane, '' AS store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, NULL AS due_at,
    0 AS alone, 0 AS lapses_alone, cursor, cause, handed_over, cqs_dead.id AS position, at, retried_by
FROM cqs_dead INDEXED BY cqs_dead_cause
WHERE lane = ?1 AND queue = ?2 AND cause = ?6 AND cqs_dead.id > ?3 AND cqs_dead.id <= ?4
ORDER BY cqs_dead.id LIMIT ?5";

/// Waiting, leased, failed: each by the record's name. Several of one record in one place come by their age.
const FATES: &str = "
SELECT 'waiting' AS state, q.name AS queue, w.dto_type, w.urn, w.attempts, w.sla, w.tracking_id, w.due_at, w.cause,
    NULL AS at, w.id
FROM jsonb_each(?1) CROSS JOIN cqs_waiting w ON w.urn = value CROSS JOIN cqs_queue q ON q.queue = w.queue
WHERE w.is_parent = 0
UNION ALL
SELECT 'leased', q.name, r.dto_type, r.urn, r.attempts, r.sla, r.tracking_id, NULL, '', NULL, r.id
FROM jsonb_each(?1) CROSS JOIN cqs_leased r ON r.urn = value CROSS JOIN cqs_lease l ON l.generation = r.lease
    CROSS JOIN cqs_queue q ON q.queue = l.queue
WHERE r.is_parent = 0
UNION ALL
SELECT 'dead', q.name, d.dto_type, d.urn, d.attempts, d.sla, d.tracking_id, NULL, d.cause, d.at, d.id
FROM jsonb_each(?1) CROSS JOIN cqs_queue q CROSS JOIN cqs_undelivered u ON u.queue = q.queue AND u.urn = value
    CROSS JOIN cqs_dead d ON d.id = u.dead
WHERE d.retried_by IS NULL
ORDER BY 1 DESC, 11";
