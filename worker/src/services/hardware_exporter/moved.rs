//! What a label left behind when it moved to another access point, or got other hardware. Pure.
//!
//! A picture that waits at the old place may still reach the label after a newer one that came by the new place. So the
//! status names it until it was taken back there (`take_back`), the access point proves to be without it, or trying was
//! given up.

use domain::Timestamp;
use proto::{
    records::v1::{DeliveryState, LeftBehind, StoreEslStatus},
    timestamp_from_wire, timestamp_to_wire,
};

use super::status::{self, Step};
use crate::runtime::cause;

/// Pictures that a status names as left behind; the record's own bound.
const LEFT_BEHIND_MAX: usize = 4;

/// The status as the label hangs now: what is on its way elsewhere is left behind, and what was left here is on its way
/// again.
pub(super) fn rehung(
    before: StoreEslStatus,
    (access_point, hardware_address): (&str, &str),
    now: Timestamp,
) -> StoreEslStatus {
    let is_here = |at: &str, to: &str| at == access_point && to == hardware_address;
    let mut status = before;
    if !status.sent_digest.is_empty() && !is_here(&status.sent_accesspoint_id, &status.sent_hardware_address) {
        status = leave(status, now);
    }
    let here = status.left_behind.iter().position(|one| is_here(&one.accesspoint_id, &one.hardware_address));
    match here {
        Some(index) if status.sent_digest.is_empty() => {
            let back = status.left_behind.remove(index);
            return_to(status, back, now)
        }
        _ => status,
    }
}

fn leave(mut status: StoreEslStatus, now: Timestamp) -> StoreEslStatus {
    let cause = format!(
        "the label hangs elsewhere now; what waits at access point {} is taken back",
        status.sent_accesspoint_id
    );
    let left = LeftBehind {
        accesspoint_id: std::mem::take(&mut status.sent_accesspoint_id),
        hardware_address: std::mem::take(&mut status.sent_hardware_address),
        digest: std::mem::take(&mut status.sent_digest),
        receipt: std::mem::take(&mut status.sent_receipt),
        sent_at: status.sent_at.take(),
        attempts: 0,
        // A call that may still be bringing it there comes first.
        next_at: status.sent_until,
    };
    let surplus = (status.left_behind.len() + 1).saturating_sub(LEFT_BEHIND_MAX);
    status.left_behind.drain(..surplus);
    status.left_behind.push(left);
    let status = StoreEslStatus { attempts: 0, losses: 0, ..status };
    status::stepped(status, Step::of(DeliveryState::Superseded, now, &cause))
}

fn return_to(status: StoreEslStatus, back: LeftBehind, now: Timestamp) -> StoreEslStatus {
    let status = StoreEslStatus {
        sent_digest: back.digest,
        sent_hardware_address: back.hardware_address,
        sent_accesspoint_id: back.accesspoint_id,
        sent_receipt: back.receipt,
        sent_at: back.sent_at,
        ..status
    };
    status::stepped(status, Step::of(DeliveryState::Sent, now, "the label hangs again where this picture was sent"))
}

/// What is to be taken back now.
pub(super) fn due(status: &StoreEslStatus, now: Timestamp) -> Vec<LeftBehind> {
    status.left_behind.iter().filter(|one| next_at(one).is_none_or(|at| at <= now)).cloned().collect()
}

/// When something is to be taken back next; none when nothing is left behind.
pub(super) fn next(status: &StoreEslStatus, now: Timestamp) -> Option<Timestamp> {
    status.left_behind.iter().map(|one| next_at(one).unwrap_or(now)).min()
}

fn next_at(left: &LeftBehind) -> Option<Timestamp> {
    left.next_at.as_ref().and_then(|at| timestamp_from_wire("next_at", at).ok())
}

/// It is there no more.
pub(super) fn gone(mut status: StoreEslStatus, left: &LeftBehind, (proof, now): (&str, Timestamp)) -> StoreEslStatus {
    status.left_behind.retain(|one| one != left);
    let cause = format!("at access point {}: {proof}", left.accesspoint_id);
    let state = status.state();
    status::stepped(status, Step::of(state, now, &cause))
}

/// It may still be there; tried again `next`, or given up.
pub(super) fn kept(
    mut status: StoreEslStatus,
    left: &LeftBehind,
    (why, now): (&str, Timestamp),
    next: Option<Timestamp>,
) -> StoreEslStatus {
    let Some(next) = next else {
        let why = format!("given up taking back what waits at access point {}: {why}", left.accesspoint_id);
        status.left_behind.retain(|one| one != left);
        let state = status.state();
        return status::stepped(status, Step::of(state, now, &why));
    };
    for one in status.left_behind.iter_mut().filter(|one| *one == left) {
        one.attempts = one.attempts.saturating_add(1);
        one.next_at = Some(timestamp_to_wire(next));
    }
    StoreEslStatus { last_error: cause(format!("at access point {}: {why}", left.accesspoint_id)), ..status }
}

/// Nobody asked; no try is counted.
pub(super) fn put_off(mut status: StoreEslStatus, left: &LeftBehind, next: Timestamp) -> StoreEslStatus {
    for one in status.left_behind.iter_mut().filter(|one| *one == left) {
        one.next_at = Some(timestamp_to_wire(next));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn sent(access_point: &str, digest: u8) -> StoreEslStatus {
        StoreEslStatus {
            state: DeliveryState::Accepted.into(),
            sent_digest: vec![digest; 32].into(),
            sent_hardware_address: "H".into(),
            sent_accesspoint_id: access_point.into(),
            sent_receipt: "receipt".into(),
            sent_at: Some(timestamp_to_wire(NOW)),
            ..StoreEslStatus::default()
        }
    }

    #[test]
    fn what_is_on_its_way_elsewhere_is_left_behind_and_counts_again_when_the_label_returns() {
        let here = sent("A", 1);
        assert_eq!(rehung(here.clone(), ("A", "H"), NOW), here, "nothing moved");
        let moved = rehung(here.clone(), ("B", "H"), NOW);
        assert!(moved.sent_digest.is_empty());
        assert_eq!(due(&moved, NOW), moved.left_behind);
        assert_eq!(rehung(moved.clone(), ("B", "H"), NOW), moved, "once");
        let back = rehung(moved, ("A", "H"), NOW);
        assert_eq!((&back.sent_digest, &back.sent_receipt), (&here.sent_digest, &here.sent_receipt));
        assert!(back.left_behind.is_empty());
        let other_hardware = rehung(here, ("A", "I"), NOW);
        assert_eq!(other_hardware.left_behind[0].hardware_address, "H");
    }

    #[test]
    fn a_label_that_wanders_leaves_the_newest_few_behind() {
        let mut status = StoreEslStatus::default();
        for round in 0..10_u8 {
            let at = format!("A{round}");
            status = StoreEslStatus { left_behind: status.left_behind, ..sent(&at, round) };
            status = rehung(status, ("elsewhere", "H"), NOW);
        }
        let at: Vec<&str> = status.left_behind.iter().map(|one| one.accesspoint_id.as_str()).collect();
        assert_eq!(at, ["A6", "A7", "A8", "A9"]);
    }

    #[test]
    fn it_is_tried_again_when_it_is_due_and_not_before_a_call_that_may_bring_it_is_over() {
        let until = NOW.plus_ms(10_000);
        let running = StoreEslStatus { sent_until: Some(timestamp_to_wire(until)), ..sent("A", 1) };
        let moved = rehung(running, ("B", "H"), NOW);
        assert_eq!((due(&moved, NOW).len(), next(&moved, NOW)), (0, Some(until)));
        let left = due(&moved, until).remove(0);
        let tried = kept(moved.clone(), &left, ("away", until), Some(until.plus_ms(1)));
        assert_eq!((tried.left_behind[0].attempts, next(&tried, until)), (1, Some(until.plus_ms(1))));
        let given_up = kept(moved.clone(), &left, ("away", until), None);
        assert!(given_up.left_behind.is_empty());
        assert!(given_up.transitions.last().unwrap().cause.contains("given up"));
        assert!(gone(moved, &left, ("nothing waits", until)).left_behind.is_empty());
    }
}
