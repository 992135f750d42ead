//! Raising and lowering the marks of heads and places; what they are for, and when either happens, stands in [`super::heads`].

use domain::{LaneKind, TenantId};

use super::{
    PostgresUnit,
    arrays::queue_int,
    heads::{Candidate, Mark, Marks, read_candidate, read_spot},
    locks::Lock,
};
use crate::{
    StoreError,
    columns::{Columns, limit_int, store_text},
    model::{HeadKey, RowKind},
};

/// Places of a kind in a queue, and heads of a place, whose marks one round of upkeep looks at: the front, where claims are.
const RAISED: usize = 16;

/// SLA and id of a head's mark for labels, then of that for parents.
type StoredMarks = (Option<i64>, Option<i64>, Option<i64>, Option<i64>);

impl PostgresUnit<'_> {
    /// Raises the marks of a head to its first rows, unless somebody is arriving there. Whether it did.
    pub(super) async fn raise(&mut self, tenant: &TenantId, key: &HeadKey) -> Result<bool, StoreError> {
        if !self.try_lock(Lock::Arrivals(key.queue, key.lane)).await? {
            return Ok(false);
        }
        // Statements of their own: they see whatever was committed before the lock was had, and nobody lowers marks meanwhile.
        let marks: Option<StoredMarks> = sqlx::query_as(MARKS)
            .bind(tenant.as_str())
            .bind(key.lane)
            .bind(queue_int(key.queue))
            .bind(store_text(key.store.as_ref()))
            .fetch_optional(&mut *self.conn)
            .await?;
        let Some((label_sla, label_id, parent_sla, parent_id)) = marks else { return Ok(true) };
        sqlx::query(RAISE)
            .bind(tenant.as_str())
            .bind(key.lane)
            .bind(queue_int(key.queue))
            .bind(store_text(key.store.as_ref()))
            .bind(label_sla)
            .bind(label_id)
            .bind(parent_sla)
            .bind(parent_id)
            .execute(&mut *self.conn)
            .await?;
        sqlx::query(FORGET)
            .bind(tenant.as_str())
            .bind(key.lane)
            .bind(queue_int(key.queue))
            .bind(store_text(key.store.as_ref()))
            .execute(&mut *self.conn)
            .await?;
        Ok(true)
    }

    /// Raises the marks of a head after this process has claimed many rows there: a look walks over what was claimed since.
    pub(super) async fn advance(&mut self, key: &HeadKey) -> Result<(), StoreError> {
        if self.queues.advances.is_far(key) {
            let tenant = self.tenant_of_stored(key.lane).await?;
            if self.raise(&tenant, key).await? {
                self.queues.advances.raised(key);
            }
        }
        Ok(())
    }

    /// Raises the mark of a place to the lowest of its heads, unless somebody is arriving there; forgets an empty one.
    pub(super) async fn raise_place(&mut self, tenant: &TenantId, (queue, lane): (i64, i64)) -> Result<(), StoreError> {
        if !self.try_lock(Lock::Arrivals(queue, lane)).await? {
            return Ok(());
        }
        for statement in [RAISE_PLACE, FORGET_PLACE] {
            sqlx::query(statement)
                .bind(tenant.as_str())
                .bind(lane)
                .bind(queue_int(queue))
                .execute(&mut *self.conn)
                .await?;
        }
        Ok(())
    }

    /// Raises marks at the front of the queues, where claims are.
    pub(super) async fn raise_some(&mut self) -> Result<(), StoreError> {
        let rows = sqlx::query(
            "SELECT p.queue, p.tenant, p.lane, p.kind, p.first_sla FROM cqs_queue q
             CROSS JOIN (VALUES ('ordinary'), ('operation'), ('split')) AS k (kind)
             CROSS JOIN LATERAL (
                SELECT * FROM cqs_place c
                WHERE c.queue = q.queue AND c.kind = k.kind AND c.first_sla IS NOT NULL AND NOT c.closed
                    AND c.closed_until IS NULL
                ORDER BY c.first_sla, c.lane LIMIT $1) AS p",
        )
        .bind(limit_int(RAISED))
        .fetch_all(&mut *self.conn)
        .await?;
        for row in &rows {
            let queue = Columns { table: "cqs_place", row, key: "lane" }.queue("queue")?;
            let spot = read_spot(queue, row)?;
            let heads = sqlx::query(
                "SELECT tenant, lane, store, claim_sla, label_sla, label_id, parent_sla, parent_id FROM cqs_head
                 WHERE tenant = $1 AND lane = $2 AND queue = $3 AND claim_sla IS NOT NULL
                 ORDER BY claim_sla, store LIMIT $4",
            )
            .bind(spot.tenant.as_str())
            .bind(spot.lane)
            .bind(queue_int(queue))
            .bind(limit_int(RAISED))
            .fetch_all(&mut *self.conn)
            .await?;
            let mut raised = heads.is_empty();
            for head in &heads {
                let at = read_candidate(queue, head)?;
                if self.is_low(&at).await? {
                    raised |= self.raise(&at.tenant, &at.key).await?;
                }
            }
            if raised {
                self.raise_place(&spot.tenant, (queue, spot.lane)).await?;
            }
        }
        Ok(())
    }

    /// Whether the first rows of a head lie after its marks, as far as can be seen without a lock.
    async fn is_low(&mut self, at: &Candidate) -> Result<bool, StoreError> {
        for (kind, mark) in [(RowKind::Label, at.marks.labels), (RowKind::Parent, at.marks.parents)] {
            let Some(mark) = mark else { continue };
            let first: Option<(i64, i64)> = sqlx::query_as(
                "SELECT sla, id FROM cqs_waiting
                 WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4 AND is_parent = $5 AND due_at IS NULL
                    AND (sla, id) >= ($6, $7)
                 ORDER BY sla, id LIMIT 1",
            )
            .bind(at.tenant.as_str())
            .bind(at.key.lane)
            .bind(queue_int(at.key.queue))
            .bind(store_text(at.key.store.as_ref()))
            .bind(kind == RowKind::Parent)
            .bind(mark.sla)
            .bind(mark.id)
            .fetch_optional(&mut *self.conn)
            .await?;
            if first.is_none_or(|(sla, id)| Mark { sla, id } > mark) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the head of rows that this unit made ready, and its place, where they are missing or their marks too high.
    pub(super) async fn lower(&mut self, key: &HeadKey, kind: LaneKind, marks: Marks) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(key.lane).await?;
        let Some(first) = marks.labels.into_iter().chain(marks.parents).map(|mark| mark.sla).min() else {
            return Ok(());
        };
        let (head_low, place_low): (bool, bool) = sqlx::query_as(
            "SELECT EXISTS (
                SELECT 1 FROM cqs_head
                WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4
                    AND ($5::bigint IS NULL OR (label_sla, label_id) <= ($5, $6::bigint))
                    AND ($7::bigint IS NULL OR (parent_sla, parent_id) <= ($7, $8::bigint))),
                EXISTS (
                SELECT 1 FROM cqs_place WHERE tenant = $1 AND lane = $2 AND queue = $3 AND first_sla <= $9)",
        )
        .bind(tenant.as_str())
        .bind(key.lane)
        .bind(queue_int(key.queue))
        .bind(store_text(key.store.as_ref()))
        .bind(marks.labels.map(|mark| mark.sla))
        .bind(marks.labels.map(|mark| mark.id))
        .bind(marks.parents.map(|mark| mark.sla))
        .bind(marks.parents.map(|mark| mark.id))
        .bind(first)
        .fetch_one(&mut *self.conn)
        .await?;
        if !head_low {
            sqlx::query(LOWER)
                .bind(tenant.as_str())
                .bind(key.lane)
                .bind(queue_int(key.queue))
                .bind(store_text(key.store.as_ref()))
                .bind(kind != LaneKind::Ordinary)
                .bind(marks.labels.map(|mark| mark.sla))
                .bind(marks.labels.map(|mark| mark.id))
                .bind(marks.parents.map(|mark| mark.sla))
                .bind(marks.parents.map(|mark| mark.id))
                .execute(&mut *self.conn)
                .await?;
        }
        if !place_low {
            sqlx::query(LOWER_PLACE)
                .bind(tenant.as_str())
                .bind(key.lane)
                .bind(queue_int(key.queue))
                .bind(kind.as_str())
                .bind(first)
                .execute(&mut *self.conn)
                .await?;
        }
        Ok(())
    }
}

const MARKS: &str = "
SELECT label_sla, label_id, parent_sla, parent_id FROM cqs_head
WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4";

/// The first ready row of each kind that can be seen, from the mark on: locked by others or not, it may come to be claimable.
/// The marks are bound, so that the look begins there; joined, they would only be compared with each row.
const RAISE: &str = "
UPDATE cqs_head h SET label_sla = l.sla, label_id = l.id, parent_sla = p.sla, parent_id = p.id
FROM (SELECT 1) AS one
LEFT JOIN LATERAL (
    SELECT w.sla, w.id FROM cqs_waiting w
    WHERE w.tenant = $1 AND w.lane = $2 AND w.queue = $3 AND w.store = $4 AND NOT w.is_parent AND w.due_at IS NULL
        AND (w.sla, w.id) >= ($5::bigint, $6::bigint)
    ORDER BY w.sla, w.id LIMIT 1) AS l ON true
LEFT JOIN LATERAL (
    SELECT w.sla, w.id FROM cqs_waiting w
    WHERE w.tenant = $1 AND w.lane = $2 AND w.queue = $3 AND w.store = $4 AND w.is_parent AND w.due_at IS NULL
        AND (w.sla, w.id) >= ($7::bigint, $8::bigint)
    ORDER BY w.sla, w.id LIMIT 1) AS p ON true
WHERE h.tenant = $1 AND h.lane = $2 AND h.queue = $3 AND h.store = $4
    AND (h.label_sla, h.label_id, h.parent_sla, h.parent_id) IS DISTINCT FROM (l.sla, l.id, p.sla, p.id)";

/// A head under which nothing is ready; the next arrival makes it anew.
const FORGET: &str = "
DELETE FROM cqs_head
WHERE tenant = $1 AND lane = $2 AND queue = $3 AND store = $4 AND label_sla IS NULL AND parent_sla IS NULL";

/// Two that lower the same mark meet at its row; the lower one stays.
const LOWER: &str = "
INSERT INTO cqs_head AS h (tenant, lane, queue, store, bulk, label_sla, label_id, parent_sla, parent_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (tenant, lane, queue, store) DO UPDATE SET
    label_sla = CASE WHEN (h.label_sla, h.label_id) <= (excluded.label_sla, excluded.label_id) OR excluded.label_sla IS NULL
        THEN h.label_sla ELSE excluded.label_sla END,
    label_id = CASE WHEN (h.label_sla, h.label_id) <= (excluded.label_sla, excluded.label_id) OR excluded.label_sla IS NULL
        THEN h.label_id ELSE excluded.label_id END,
    parent_sla = CASE WHEN (h.parent_sla, h.parent_id) <= (excluded.parent_sla, excluded.parent_id) OR excluded.parent_sla IS NULL
        THEN h.parent_sla ELSE excluded.parent_sla END,
    parent_id = CASE WHEN (h.parent_sla, h.parent_id) <= (excluded.parent_sla, excluded.parent_id) OR excluded.parent_sla IS NULL
        THEN h.parent_id ELSE excluded.parent_id END";

const RAISE_PLACE: &str = "
UPDATE cqs_place SET first_sla = (
    SELECT claim_sla FROM cqs_head h
    WHERE h.tenant = $1 AND h.lane = $2 AND h.queue = $3 AND h.claim_sla IS NOT NULL ORDER BY h.claim_sla LIMIT 1)
WHERE tenant = $1 AND lane = $2 AND queue = $3";

const FORGET_PLACE: &str = "
DELETE FROM cqs_place
WHERE tenant = $1 AND lane = $2 AND queue = $3 AND first_sla IS NULL AND closed_until IS NULL AND waiting_since IS NULL";

const LOWER_PLACE: &str = "
INSERT INTO cqs_place AS p (tenant, lane, queue, kind, first_sla, closed)
VALUES ($1, $2, $3, $4, $5, coalesce((SELECT closed FROM cqs_lane WHERE tenant = $1 AND lane = $2), false))
ON CONFLICT (tenant, lane, queue) DO UPDATE SET first_sla = least(p.first_sla, excluded.first_sla)";
