//! The lane choice against a starvation oracle.

use cqs::{
    model::LaneClass,
    policy::choice::{Answer, BULK_MIN, ORDINARY_MIN, Tally, WINDOW},
};
use domain::Timestamp;
use proptest::prelude::*;

/// Which classes wait at a look, and the SLA of each one's head.
fn looks() -> impl Strategy<Value = Vec<(Option<i64>, Option<i64>)>> {
    let head = || prop_oneof![1 => Just(None), 6 => (0..4_i64).prop_map(Some)];
    prop::collection::vec((head(), head()), 1..200)
}

proptest! {
    #[test]
    fn both_guarantees_hold_over_every_eight_contended_answers(looks in looks()) {
        let mut tally = Tally::default();
        let mut contended = Vec::new();
        for (ordinary, bulk) in looks {
            let chosen = tally.choose(ordinary.map(Timestamp::from_ms), bulk.map(Timestamp::from_ms));
            let both = ordinary.is_some() && bulk.is_some();
            match chosen {
                None => prop_assert!(ordinary.is_none() && bulk.is_none(), "work waits and nobody is served"),
                Some(LaneClass::Ordinary) => prop_assert!(ordinary.is_some()),
                Some(LaneClass::Bulk) => prop_assert!(bulk.is_some()),
            }
            if let Some(class) = chosen {
                tally.note(Answer { class, lane: 7, contended: both });
                if both {
                    contended.push((class, ordinary < bulk));
                }
            }
        }
        for window in contended.windows(WINDOW) {
            let ordinary = window.iter().filter(|(class, _)| *class == LaneClass::Ordinary).count();
            prop_assert!(ordinary >= ORDINARY_MIN, "{window:?}");
            prop_assert!(WINDOW - ordinary >= BULK_MIN, "{window:?}");
        }
    }

    #[test]
    fn the_earliest_head_wins_unless_a_guarantee_is_due(slas in prop::collection::vec((0..4_i64, 0..4_i64), 1..100)) {
        let mut tally = Tally::default();
        let mut answers: Vec<LaneClass> = Vec::new();
        for (ordinary, bulk) in slas {
            let at = |ms| Some(Timestamp::from_ms(ms));
            let Some(chosen) = tally.choose(at(ordinary), at(bulk)) else { panic!("both wait") };
            let earliest = if bulk < ordinary { LaneClass::Bulk } else { LaneClass::Ordinary };
            if chosen != earliest {
                // Then serving the earliest would have broken a guarantee over the last eight.
                let recent = &answers[answers.len().saturating_sub(WINDOW - 1)..];
                let same = recent.iter().filter(|class| **class == earliest).count();
                let bound = match earliest {
                    LaneClass::Bulk => WINDOW - ORDINARY_MIN,
                    LaneClass::Ordinary => WINDOW - BULK_MIN,
                };
                prop_assert!(same >= bound, "{recent:?} then {chosen:?}");
            }
            answers.push(chosen);
            tally.note(Answer { class: chosen, lane: 1, contended: true });
        }
    }
}
