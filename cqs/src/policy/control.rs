//! What control actions do to an operation: where it stands, what may be done then, what ends by itself, what its limits
//! leave room for.
//!
//! A stopped operation is stopped for every reason that holds, and each ends on its own: a person's pause, the system's
//! hold, the wait for approval. `resume` ends the first two.

use domain::{ErrorCode, OperatorSubject, Refusal, Timestamp};

use crate::model::{
    Act, Action, ActionKind, ApprovalState, Control, Counts, Hold, Limited, Limits, Pause, State, StopFrom, StopWhen,
};

/// How far ahead an end may be set, in milliseconds (30 days, as far as an SLA): a slip in a year shall not stop work for
/// ever while it looks temporary.
const UNTIL_MAX_MS: i64 = domain::SLA_MAX_AHEAD_MS;
/// A throttled lane is leased in portions of this part of a second's worth, so that a fast one is not leased label by
/// label and a slow one not in one gulp.
const PORTIONS_PER_S: i64 = 4;

/// Where an operation stands: by its controls and its open and failed rows, labels and parents together.
pub(crate) fn state(control: &Control, total: &Counts) -> State {
    if control.cancelled.is_some() {
        return if total.leased > 0 { State::Cancelling } else { State::Cancelled };
    }
    if total.open() == 0 {
        return if total.failed > 0 { State::FinishedWithFailures } else { State::Succeeded };
    }
    if control.awaits_approval() {
        State::AwaitingApproval
    } else if control.held.is_some() {
        State::Held
    } else if control.paused.is_some() {
        State::Paused
    } else {
        State::Running
    }
}

/// What a person may do then and would change something by.
pub(crate) fn allowed(state: State) -> &'static [ActionKind] {
    use ActionKind::{Approve, Cancel, Decline, Pause, Resume, SetLimits};
    match state {
        State::AwaitingApproval => &[Cancel, SetLimits, Approve, Decline],
        State::Running => &[Pause, Cancel, SetLimits],
        State::Paused | State::Held => &[Pause, Resume, Cancel, SetLimits],
        State::Cancelling | State::Cancelled | State::Succeeded | State::FinishedWithFailures => &[],
    }
}

/// What an action meets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    /// Where the operation stands.
    pub(crate) state: State,
    /// Who asked for the operation.
    pub(crate) requester: Option<&'a OperatorSubject>,
    /// Its label counts per queue now.
    pub(crate) counts: &'a [StopFrom],
}

/// Carries out an action of a person; whether it changed anything. An action that finds its work done changes nothing and
/// is not refused; one that cannot be done any more, or not yet, is.
pub(crate) fn apply(
    control: &mut Control,
    action: &Action,
    (act, standing): (Act, Standing<'_>),
) -> Result<bool, Refusal> {
    let before = control.clone();
    match standing.state {
        State::Succeeded | State::FinishedWithFailures => return Err(wrong_state(action, standing.state)),
        State::Cancelling | State::Cancelled => {
            let declined = control.approval.as_ref().is_some_and(|approval| approval.state == ApprovalState::Declined);
            return match action {
                Action::Cancel => Ok(false),
                Action::Decline if declined => Ok(false),
                _ => Err(wrong_state(action, standing.state)),
            };
        }
        State::AwaitingApproval | State::Running | State::Paused | State::Held => {}
    }
    match action {
        Action::Pause { .. } | Action::Resume if standing.state == State::AwaitingApproval => {
            return Err(wrong_state(action, standing.state));
        }
        Action::Pause { until } => {
            ahead("pause.until", *until, act.at)?;
            let pause = Pause { act, until: *until };
            if !control.paused.as_ref().is_some_and(|standing| same_pause(standing, &pause)) {
                control.paused = Some(pause);
            }
        }
        Action::Resume => {
            control.paused = None;
            if control.held.take().is_some() {
                // The person has looked: what failed before shall not stop it again at the next failure.
                control.stop_from = standing.counts.to_vec();
            }
        }
        Action::Cancel => control.cancelled = Some(act),
        Action::SetLimits { throttle_per_s, max_in_flight, until } => {
            ahead("set_limits.until", *until, act.at)?;
            control.limits = Limits {
                throttle_per_s: throttle_per_s.of(control.limits.throttle_per_s),
                max_in_flight: max_in_flight.of(control.limits.max_in_flight),
            };
            if control.limits != before.limits || control.limited.as_ref().and_then(|limited| limited.until) != *until {
                control.limited = Some(Limited { act, until: *until });
            }
        }
        Action::Approve { .. } | Action::Decline => decide(control, action, (act, standing))?,
    }
    Ok(*control != before)
}

fn decide(control: &mut Control, action: &Action, (act, standing): (Act, Standing<'_>)) -> Result<(), Refusal> {
    let Some(approval) = &mut control.approval else {
        return Err(Refusal::new(ErrorCode::FailedPrecondition, "the operation needs no approval").at("action"));
    };
    match (approval.state, action) {
        (ApprovalState::Awaiting, Action::Approve { break_glass }) => {
            if !break_glass && act.by.is_some() && act.by.as_ref() == standing.requester {
                let message = "whoever asked for the operation may not approve it";
                return Err(Refusal::new(ErrorCode::PermissionDenied, message).at("operator_subject"));
            }
            approval.state = ApprovalState::Approved;
            approval.decided = Some(act);
        }
        (ApprovalState::Awaiting, _) => {
            approval.state = ApprovalState::Declined;
            approval.decided = Some(act.clone());
            control.cancelled = Some(Act { reason: format!("declined: {}", act.reason), ..act });
        }
        // Twice the same decision.
        (ApprovalState::Approved, Action::Approve { .. }) => {}
        (ApprovalState::Approved | ApprovalState::Declined | ApprovalState::Expired, _) => {
            return Err(wrong_state(action, standing.state));
        }
    }
    Ok(())
}

/// What ended by itself by `now`, one sentence each; none: nothing.
pub(crate) fn ended(control: &mut Control, now: Timestamp) -> Vec<(&'static str, String)> {
    let past = |until: Option<Timestamp>| until.is_some_and(|until| until <= now);
    let mut told = Vec::new();
    if control.cancelled.is_some() {
        return told;
    }
    if control.paused.as_ref().is_some_and(|pause| past(pause.until))
        && let Some(pause) = control.paused.take()
    {
        told.push(("pause ended", format!("the pause of {} ended as it was set to", pause.act.at)));
    }
    if control.limited.as_ref().is_some_and(|limited| past(limited.until)) {
        control.limited = None;
        control.limits = control.terms.limits;
        told.push(("limits ended", format!("limits are those of the request again: {}", limits_text(control.limits))));
    }
    if control.awaits_approval()
        && let Some(approval) = &mut control.approval
        && approval.expires_at <= now
    {
        approval.state = ApprovalState::Expired;
        let reason = format!("nobody approved it by {}", approval.expires_at);
        control.cancelled = Some(Act { at: now, by: None, reason: reason.clone() });
        told.push(("approval expired", reason));
    }
    told
}

/// Whether the failures of a queue are over the operation's budget, measured from its last resume: the cause then.
pub(crate) fn over_budget(stop_when: StopWhen, from: &[StopFrom], now: &[StopFrom]) -> Option<(i64, String)> {
    now.iter().find_map(|counts| {
        let base = from.iter().find(|base| base.queue == counts.queue);
        let failed = counts.failed - base.map_or(0, |base| base.failed);
        let sample = counts.done + counts.failed - base.map_or(0, |base| base.done + base.failed);
        let over = sample >= stop_when.min_sample
            && failed.saturating_mul(100) > sample.saturating_mul(stop_when.failure_ratio_percent);
        let cause = || {
            let since = if base.is_some() { " since it was resumed" } else { "" };
            format!("{failed} of {sample} labels failed{since}, over {} %", stop_when.failure_ratio_percent)
        };
        over.then(|| (counts.queue, cause()))
    })
}

/// The hold that follows.
pub(crate) fn hold(control: &mut Control, cause: String, now: Timestamp) {
    control.held = Some(Hold { at: now, cause });
}

/// How many labels the limits leave room for in one lease; none: any number.
pub(crate) fn room(limits: Limits, leased_labels: i64) -> Option<i64> {
    let portion = limits.throttle_per_s.map(|rate| (rate / PORTIONS_PER_S).max(1));
    let free = limits.max_in_flight.map(|most| (most - leased_labels).max(0));
    match (portion, free) {
        (Some(portion), Some(free)) => Some(portion.min(free)),
        (portion, free) => portion.or(free),
    }
}

/// For how long nothing more is leased after `labels` at that rate, in milliseconds, rounded up: over any time the rate is
/// not exceeded by more than one portion.
pub(crate) fn closed_ms(labels: i64, per_s: i64) -> i64 {
    let per_s = per_s.max(1);
    labels.saturating_mul(1_000).saturating_add(per_s - 1) / per_s
}

/// Limits in words.
pub(crate) fn limits_text(limits: Limits) -> String {
    let text = |limit: Option<i64>, unit: &str| {
        limit.map_or_else(|| format!("no limit {unit}"), |limit| format!("{limit} {unit}"))
    };
    format!("{}, {}", text(limits.throttle_per_s, "labels/s"), text(limits.max_in_flight, "in flight"))
}

fn same_pause(one: &Pause, other: &Pause) -> bool {
    (&one.act.by, &one.act.reason, one.until) == (&other.act.by, &other.act.reason, other.until)
}

/// Refuses an end that lies behind, or further ahead than ends may.
pub(crate) fn ahead(field: &str, until: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    match until {
        Some(until) if until <= now || until > now.plus_ms(UNTIL_MAX_MS) => {
            Err(Refusal::field(field, "must lie ahead, by at most 30 days"))
        }
        _ => Ok(()),
    }
}

fn wrong_state(action: &Action, state: State) -> Refusal {
    let allowed: Vec<&str> = allowed(state).iter().map(|kind| kind.as_str()).collect();
    let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
    let message = format!(
        "the operation is {}: {} is not possible then; allowed: {allowed}",
        state.as_str(),
        action.kind().as_str()
    );
    Refusal::new(ErrorCode::FailedPrecondition, message).at("action")
}
