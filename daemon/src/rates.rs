//! So many at once, then one every so often: the bound of one key among many.
//!
//! Invariants
//! - A table is bounded; what is dropped from a full one is the entry nearest to having its whole burst again.
//! - Time is the caller's: nothing here reads a clock.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use domain::Timestamp;

/// Entries of one table: far more operators, tenants or addresses than a process sees in a minute.
const ENTRIES_MAX: usize = 10_000;

/// So many at once, then one every so often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// At once.
    pub burst: u32,
    /// Milliseconds between two, sustained.
    pub interval_ms: u32,
}

/// When each key would have its whole burst again (the generic cell rate algorithm).
#[derive(Debug)]
pub struct Buckets<K> {
    rule: Rule,
    /// In milliseconds.
    full_at: Mutex<HashMap<K, i64>>,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    /// Nobody has used anything yet.
    pub fn new(rule: Rule) -> Self {
        Self { rule, full_at: Mutex::default() }
    }

    /// Milliseconds until one more is allowed; 0: now.
    pub fn wait_ms(&self, key: &K, now: Timestamp) -> i64 {
        let full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.wait_of(full_at.get(key).copied().unwrap_or(i64::MIN), now)
    }

    fn wait_of(&self, full_at: i64, now: Timestamp) -> i64 {
        let interval = i64::from(self.rule.interval_ms);
        let room = i64::from(self.rule.burst).saturating_mul(interval);
        (full_at.max(now.as_ms()) + interval - now.as_ms() - room).max(0)
    }

    /// Takes one; else the milliseconds until one is allowed.
    pub fn take(&self, key: &K, now: Timestamp) -> Result<(), i64> {
        let mut table = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = table.get(key).copied().unwrap_or(i64::MIN);
        let wait = self.wait_of(full_at, now);
        if wait > 0 {
            return Err(wait);
        }
        if table.len() >= ENTRIES_MAX && !table.contains_key(key) {
            table.retain(|_, full_at| *full_at > now.as_ms());
            if table.len() >= ENTRIES_MAX
                && let Some(nearest) = table.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| key.clone())
            {
                table.remove(&nearest);
            }
        }
        table.insert(key.clone(), full_at.max(now.as_ms()) + i64::from(self.rule.interval_ms));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { burst: 3, interval_ms: 1_000 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_000_000 + ms)
    }

    #[test]
    fn a_burst_then_one_an_interval() {
        let buckets = Buckets::new(RULE);
        for _ in 0..3 {
            assert_eq!(buckets.take(&"a", at(0)), Ok(()));
        }
        assert_eq!(buckets.take(&"a", at(0)), Err(1_000));
        assert_eq!(buckets.take(&"a", at(400)), Err(600));
        assert_eq!(buckets.take(&"b", at(0)), Ok(()), "others are not affected");
        assert_eq!(buckets.take(&"a", at(1_000)), Ok(()));
        assert_eq!(buckets.take(&"a", at(1_000)), Err(1_000));
        for _ in 0..3 {
            assert_eq!(buckets.take(&"a", at(60_000)), Ok(()), "and the burst comes back");
        }
        assert_eq!(buckets.wait_ms(&"a", at(60_000)), 1_000);
    }

    #[test]
    fn a_full_table_forgets_whoever_is_nearest_to_a_whole_burst() {
        let buckets = Buckets::new(RULE);
        for _ in 0..3 {
            buckets.take(&0, at(0)).unwrap();
        }
        for key in 1..20_000 {
            buckets.take(&key, at(0)).unwrap();
        }
        assert!(buckets.full_at.lock().unwrap().len() <= ENTRIES_MAX);
        assert!(buckets.take(&0, at(0)).is_err(), "who used all of it is remembered");
    }
}
