//! Before when nothing is left that came due or lapsed: where a look for it begins.
//!
//! What came due is promoted, what lapsed is ended; both leave entries behind in the index by time, which stay while somebody
//! holds an old snapshot. A look that walked over all of them would take longer every minute. So this process remembers, for
//! each queue, the time of the first that its last look found, or of the look itself when it found none, and begins the next
//! one shortly before. Whether what was found is then handled does not matter: it does not lie before.
//!
//! What is committed late may lie before. So now and then a look begins at the beginning; until then such a row or lease is
//! late, not lost.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use domain::Timestamp;

/// How long before that time a look begins, in milliseconds: what a unit of work may take until it is committed.
const MARGIN_MS: i64 = 2_000;
/// How often a look begins at the beginning, in milliseconds: the longest that something is late.
const WHOLE_MS: i64 = 10_000;

/// Before everything.
const BEGINNING: Timestamp = Timestamp::from_ms(i64::MIN);
/// Whoever looks for everything, whatever its time, has not looked at a moment.
const END_OF_TIME: Timestamp = Timestamp::from_ms(i64::MAX);

/// What is looked for by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Awaited {
    /// Rows that come due.
    Rows,
    /// Leases that lapse.
    Leases,
    /// Places that open.
    Places,
}

#[derive(Debug, Clone, Copy)]
struct Floor {
    /// Nothing was left before.
    at: Timestamp,
    /// The last look.
    looked_at: Timestamp,
    /// The last one from the beginning.
    whole_at: Timestamp,
}

/// What this process remembers. Clones share it. Queues are few, so nothing is forgotten.
#[derive(Debug, Clone, Default)]
pub(super) struct Floors(Arc<Mutex<HashMap<(Awaited, i64), Floor>>>);

impl Floors {
    /// Where a look into a queue at `now` begins.
    pub(super) fn from(&self, (awaited, queue): (Awaited, i64), now: Timestamp) -> Timestamp {
        let floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match floors.get(&(awaited, queue)) {
            // A clock that went back says nothing about what was before.
            Some(floor) if floor.looked_at <= now && now.ms_since(floor.whole_at) < WHOLE_MS => {
                floor.at.plus_ms(-MARGIN_MS)
            }
            _ => BEGINNING,
        }
    }

    /// Where what comes next lies, or after it.
    pub(super) fn next(&self, (awaited, queue): (Awaited, i64)) -> Timestamp {
        let floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        floors.get(&(awaited, queue)).map_or(BEGINNING, |floor| floor.at.plus_ms(-MARGIN_MS))
    }

    /// A look at `now` that began at `from` found that first.
    pub(super) fn looked(
        &self,
        (awaited, queue): (Awaited, i64),
        (from, now): (Timestamp, Timestamp),
        first: Option<Timestamp>,
    ) {
        if now == END_OF_TIME {
            return;
        }
        let mut floors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = from == BEGINNING;
        let before = floors.get(&(awaited, queue)).map(|floor| floor.whole_at).filter(|at| !whole && *at <= now);
        let floor = Floor { at: first.unwrap_or(now), looked_at: now, whole_at: before.unwrap_or(now) };
        floors.insert((awaited, queue), floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (Awaited, i64) = (Awaited::Rows, 1);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_800_000_000_000 + ms)
    }

    #[test]
    fn a_look_begins_shortly_before_the_last_one_and_now_and_then_at_the_beginning() {
        let floors = Floors::default();
        assert_eq!((floors.from(KEY, at(0)), floors.next(KEY)), (BEGINNING, BEGINNING));
        floors.looked(KEY, (BEGINNING, at(0)), None);
        assert_eq!(floors.next(KEY), at(-MARGIN_MS));
        assert_eq!(floors.from((Awaited::Leases, 1), at(0)), BEGINNING, "of leases nothing is known");
        let mut whole = Vec::new();
        for ms in (0..25_000).step_by(100) {
            let from = floors.from(KEY, at(ms));
            if from == BEGINNING {
                whole.push(ms);
            } else {
                assert_eq!(from, at(if ms == 0 { 0 } else { ms - 100 } - MARGIN_MS));
            }
            floors.looked(KEY, (from, at(ms)), None);
        }
        assert_eq!(whole, [10_000, 20_000]);
        floors.looked(KEY, (BEGINNING, END_OF_TIME), None);
        assert_eq!(floors.from(KEY, at(25_000)), at(24_900 - MARGIN_MS), "the end of time is no floor");
        assert_eq!(floors.from(KEY, at(24_000)), BEGINNING, "nor is a time that a clock went back from");
        floors.looked(KEY, (at(22_900), at(25_000)), Some(at(23_000)));
        assert_eq!(floors.from(KEY, at(25_100)), at(23_000 - MARGIN_MS), "what was found may be there still");
    }
}
