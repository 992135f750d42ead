//! Controls of operations, and the brake.

use domain::{OperatorSubject, Timestamp};
use sqlx::postgres::PgRow;

use super::{
    PostgresUnit,
    columns::{Columns, limit_int},
};
use crate::{
    StoreError,
    model::{Act, Approval, ApprovalState, Control, Hold, Limited, Limits, Pause, StopFrom, StopWhen, Terms},
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
        put_row(self, lane, control).await?;
        let tenant = self.tenant_of_stored(lane).await?;
        let gate = control.gate();
        sqlx::query(
            "UPDATE cqs_lane SET closed = $3, throttle_per_s = $4, max_in_flight = $5, stops = $6, paused_at = $7,
                clearing = clearing OR (cancelled_at IS NULL AND $8 IS NOT NULL), cancelled_at = $8
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
        let act = |row| {
            let columns = Columns { table: "cqs_brake", row, key: "one" };
            Ok(Act { at: columns.time("at")?, by: columns.parse_if("by")?, reason: columns.get("reason")? })
        };
        found.as_ref().map(act).transpose()
    }

    async fn brake_put(&mut self, brake: Option<&Act>) -> Result<(), StoreError> {
        if brake.is_none() {
            sqlx::query("DELETE FROM cqs_brake").execute(&mut *self.conn).await?;
        }
        if let Some(act) = brake {
            sqlx::query(
                "INSERT INTO cqs_brake (one, at, by, reason) VALUES (1, $1, $2, $3)
                 ON CONFLICT (one) DO UPDATE SET at = excluded.at, by = excluded.by, reason = excluded.reason",
            )
            .bind(act.at.as_ms())
            .bind(subject_text(act.by.as_ref()))
            .bind(&act.reason)
            .execute(&mut *self.conn)
            .await?;
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

async fn put_row(unit: &mut PostgresUnit<'_>, lane: i64, control: &Control) -> Result<(), StoreError> {
    let ms = |at: Option<Timestamp>| at.map(Timestamp::as_ms);
    let stop_when = control.terms.stop_when;
    let stop_from: Vec<_> = control.stop_from.iter().map(|from| (from.queue, from.done, from.failed)).collect();
    let paused = ActColumns::of(control.paused.as_ref().map(|pause| &pause.act));
    let cancelled = ActColumns::of(control.cancelled.as_ref());
    let limited = ActColumns::of(control.limited.as_ref().map(|limited| &limited.act));
    let approval = control.approval.as_ref();
    let decided = ActColumns::of(approval.and_then(|approval| approval.decided.as_ref()));
    let tenant = unit.tenant_of_stored(lane).await?;
    sqlx::query(PUT)
        .bind(tenant.as_str())
        .bind(lane)
        .bind(control.revision)
        .bind(control.terms.limits.throttle_per_s)
        .bind(control.terms.limits.max_in_flight)
        .bind(stop_when.map(|stop_when| stop_when.failure_ratio_percent))
        .bind(stop_when.map(|stop_when| stop_when.min_sample))
        .bind(&control.terms.plan_id)
        .bind(paused.at)
        .bind(paused.by)
        .bind(paused.reason)
        .bind(ms(control.paused.as_ref().and_then(|pause| pause.until)))
        .bind(ms(control.held.as_ref().map(|hold| hold.at)))
        .bind(control.held.as_ref().map_or("", |hold| hold.cause.as_str()))
        .bind(serde_json::to_string(&stop_from)?)
        .bind(cancelled.at)
        .bind(cancelled.by)
        .bind(cancelled.reason)
        .bind(control.limits.throttle_per_s)
        .bind(control.limits.max_in_flight)
        .bind(limited.at)
        .bind(limited.by)
        .bind(limited.reason)
        .bind(ms(control.limited.as_ref().and_then(|limited| limited.until)))
        .bind(approval.map_or("none", |approval| approval.state.as_str()))
        .bind(approval.map_or(0, |approval| approval.label_count))
        .bind(ms(approval.map(|approval| approval.expires_at)))
        .bind(decided.at)
        .bind(decided.by)
        .bind(decided.reason)
        .bind(ms(control.ends_at()))
        .execute(&mut *unit.conn)
        .await?;
    Ok(())
}

/// Who did something, as three columns.
struct ActColumns<'a> {
    at: Option<i64>,
    by: &'a str,
    reason: &'a str,
}

impl<'a> ActColumns<'a> {
    fn of(act: Option<&'a Act>) -> Self {
        Self {
            at: act.map(|act| act.at.as_ms()),
            by: subject_text(act.and_then(|act| act.by.as_ref())),
            reason: act.map_or("", |act| act.reason.as_str()),
        }
    }
}

fn subject_text(subject: Option<&OperatorSubject>) -> &str {
    subject.map_or("", |subject| subject.as_str())
}

fn read_control(row: &PgRow) -> Result<(i64, Control), StoreError> {
    let columns = Columns { table: "cqs_control", row, key: "lane" };
    let act = |at: &'static str, by: &'static str, reason: &'static str| {
        let Some(at) = columns.time_if(at)? else { return Ok(None) };
        Ok::<_, StoreError>(Some(Act { at, by: columns.parse_if(by)?, reason: columns.get(reason)? }))
    };
    let paused_until = columns.time_if("paused_until")?;
    let limited_until = columns.time_if("limited_until")?;
    let held_cause: String = columns.get("held_cause")?;
    let stop_when = match (columns.get("stop_percent")?, columns.get("stop_sample")?) {
        (Some(failure_ratio_percent), Some(min_sample)) => Some(StopWhen { failure_ratio_percent, min_sample }),
        _ => None,
    };
    let stop_from: Vec<(i64, i64, i64)> =
        serde_json::from_str(columns.get("stop_from")?).map_err(|_| columns.broken("stop_from"))?;
    let stop_from = stop_from.into_iter().map(|(queue, done, failed)| StopFrom { queue, done, failed }).collect();
    let control = Control {
        revision: columns.get("revision")?,
        terms: Terms {
            limits: Limits {
                throttle_per_s: columns.get("asked_throttle")?,
                max_in_flight: columns.get("asked_in_flight")?,
            },
            stop_when,
            plan_id: columns.get("plan_id")?,
        },
        paused: act("paused_at", "paused_by", "pause_reason")?.map(|act| Pause { act, until: paused_until }),
        held: columns.time_if("held_at")?.map(|at| Hold { at, cause: held_cause }),
        stop_from,
        cancelled: act("cancelled_at", "cancelled_by", "cancel_reason")?,
        limits: Limits { throttle_per_s: columns.get("throttle_per_s")?, max_in_flight: columns.get("max_in_flight")? },
        limited: act("limited_at", "limited_by", "limit_reason")?.map(|act| Limited { act, until: limited_until }),
        approval: read_approval(&columns, act("decided_at", "decided_by", "decide_reason")?)?,
    };
    Ok((columns.get("lane")?, control))
}

fn read_approval(columns: &Columns<'_>, decided: Option<Act>) -> Result<Option<Approval>, StoreError> {
    let state = match columns.get("approval")? {
        "none" => return Ok(None),
        "awaiting" => ApprovalState::Awaiting,
        "approved" => ApprovalState::Approved,
        "declined" => ApprovalState::Declined,
        "expired" => ApprovalState::Expired,
        _ => return Err(columns.broken("approval")),
    };
    let expires_at = columns.time_if("approval_expires_at")?.ok_or_else(|| columns.broken("approval_expires_at"))?;
    Ok(Some(Approval { state, label_count: columns.get("approval_labels")?, expires_at, decided }))
}
