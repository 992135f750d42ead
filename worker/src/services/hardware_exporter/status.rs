//! What happens to a label's status: one function a step. Pure.
//!
//! Every step is kept with its time, its cause and the proof behind it, the last [`TRANSITIONS_MAX`] of them.

use domain::{Outcome, RecordId, Timestamp};
use proto::{
    evidence_from_wire,
    records::v1::{DeliveryState, Evidence, StoreEslStatus, Transition},
    timestamp_from_wire, timestamp_to_wire,
};

use crate::runtime::cause;

/// Steps a status keeps; the record's own bound.
const TRANSITIONS_MAX: usize = 8;
/// Bytes of a step's cause; the record's own bound.
const STEP_CAUSE_MAX_BYTES: usize = 300;
/// Bytes of a receipt; the record's own bound.
const RECEIPT_MAX_BYTES: usize = 200;

/// A step to note.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) state: DeliveryState,
    pub(super) at: Timestamp,
    pub(super) cause: &'a str,
    pub(super) evidence: Evidence,
}

impl<'a> Step<'a> {
    /// A step that needs no proof.
    pub(super) fn of(state: DeliveryState, at: Timestamp, cause: &'a str) -> Self {
        Self { state, at, cause, evidence: Evidence::Unspecified }
    }
}

/// The picture that goes out, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) digest: Vec<u8>,
    pub(super) hardware_address: String,
    pub(super) access_point: RecordId,
}

/// The status after `step`; everything else stays.
#[must_use]
pub(super) fn stepped(mut status: StoreEslStatus, step: Step<'_>) -> StoreEslStatus {
    status.state = step.state.into();
    let text = cut(step.cause, STEP_CAUSE_MAX_BYTES);
    // Said again is no step: an access point that stays away is one line.
    let repeated = status.transitions.last().is_some_and(|last| last.state() == step.state && last.cause == text);
    if !repeated {
        let surplus = (status.transitions.len() + 1).saturating_sub(TRANSITIONS_MAX);
        status.transitions.drain(..surplus);
        status.transitions.push(Transition {
            state: step.state.into(),
            at: Some(timestamp_to_wire(step.at)),
            cause: text,
            evidence: step.evidence.into(),
        });
    }
    status
}

/// The status while a picture goes out. `until`: when a call that carries it is over for sure.
pub(super) fn announced(
    before: &StoreEslStatus,
    outgoing: &Outgoing,
    now: Timestamp,
    until: Option<Timestamp>,
) -> StoreEslStatus {
    let again = before.sent_digest == outgoing.digest;
    // What was given up starts anew.
    let goes_on = again && before.state() != DeliveryState::Failed;
    let attempts = if goes_on { before.attempts.saturating_add(1) } else { 1 };
    let before = superseded(before.clone(), again, now);
    let status = StoreEslStatus {
        sent_digest: outgoing.digest.clone().into(),
        sent_hardware_address: outgoing.hardware_address.clone(),
        sent_accesspoint_id: outgoing.access_point.to_string(),
        sent_receipt: String::new(),
        sent_at: Some(timestamp_to_wire(now)),
        sent_until: until.map(timestamp_to_wire),
        attempts,
        losses: if again { before.losses } else { 0 },
        ..before
    };
    stepped(status, Step::of(DeliveryState::Sent, now, &format!("attempt {attempts}")))
}

/// Notes that a picture still on its way is replaced.
fn superseded(before: StoreEslStatus, again: bool, now: Timestamp) -> StoreEslStatus {
    let on_its_way = matches!(
        before.state(),
        DeliveryState::Accepted | DeliveryState::Queued | DeliveryState::Transferring | DeliveryState::Delivered
    );
    if again || !on_its_way {
        return before;
    }
    stepped(before, Step::of(DeliveryState::Superseded, now, "a newer picture replaces the one on its way"))
}

/// The driver proved that the picture on its way arrived.
pub(super) fn confirmed(sent: StoreEslStatus, evidence: Evidence, proof: &str, now: Timestamp) -> StoreEslStatus {
    let step = Step { state: DeliveryState::Confirmed, at: now, cause: proof, evidence };
    let arrived = StoreEslStatus {
        confirmed_digest: sent.sent_digest.clone(),
        confirmed_hardware_address: sent.sent_hardware_address.clone(),
        confirmed_at: Some(timestamp_to_wire(now)),
        evidence: evidence.into(),
        sent_digest: Vec::new().into(),
        sent_hardware_address: String::new(),
        sent_accesspoint_id: String::new(),
        sent_receipt: String::new(),
        sent_at: None,
        sent_until: None,
        attempts: 0,
        losses: 0,
        last_error: String::new(),
        ..sent
    };
    stepped(arrived, step)
}

/// The picture was seen on its way.
pub(super) fn underway(sent: StoreEslStatus, receipt: &str, step: Step<'_>) -> StoreEslStatus {
    let receipt = cut(receipt, RECEIPT_MAX_BYTES);
    stepped(StoreEslStatus { sent_receipt: receipt, sent_until: None, last_error: String::new(), ..sent }, step)
}

/// Hardware lost the picture on its way.
pub(super) fn lost(sent: StoreEslStatus, why: &str, now: Timestamp) -> StoreEslStatus {
    // What no access point ever took was not lost by it.
    let losses = sent.losses.saturating_add(u32::from(!sent.sent_receipt.is_empty()));
    let status = StoreEslStatus { sent_until: None, losses, last_error: cause(why.to_owned()), ..sent };
    stepped(status, Step::of(DeliveryState::Lost, now, why))
}

/// It did not go out now, or nobody knows; the state stays where it was.
pub(super) fn retried(sent: StoreEslStatus, why: &str, now: Timestamp) -> StoreEslStatus {
    let state = sent.state();
    let status = StoreEslStatus { sent_until: None, last_error: cause(why.to_owned()), ..sent };
    stepped(status, Step::of(state, now, why))
}

/// It will not arrive, as things are.
pub(super) fn failed(before: StoreEslStatus, why: &str, now: Timestamp) -> StoreEslStatus {
    let status = StoreEslStatus { sent_until: None, last_error: cause(why.to_owned()), ..before };
    stepped(status, Step::of(DeliveryState::Failed, now, why))
}

/// The access point does not answer. No attempt is counted.
pub(super) fn unreachable(before: StoreEslStatus, why: &str, now: Timestamp) -> StoreEslStatus {
    let status = StoreEslStatus { last_error: cause(why.to_owned()), ..before };
    stepped(status, Step::of(DeliveryState::Unreachable, now, why))
}

/// What is known to have arrived is withdrawn: hardware may have lost it. What is on its way may be lost as well, so it
/// does not count either; it stays named, so that the access point is told to drop it.
pub(super) fn withdrawn(before: StoreEslStatus, why: &str, now: Timestamp) -> StoreEslStatus {
    let status = StoreEslStatus {
        confirmed_digest: Vec::new().into(),
        confirmed_hardware_address: String::new(),
        confirmed_at: None,
        evidence: Evidence::Unspecified.into(),
        attempts: 0,
        losses: 0,
        last_error: String::new(),
        ..before
    };
    stepped(status, Step::of(DeliveryState::Lost, now, why))
}

/// The state alone changes, and nothing is wrong.
pub(super) fn said(before: StoreEslStatus, step: Step<'_>) -> StoreEslStatus {
    stepped(StoreEslStatus { attempts: 0, last_error: String::new(), ..before }, step)
}

/// What is reported of a label whose picture is confirmed.
pub(super) fn arrived(evidence: Evidence, changed: bool) -> Outcome {
    match evidence_from_wire(evidence) {
        Some(evidence) => Outcome::Confirmed { changed, evidence },
        None if changed => Outcome::Done,
        None => Outcome::Unchanged,
    }
}

/// Whether an access point took the picture that went out last: it was seen there, or left a receipt.
pub(super) fn is_taken(status: &StoreEslStatus) -> bool {
    use DeliveryState::{Accepted, Delivered, Queued, Transferring};
    matches!(status.state(), Accepted | Queued | Transferring | Delivered) || !status.sent_receipt.is_empty()
}

/// When the picture on its way was sent; none when the status does not say.
pub(super) fn sent_at(status: &StoreEslStatus) -> Option<Timestamp> {
    status.sent_at.as_ref().and_then(|at| timestamp_from_wire("sent_at", at).ok())
}

/// Until when a call that carries the picture on its way may still run; none when none does.
pub(super) fn sent_until(status: &StoreEslStatus) -> Option<Timestamp> {
    status.sent_until.as_ref().and_then(|at| timestamp_from_wire("sent_until", at).ok())
}

/// The text cut at a whole character.
fn cut(text: &str, max_bytes: usize) -> String {
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_kept_in_order_up_to_their_bound_and_a_repeated_one_is_no_step() {
        let at = |ms| Timestamp::from_ms(ms);
        let mut status = StoreEslStatus::default();
        for step in 0..20 {
            let why = format!("away {step}");
            status = unreachable(status, &why, at(step));
            status = unreachable(status, &why, at(step + 1));
        }
        let causes: Vec<&str> = status.transitions.iter().map(|step| step.cause.as_str()).collect();
        let expected: Vec<String> = (12..20).map(|step| format!("away {step}")).collect();
        assert_eq!(causes, expected);
        assert_eq!(status.transitions[0].at, Some(timestamp_to_wire(at(12))));
    }

    #[test]
    fn long_causes_are_cut_at_a_whole_character() {
        let status = unreachable(StoreEslStatus::default(), &"ä".repeat(600), Timestamp::from_ms(0));
        assert_eq!(status.transitions[0].cause.len(), STEP_CAUSE_MAX_BYTES);
        assert_eq!(status.last_error.len(), 1_000);
    }
}
