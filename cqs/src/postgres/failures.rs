//! Failures, their retries, and where a record is.

use std::collections::BTreeMap;

use domain::{SplitItem, TenantId, Urn};

use super::{PostgresUnit, arrays::queue_int};
use crate::{
    StoreError,
    columns::{alias_text, limit_int, read_dead, read_fate, read_rule},
    model::{DeadRange, DeadRow, RecordFate, RetryRule},
    unit::Failures,
};

impl Failures for PostgresUnit<'_> {
    async fn dead_last(&mut self) -> Result<i64, StoreError> {
        // The newest number given: what is being written with a smaller one is covered when it is there by then.
        Ok(sqlx::query_scalar("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM cqs_dead_id")
            .fetch_one(&mut *self.conn)
            .await?)
    }

    async fn dead_open(&mut self, lane: i64, queue: i64, cause: Option<&str>) -> Result<i64, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        Ok(sqlx::query_scalar(
            "SELECT coalesce(sum(failed - retried), 0)::bigint FROM cqs_dead_group
             WHERE tenant = $1 AND lane = $2 AND queue = $3 AND ($4::text IS NULL OR cause = $4)",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .bind(queue_int(queue))
        .bind(cause)
        .fetch_one(&mut *self.conn)
        .await?)
    }

    async fn dead_page(&mut self, range: &DeadRange) -> Result<Vec<DeadRow>, StoreError> {
        let tenant = self.tenant_of_stored(range.lane).await?;
        // Two statements, so that each finds its index.
        let statement = if range.cause.is_some() { PAGE_OF_CAUSE } else { PAGE };
        let rows = sqlx::query(statement)
            .bind(tenant.as_str())
            .bind(range.lane)
            .bind(queue_int(range.queue))
            .bind(range.after)
            .bind(range.up_to)
            .bind(limit_int(range.limit))
            .bind(range.cause.as_deref().unwrap_or_default())
            .fetch_all(&mut *self.conn)
            .await?;
        read_dead(range.queue, &rows)
    }

    async fn dead_retried(&mut self, positions: &[i64], lane: i64) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query(
            "WITH taken AS (
                UPDATE cqs_dead SET retried_by = $3 WHERE tenant = $1 AND id = ANY($2) AND retried_by IS NULL
                RETURNING lane, queue, cause
             ), counted AS (
                SELECT lane, queue, cause, count(*) AS failed FROM taken GROUP BY lane, queue, cause
             )
             UPDATE cqs_dead_group g SET retried = g.retried + counted.failed FROM counted
             WHERE g.tenant = $1 AND g.lane = counted.lane AND g.queue = counted.queue AND g.cause = counted.cause",
        )
        .bind(tenant.as_str())
        .bind(positions)
        .bind(lane)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn dead_given_back(&mut self, lane: i64, queue: i64, items: &[&SplitItem]) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let urns: Vec<String> = items.iter().map(|item| item.target.urn().to_string()).collect();
        let types: Vec<&str> = items.iter().map(|item| item.dto_type.as_str()).collect();
        let aliases: Vec<&str> = items.iter().map(|item| alias_text(item.alias)).collect();
        sqlx::query(
            "WITH back AS (
                UPDATE cqs_dead d SET retried_by = NULL
                FROM unnest($4::text[], $5::text[], $6::text[]) AS item (urn, dto_type, alias)
                WHERE d.tenant = $1 AND d.retried_by = $2 AND d.queue = $3 AND d.urn = item.urn
                    AND d.dto_type = item.dto_type AND d.alias = item.alias
                RETURNING d.lane, d.queue, d.cause, d.is_parent, d.handed_over
             ), counted AS (
                SELECT lane, queue, cause, count(*) AS failed FROM back GROUP BY lane, queue, cause
             ), of_cause AS (
                UPDATE cqs_dead_group g SET retried = g.retried - counted.failed FROM counted
                WHERE g.tenant = $1 AND g.lane = counted.lane AND g.queue = counted.queue AND g.cause = counted.cause
             )
             UPDATE cqs_retry r SET labels = r.labels - taken.labels, parents = r.parents - taken.parents,
                handed_over = r.handed_over - taken.handed_over,
                labels_given_back = r.labels_given_back + taken.labels,
                parents_given_back = r.parents_given_back + taken.parents
             FROM (
                SELECT count(*) FILTER (WHERE NOT is_parent) AS labels, count(*) FILTER (WHERE is_parent) AS parents,
                    count(*) FILTER (WHERE handed_over) AS handed_over
                FROM back
             ) taken
             WHERE r.tenant = $1 AND r.lane = $2 AND r.queue = $3",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .bind(queue_int(queue))
        .bind(urns)
        .bind(types)
        .bind(aliases)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn retry_put(&mut self, rules: &[RetryRule]) -> Result<(), StoreError> {
        // One statement a rule: a retry has one a queue.
        for rule in rules {
            let tenant = self.tenant_of_stored(rule.lane).await?;
            sqlx::query(
                "INSERT INTO cqs_retry (tenant, lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to,
                    position, labels, parents, handed_over, done)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
                 ON CONFLICT (tenant, lane, queue) DO UPDATE SET position = excluded.position, labels = excluded.labels,
                    parents = excluded.parents, handed_over = excluded.handed_over, done = excluded.done",
            )
            .bind(tenant.as_str())
            .bind(rule.lane)
            .bind(queue_int(rule.queue))
            .bind(rule.parent_lane)
            .bind(rule.tracking_id.as_str())
            .bind(rule.parent_tracking_id.as_str())
            .bind(&rule.cause)
            .bind(rule.up_to)
            .bind(rule.position)
            .bind(rule.labels)
            .bind(rule.parents)
            .bind(rule.handed_over)
            .bind(rule.done)
            .execute(&mut *self.conn)
            .await?;
        }
        Ok(())
    }

    async fn retry_pending(&mut self, limit: usize) -> Result<Vec<RetryRule>, StoreError> {
        let pending: Vec<(String, i64, i32)> =
            sqlx::query_as("SELECT tenant, lane, queue FROM cqs_retry WHERE NOT done ORDER BY lane, queue LIMIT $1")
                .bind(limit_int(limit))
                .fetch_all(&mut *self.conn)
                .await?;
        let mut found = Vec::new();
        for (tenant, lane, queue) in pending {
            let row = sqlx::query(
                "SELECT lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to, position, labels, parents,
                    handed_over, labels_given_back, parents_given_back, done
                 FROM cqs_retry WHERE tenant = $1 AND lane = $2 AND queue = $3 AND NOT done FOR UPDATE SKIP LOCKED",
            )
            .bind(tenant)
            .bind(lane)
            .bind(queue)
            .fetch_optional(&mut *self.conn)
            .await?;
            if let Some(row) = &row {
                found.push(read_rule(row)?);
            }
        }
        Ok(found)
    }

    async fn retry_of(&mut self, lanes: &[i64]) -> Result<Vec<RetryRule>, StoreError> {
        let mut found = Vec::new();
        for (tenant, lanes) in self.by_tenant(lanes).await? {
            let rows = sqlx::query(
                "SELECT lane, queue, parent_lane, tracking_id, parent_tracking_id, cause, up_to, position, labels, parents,
                    handed_over, labels_given_back, parents_given_back, done
                 FROM cqs_retry WHERE tenant = $1 AND (lane = ANY($2) OR parent_lane = ANY($2))",
            )
            .bind(tenant.as_str())
            .bind(lanes)
            .fetch_all(&mut *self.conn)
            .await?;
            for row in &rows {
                found.push(read_rule(row)?);
            }
        }
        found.sort_unstable_by_key(|rule| (rule.lane, rule.queue));
        Ok(found)
    }

    async fn record_fates(&mut self, urns: &[Urn]) -> Result<Vec<RecordFate>, StoreError> {
        let mut by_tenant: BTreeMap<&TenantId, Vec<String>> = BTreeMap::new();
        for urn in urns {
            by_tenant.entry(urn.tenant()).or_default().push(urn.to_string());
        }
        let mut found = Vec::new();
        for (tenant, urns) in by_tenant {
            let rows = sqlx::query(FATES).bind(tenant.as_str()).bind(urns).fetch_all(&mut *self.conn).await?;
            for row in &rows {
                found.push(read_fate(row)?);
            }
        }
        Ok(found)
    }
}

/// The columns of a waiting row in their order, then those of a failure.
const PAGE: &str = "
SELECT row_id AS id, lane, '' AS store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, NULL::bigint AS due_at,
    false AS alone, 0 AS lapses_alone, cursor, cause, handed_over, id AS position, at, retried_by
FROM cqs_dead
WHERE tenant = $1 AND lane = $2 AND queue = $3 AND cqs_dead.id > $4 AND cqs_dead.id <= $5 AND $7 = ''
ORDER BY cqs_dead.id LIMIT $6";

const PAGE_OF_CAUSE: &str = "
SELECT row_id AS id, lane, '' AS store, is_parent, dto_type, urn, alias, sla, tracking_id, attempts, NULL::bigint AS due_at,
    false AS alone, 0 AS lapses_alone, cursor, cause, handed_over, id AS position, at, retried_by
FROM cqs_dead
WHERE tenant = $1 AND lane = $2 AND queue = $3 AND cause = $7 AND cqs_dead.id > $4 AND cqs_dead.id <= $5
ORDER BY cqs_dead.id LIMIT $6";

/// Waiting, leased, failed: each by the record's name. Several of one record in one place come by their age.
const FATES: &str = "
SELECT 'waiting' AS state, q.name AS queue, w.dto_type, w.urn, w.attempts, w.sla, w.tracking_id, w.due_at, w.cause,
    NULL::bigint AS at, w.id
FROM cqs_waiting w JOIN cqs_queue q ON q.queue = w.queue
WHERE w.tenant = $1 AND w.urn = ANY($2) AND NOT w.is_parent
UNION ALL
SELECT 'leased', q.name, r.dto_type, r.urn, r.attempts, r.sla, r.tracking_id, NULL, '', NULL, r.id
FROM cqs_leased r JOIN cqs_lease l ON l.tenant = r.tenant AND l.generation = r.lease JOIN cqs_queue q ON q.queue = l.queue
WHERE r.tenant = $1 AND r.urn = ANY($2) AND r.urn <> '' AND NOT r.is_parent
UNION ALL
SELECT 'dead', q.name, d.dto_type, d.urn, d.attempts, d.sla, d.tracking_id, NULL, d.cause, d.at, d.id
FROM cqs_queue q JOIN cqs_undelivered u ON u.queue = q.queue JOIN cqs_dead d ON d.tenant = u.tenant AND d.id = u.dead
WHERE u.tenant = $1 AND u.urn = ANY($2) AND d.retried_by IS NULL
ORDER BY 1 DESC, 11";
