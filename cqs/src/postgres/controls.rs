//! Controls of operations, and the brake.

use domain::Timestamp;

use super::PostgresUnit;
use crate::{
    StoreError,
    columns::{bind_brake, bind_control, limit_int, read_brake, read_control},
    model::{Act, Control},
    unit::Controls,
};

impl Controls for PostgresUnit<'_> {
    async fn control_lock(&mut self, lane: i64) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query("SELECT 1 FROM cqs_lane WHERE tenant = $1 AND lane = $2 FOR UPDATE")
            .bind(tenant.as_str())
            .bind(lane)
            .execute(&mut *self.conn)
            .await?;
        // What was read before the lock was had may be over.
        self.lanes.remove(&lane);
        Ok(())
    }

    async fn control_find(&mut self, lanes: &[i64]) -> Result<Vec<(i64, Control)>, StoreError> {
        let mut found = Vec::new();
        for (tenant, lanes) in self.by_tenant(lanes).await? {
            let rows = sqlx::query(FIND).bind(tenant.as_str()).bind(lanes).fetch_all(&mut *self.conn).await?;
            for row in &rows {
                found.push(read_control(row)?);
            }
        }
        found.sort_unstable_by_key(|(lane, _)| *lane);
        Ok(found)
    }

    async fn control_put(&mut self, lane: i64, control: &Control) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let put = sqlx::query(PUT).bind(tenant.as_str()).bind(lane);
        bind_control(put, control)?.execute(&mut *self.conn).await?;
        let gate = control.gate();
        sqlx::query(
            "UPDATE cqs_lane SET closed = $3, throttle_per_s = $4, max_in_flight = $5, stops = $6, paused_at = $7,
                clearing = clearing OR (cancelled_at IS NULL AND $8::bigint IS NOT NULL), cancelled_at = $8
             WHERE tenant = $1 AND lane = $2",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .bind(gate.closed)
        .bind(gate.limits.throttle_per_s)
        .bind(gate.limits.max_in_flight)
        .bind(gate.stops)
        .bind(control.paused.as_ref().map(|pause| pause.act.at.as_ms()))
        .bind(control.cancelled.as_ref().map(|act| act.at.as_ms()))
        .execute(&mut *self.conn)
        .await?;
        sqlx::query("UPDATE cqs_place SET closed = $3, closed_until = NULL WHERE tenant = $1 AND lane = $2")
            .bind(tenant.as_str())
            .bind(lane)
            .bind(gate.closed)
            .execute(&mut *self.conn)
            .await?;
        if let Some(found) = self.lanes.get_mut(&lane) {
            found.gate = gate;
        }
        Ok(())
    }

    async fn control_ending(&mut self, now: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT lane FROM cqs_control WHERE ends_at IS NOT NULL AND ends_at <= $1 ORDER BY ends_at, lane LIMIT $2",
        )
        .bind(now.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?)
    }

    /// Locked, so that one process clears it at a time.
    async fn lane_clearing(&mut self) -> Result<Option<i64>, StoreError> {
        let clearing: Vec<(String, i64)> =
            sqlx::query_as("SELECT tenant, lane FROM cqs_lane WHERE clearing ORDER BY lane LIMIT $1")
                .bind(limit_int(CLEARING))
                .fetch_all(&mut *self.conn)
                .await?;
        for (tenant, lane) in clearing {
            let locked: Option<i64> = sqlx::query_scalar(
                "SELECT lane FROM cqs_lane WHERE tenant = $1 AND lane = $2 AND clearing FOR UPDATE SKIP LOCKED",
            )
            .bind(tenant)
            .bind(lane)
            .fetch_optional(&mut *self.conn)
            .await?;
            if locked.is_some() {
                return Ok(locked);
            }
        }
        Ok(None)
    }

    async fn lane_cleared(&mut self, lane: i64) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query("UPDATE cqs_lane SET clearing = false WHERE tenant = $1 AND lane = $2")
            .bind(tenant.as_str())
            .bind(lane)
            .execute(&mut *self.conn)
            .await?;
        Ok(())
    }

    async fn brake_find(&mut self) -> Result<Option<Act>, StoreError> {
        let found = sqlx::query("SELECT one, at, by, reason FROM cqs_brake").fetch_optional(&mut *self.conn).await?;
        found.as_ref().map(read_brake).transpose()
    }

    async fn brake_put(&mut self, brake: Option<&Act>) -> Result<(), StoreError> {
        if brake.is_none() {
            sqlx::query("DELETE FROM cqs_brake").execute(&mut *self.conn).await?;
        }
        if let Some(act) = brake {
            let put = sqlx::query(
                "INSERT INTO cqs_brake (one, at, by, reason) VALUES (1, $1, $2, $3)
                 ON CONFLICT (one) DO UPDATE SET at = excluded.at, by = excluded.by, reason = excluded.reason",
            );
            bind_brake(put, act).execute(&mut *self.conn).await?;
        }
        Ok(())
    }
}

/// Cancelled lanes looked at for one that nobody clears yet.
const CLEARING: usize = 16;

const FIND: &str = "
SELECT lane, revision, asked_throttle, asked_in_flight, stop_percent, stop_sample, plan_id, paused_at, paused_by,
    pause_reason, paused_until, held_at, held_cause, stop_from, cancelled_at, cancelled_by, cancel_reason, throttle_per_s,
    max_in_flight, limited_at, limited_by, limit_reason, limited_until, approval, approval_labels, approval_expires_at,
    decided_at, decided_by, decide_reason
FROM cqs_control WHERE tenant = $1 AND lane = ANY($2)";

const PUT: &str = "
INSERT INTO cqs_control (tenant, lane, revision, asked_throttle, asked_in_flight, stop_percent, stop_sample, plan_id, paused_at,
    paused_by, pause_reason, paused_until, held_at, held_cause, stop_from, cancelled_at, cancelled_by, cancel_reason,
    throttle_per_s, max_in_flight, limited_at, limited_by, limit_reason, limited_until, approval, approval_labels,
    approval_expires_at, decided_at, decided_by, decide_reason, ends_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
    $25, $26, $27, $28, $29, $30, $31)
ON CONFLICT (tenant, lane) DO UPDATE SET revision = excluded.revision, paused_at = excluded.paused_at,
    paused_by = excluded.paused_by, pause_reason = excluded.pause_reason, paused_until = excluded.paused_until,
    held_at = excluded.held_at, held_cause = excluded.held_cause, stop_from = excluded.stop_from,
    cancelled_at = excluded.cancelled_at, cancelled_by = excluded.cancelled_by, cancel_reason = excluded.cancel_reason,
    throttle_per_s = excluded.throttle_per_s, max_in_flight = excluded.max_in_flight, limited_at = excluded.limited_at,
    limited_by = excluded.limited_by, limit_reason = excluded.limit_reason, limited_until = excluded.limited_until,
    approval = excluded.approval, decided_at = excluded.decided_at, decided_by = excluded.decided_by,
    decide_reason = excluded.decide_reason, ends_at = excluded.ends_at";
