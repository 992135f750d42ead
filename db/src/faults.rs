//! Faults that come again and again, a full disk's for one: told at once, then counted and told every few seconds.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The same fault is told again after this: a log stays readable, and nobody takes silence for health.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What was told last at one place of the code.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Option<Last>>);

#[derive(Debug)]
struct Last {
    fault: String,
    told: Instant,
    left_out: u64,
}

impl Faults {
    /// Nothing was told yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// How many like it were left out since the last that was told, if it is to be told now; none: it was told just now.
    pub fn due(&self, fault: &str) -> Option<u64> {
        self.due_at(fault, Instant::now())
    }

    fn due_at(&self, fault: &str, now: Instant) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left_out = 0;
        if let Some(last) = last.as_mut().filter(|last| last.fault == fault) {
            if now.saturating_duration_since(last.told) < AGAIN_AFTER {
                last.left_out = last.left_out.saturating_add(1);
                return None;
            }
            left_out = last.left_out;
        }
        *last = Some(Last { fault: fault.to_owned(), told: now, left_out: 0 });
        Some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_fault_is_told_once_in_a_while_and_another_at_once() {
        let (faults, start) = (Faults::new(), Instant::now());
        assert_eq!(faults.due_at("full", start), Some(0));
        for _ in 0..5 {
            assert_eq!(faults.due_at("full", start + AGAIN_AFTER / 2), None);
        }
        assert_eq!(faults.due_at("full", start + AGAIN_AFTER), Some(5));
        assert_eq!(faults.due_at("locked", start + AGAIN_AFTER), Some(0));
        assert_eq!(faults.due_at("full", start + AGAIN_AFTER), Some(0));
    }
}
