//! Controls of operations, and the brake.

use domain::Timestamp;

use super::{SqliteUnit, json::json_text, lanes::PLACES_GATE};
use crate::{
    StoreError,
    columns::{bind_brake, bind_control, limit_int, read_brake, read_control},
    model::{Act, Control},
    unit::Controls,
};

impl Controls for SqliteUnit<'_> {
    async fn control_find(&mut self, lanes: &[i64]) -> Result<Vec<(i64, Control)>, StoreError> {
        let rows = sqlx::query(FIND).bind(json_text(&lanes)?).fetch_all(&mut *self.conn).await?;
        rows.iter().map(read_control).collect()
    }

    async fn control_put(&mut self, lane: i64, control: &Control) -> Result<(), StoreError> {
        bind_control(sqlx::query(PUT).bind(lane), control)?.execute(&mut *self.conn).await?;
        let gate = control.gate();
        sqlx::query(
            "UPDATE cqs_lane SET closed = ?2, throttle_per_s = ?3, max_in_flight = ?4, stops = ?5, paused_at = ?6,
                clearing = iif(cancelled_at IS NULL AND ?7 IS NOT NULL, 1, clearing), cancelled_at = ?7
             WHERE lane = ?1",
        )
        .bind(lane)
        .bind(gate.closed)
        .bind(gate.limits.throttle_per_s)
        .bind(gate.limits.max_in_flight)
        .bind(gate.stops)
        .bind(control.paused.as_ref().map(|pause| pause.act.at.as_ms()))
        .bind(control.cancelled.as_ref().map(|act| act.at.as_ms()))
        .execute(&mut *self.conn)
        .await?;
        sqlx::query(PLACES_GATE).bind(lane).execute(&mut *self.conn).await?;
        Ok(())
    }

    async fn control_ending(&mut self, now: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT lane FROM cqs_control WHERE ends_at IS NOT NULL AND ends_at <= ?1 ORDER BY ends_at, lane LIMIT ?2",
        )
        .bind(now.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?)
    }

    async fn lane_clearing(&mut self) -> Result<Option<i64>, StoreError> {
        Ok(sqlx::query_scalar("SELECT lane FROM cqs_lane WHERE clearing = 1 ORDER BY lane LIMIT 1")
            .fetch_optional(&mut *self.conn)
            .await?)
    }

    async fn lane_cleared(&mut self, lane: i64) -> Result<(), StoreError> {
        sqlx::query("UPDATE cqs_lane SET clearing = 0 WHERE lane = ?1").bind(lane).execute(&mut *self.conn).await?;
        Ok(())
    }

    async fn brake_find(&mut self) -> Result<Option<Act>, StoreError> {
        let found = sqlx::query("SELECT one, at, by, reason FROM cqs_brake").fetch_optional(&mut *self.conn).await?;
        found.as_ref().map(read_brake).transpose()
    }

    async fn brake_put(&mut self, brake: Option<&Act>) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM cqs_brake").execute(&mut *self.conn).await?;
        if let Some(act) = brake {
            let put = sqlx::query("INSERT INTO cqs_brake (one, at, by, reason) VALUES (1, ?1, ?2, ?3)");
            bind_brake(put, act).execute(&mut *self.conn).await?;
        }
        Ok(())
    }
}

const FIND: &str = "
SELECT lane, revision, asked_throttle, asked_in_flight, stop_percent, stop_sample, plan_id, paused_at, paused_by,
    pause_reason, paused_until, held_at, held_cause, stop_from, cancelled_at, cancelled_by, cancel_reason, throttle_per_s,
    max_in_flight, limited_at, limited_by, limit_reason, limited_until, approval, approval_labels, approval_expires_at,
    decided_at, decided_by, decide_reason
FROM cqs_control WHERE lane IN (SELECT value FROM jsonb_each(?1)) ORDER BY lane";

const PUT: &str = "
INSERT INTO cqs_control (lane, revision, asked_throttle, asked_in_flight, stop_percent, stop_sample, plan_id, paused_at,
    paused_by, pause_reason, paused_until, held_at, held_cause, stop_from, cancelled_at, cancelled_by, cancel_reason,
    throttle_per_s, max_in_flight, limited_at, limited_by, limit_reason, limited_until, approval, approval_labels,
    approval_expires_at, decided_at, decided_by, decide_reason, ends_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30)
ON CONFLICT (lane) DO UPDATE SET revision = excluded.revision, paused_at = excluded.paused_at,
    paused_by = excluded.paused_by, pause_reason = excluded.pause_reason, paused_until = excluded.paused_until,
    held_at = excluded.held_at, held_cause = excluded.held_cause, stop_from = excluded.stop_from,
    cancelled_at = excluded.cancelled_at, cancelled_by = excluded.cancelled_by, cancel_reason = excluded.cancel_reason,
    throttle_per_s = excluded.throttle_per_s, max_in_flight = excluded.max_in_flight, limited_at = excluded.limited_at,
    limited_by = excluded.limited_by, limit_reason = excluded.limit_reason, limited_until = excluded.limited_until,
    approval = excluded.approval, decided_at = excluded.decided_at, decided_by = excluded.decided_by,
    decide_reason = excluded.decide_reason, ends_at = excluded.ends_at";
