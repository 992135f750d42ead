//! Controls of operations, and the brake.

use db::row::{Binds, ResultRow};

use super::{Columns, ms, subject_text};
use crate::{
    StoreError,
    model::{Act, Approval, ApprovalState, Control, Hold, Limited, Limits, Pause, StopFrom, StopWhen, Terms},
};

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

    fn bind<Q: Binds>(self, query: Q) -> Q {
        query.with(self.at).with(self.by).with(self.reason)
    }
}

/// The columns of `cqs_control` after `lane`, in their order.
pub(crate) fn bind_control<Q: Binds>(query: Q, control: &Control) -> Result<Q, StoreError> {
    let stop_when = control.terms.stop_when;
    let stop_from: Vec<_> = control.stop_from.iter().map(|from| (from.queue, from.done, from.failed)).collect();
    let approval = control.approval.as_ref();
    let query = query
        .with(control.revision)
        .with(control.terms.limits.throttle_per_s)
        .with(control.terms.limits.max_in_flight)
        .with(stop_when.map(|stop_when| stop_when.failure_ratio_percent))
        .with(stop_when.map(|stop_when| stop_when.min_sample))
        .with(control.terms.plan_id.as_str());
    let query = ActColumns::of(control.paused.as_ref().map(|pause| &pause.act))
        .bind(query)
        .with(ms(control.paused.as_ref().and_then(|pause| pause.until)))
        .with(ms(control.held.as_ref().map(|hold| hold.at)))
        .with(control.held.as_ref().map_or("", |hold| hold.cause.as_str()))
        .with(serde_json::to_string(&stop_from)?);
    let query = ActColumns::of(control.cancelled.as_ref())
        .bind(query)
        .with(control.limits.throttle_per_s)
        .with(control.limits.max_in_flight);
    let query = ActColumns::of(control.limited.as_ref().map(|limited| &limited.act))
        .bind(query)
        .with(ms(control.limited.as_ref().and_then(|limited| limited.until)))
        .with(approval.map_or("none", |approval| approval.state.as_str()))
        .with(approval.map_or(0, |approval| approval.label_count))
        .with(ms(approval.map(|approval| approval.expires_at)));
    Ok(ActColumns::of(approval.and_then(|approval| approval.decided.as_ref())).bind(query).with(ms(control.ends_at())))
}

/// A row of `cqs_control`, with its lane.
pub(crate) fn read_control<R: ResultRow>(row: &R) -> Result<(i64, Control), StoreError> {
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

fn read_approval<R: ResultRow>(columns: &Columns<'_, R>, decided: Option<Act>) -> Result<Option<Approval>, StoreError> {
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

/// The columns `at`, `by` and `reason` of `cqs_brake`.
pub(crate) fn bind_brake<Q: Binds>(query: Q, act: &Act) -> Q {
    ActColumns::of(Some(act)).bind(query)
}

/// The row of `cqs_brake`.
pub(crate) fn read_brake<R: ResultRow>(row: &R) -> Result<Act, StoreError> {
    let columns = Columns { table: "cqs_brake", row, key: "one" };
    Ok(Act { at: columns.time("at")?, by: columns.parse_if("by")?, reason: columns.get("reason")? })
}
