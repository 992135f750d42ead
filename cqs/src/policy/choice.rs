//! Which lane a `Dequeue` is answered from.
//!
//! The earliest head wins. Two guarantees temper that, over any eight consecutive answers given while both classes wait:
//! at least [`ORDINARY_MIN`] are ordinary, at least one is an operation's. Operations' answers go round.

use domain::Timestamp;

use crate::model::LaneClass;

/// Answers over which the guarantees hold.
pub const WINDOW: usize = 8;
/// Least ordinary answers among them: an operation whose SLA has passed takes at most half.
pub const ORDINARY_MIN: usize = 4;
/// Least answers of operations among them: live load cannot starve one.
pub const BULK_MIN: usize = 1;

/// The answers of one queue given lately while both classes waited, and where the round of operations stands. Lives in the
/// server process: losing it at a restart costs a fair start, nothing else.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The last answers, newest last, at most `WINDOW - 1`.
    recent: Vec<LaneClass>,
    /// The lane of the last bulk answer.
    last_bulk_lane: i64,
}

impl Tally {
    /// Which class is served, given the SLA of the earliest head of each. None when nothing waits.
    pub fn choose(&self, ordinary: Option<Timestamp>, bulk: Option<Timestamp>) -> Option<LaneClass> {
        match (ordinary, bulk) {
            (None, None) => None,
            (Some(_), None) => Some(LaneClass::Ordinary),
            (None, Some(_)) => Some(LaneClass::Bulk),
            (Some(ordinary), Some(bulk)) => Some(self.contended(ordinary, bulk)),
        }
    }

    fn contended(&self, ordinary: Timestamp, bulk: Timestamp) -> LaneClass {
        let bulk_answers = self.recent.iter().filter(|class| **class == LaneClass::Bulk).count();
        let ordinary_answers = self.recent.len() - bulk_answers;
        let ordinary_is_due = bulk_answers >= WINDOW - ORDINARY_MIN;
        let bulk_is_due = ordinary_answers > WINDOW - 1 - BULK_MIN;
        if !ordinary_is_due && (bulk_is_due || bulk < ordinary) { LaneClass::Bulk } else { LaneClass::Ordinary }
    }

    /// The lane after which the round of operations goes on.
    pub fn last_bulk_lane(&self) -> i64 {
        self.last_bulk_lane
    }

    /// Notes an answer.
    pub fn note(&mut self, answer: Answer) {
        if answer.class == LaneClass::Bulk {
            self.last_bulk_lane = answer.lane;
        }
        if answer.contended {
            if self.recent.len() == WINDOW - 1 {
                self.recent.remove(0);
            }
            self.recent.push(answer.class);
        }
    }
}

/// One answer of a `Dequeue`.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The class it served.
    pub class: LaneClass,
    /// The lane it served.
    pub lane: i64,
    /// Whether both classes waited.
    pub contended: bool,
}
