//! The circuit breaker of one access point. Pure.
//!
//! An access point that does not answer is left alone for a while that doubles with every failure; then one probe, not
//! its labels, finds out whether it is back.

use domain::Timestamp;

/// First rest after a failure, in milliseconds: a network that hiccups is back by then.
const FIRST_MS: i64 = 2_000;
/// Longest rest, in milliseconds: labels of an access point that is back wait no longer than this.
const LONGEST_MS: i64 = 5 * 60 * 1_000;

/// Whether an access point may be called.
#[derive(Debug, Default)]
pub(super) struct Breaker(Option<Away>);

/// An access point that does not answer.
#[derive(Debug)]
struct Away {
    since: Timestamp,
    failures: u32,
    next: Timestamp,
    cause: String,
}

/// What may be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Gate {
    /// Call it.
    Free,
    /// It did not answer; a probe may find out whether it does now.
    Trial,
    /// Leave it alone.
    Shut(Shut),
}

/// Until when an access point is left alone, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shut {
    pub(super) until: Timestamp,
    pub(super) cause: String,
}

impl Breaker {
    pub(super) fn gate(&self, now: Timestamp) -> Gate {
        match &self.0 {
            None => Gate::Free,
            Some(away) if away.next <= now => Gate::Trial,
            Some(away) => Gate::Shut(away.shut()),
        }
    }

    /// It did not answer. `salt` spreads access points that went away together.
    pub(super) fn failed(&mut self, now: Timestamp, cause: &str, salt: u64) -> Shut {
        let away = self.0.get_or_insert_with(|| Away { since: now, failures: 0, next: now, cause: String::new() });
        // Calls that were out together fail together: they count once.
        if away.next <= now {
            let rest = FIRST_MS.saturating_mul(1 << away.failures.min(16)).min(LONGEST_MS);
            let spread = i64::try_from(salt.rotate_left(away.failures) % 1_000).unwrap_or(0);
            away.next = now.plus_ms(rest / 2 + rest / 2 * spread / 1_000);
            away.failures = away.failures.saturating_add(1);
            cause.clone_into(&mut away.cause);
        }
        away.shut()
    }

    /// It answered.
    pub(super) fn answered(&mut self) {
        self.0 = None;
    }

    /// Nothing is held against it.
    pub(super) fn is_free(&self) -> bool {
        self.0.is_none()
    }
}

impl Away {
    fn shut(&self) -> Shut {
        // The same words every time, so that a status that says so is not written again and again.
        Shut {
            until: self.next,
            cause: format!("the access point does not answer since {}: {}", self.since, self.cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_to_their_bound_and_a_probe_is_due_after_each() {
        let mut breaker = Breaker::default();
        let mut now = Timestamp::from_ms(1_000_000);
        assert_eq!(breaker.gate(now), Gate::Free);
        for failure in 0..20 {
            let shut = breaker.failed(now, "refused", 0x1234_5678_9abc_def0);
            let bound = (FIRST_MS << failure.min(12)).min(LONGEST_MS);
            let rest = shut.until.ms_since(now);
            assert!((bound / 2..=bound).contains(&rest), "{failure}: {rest}");
            assert_eq!(breaker.gate(now), Gate::Shut(shut.clone()));
            // Failing again meanwhile changes nothing.
            assert_eq!(breaker.failed(now.plus_ms(rest - 1), "late", 1), shut);
            now = shut.until;
            assert_eq!(breaker.gate(now), Gate::Trial);
        }
        breaker.answered();
        assert_eq!(breaker.gate(now), Gate::Free);
    }
}
