//! How much one operator, one tenant and one address may ask for.
//!
//! | bound | of whom | why |
//! |---|---|---|
//! | [`Rules::reads`], [`Rules::actions`] | an operator | a script gone wild does not take the gateway from the others |
//! | [`Rules::tenant_actions`] | a tenant | nor its colleagues together |
//! | [`Rules::failures`] | an address | guessing tokens costs us no cryptography; tokens that were right lately still pass |
//! | [`IN_HAND_MAX`] | an operator | stalled requests of one operator do not fill the gateway |
//!
//! Invariants
//! - Every table is bounded; what is dropped from a full one is the entry nearest to having its whole burst again.
//! - A bound speaks before anything is done, and says when to come again.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use domain::{Clock, OperatorSubject, TenantId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;

/// Requests of one operator in hand at once: a page, its refreshes, and a few scripts.
const IN_HAND_MAX: usize = 32;
/// Entries of one table: far more operators, tenants or addresses than a gateway sees in a minute.
const ENTRIES_MAX: usize = 10_000;
/// Tokens remembered as right.
const TOKENS_MAX: usize = 4_096;

/// So many at once, then one every so often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// At once.
    pub burst: u32,
    /// Milliseconds between two, sustained.
    pub interval_ms: u32,
}

/// The rules of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Reads of one operator.
    pub reads: Rule,
    /// Actions of one operator.
    pub actions: Rule,
    /// Actions for one tenant, of all operators.
    pub tenant_actions: Rule,
    /// Tokens refused to one address.
    pub failures: Rule,
}

impl Default for Rules {
    /// 50 reads and 10 actions a second for an operator, 20 actions for a tenant, one wrong token a second for an address.
    fn default() -> Self {
        Self {
            reads: Rule { burst: 500, interval_ms: 20 },
            actions: Rule { burst: 200, interval_ms: 100 },
            tenant_actions: Rule { burst: 400, interval_ms: 50 },
            failures: Rule { burst: 60, interval_ms: 1_000 },
        }
    }
}

/// When each key would have its whole burst again, in milliseconds (the generic cell rate algorithm).
struct Buckets<K> {
    rule: Rule,
    full_at: Mutex<HashMap<K, i64>>,
}

impl<K: Hash + Eq + Clone> Buckets<K> {
    fn new(rule: Rule) -> Self {
        Self { rule, full_at: Mutex::default() }
    }

    /// Milliseconds until one more is allowed; 0 for now.
    fn wait_ms(&self, key: &K, now: Timestamp) -> i64 {
        let full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.wait_of(full_at.get(key).copied().unwrap_or(i64::MIN), now)
    }

    fn wait_of(&self, full_at: i64, now: Timestamp) -> i64 {
        let interval = i64::from(self.rule.interval_ms);
        let room = i64::from(self.rule.burst).saturating_mul(interval);
        (full_at.max(now.as_ms()) + interval - now.as_ms() - room).max(0)
    }

    /// Takes one; else the milliseconds until one is allowed.
    fn take(&self, key: &K, now: Timestamp) -> Result<(), i64> {
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

/// The bounds of one gateway.
pub(crate) struct Rates {
    clock: Arc<dyn Clock>,
    reads: Buckets<OperatorSubject>,
    actions: Buckets<OperatorSubject>,
    tenant_actions: Buckets<TenantId>,
    failures: Buckets<IpAddr>,
    in_hand: Arc<Mutex<HashMap<OperatorSubject, usize>>>,
    right: Mutex<HashMap<[u8; 32], Timestamp>>,
}

/// One request of an operator in hand, until dropped.
#[derive(Debug)]
pub(crate) struct InHand {
    subject: OperatorSubject,
    table: Arc<Mutex<HashMap<OperatorSubject, usize>>>,
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = table.get_mut(&self.subject) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                table.remove(&self.subject);
            }
        }
    }
}

/// Whether a request changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Action,
}

fn seconds(wait_ms: i64) -> u32 {
    u32::try_from(wait_ms.div_euclid(1_000) + 1).unwrap_or(u32::MAX)
}

impl Rates {
    pub(crate) fn new(rules: Rules, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            reads: Buckets::new(rules.reads),
            actions: Buckets::new(rules.actions),
            tenant_actions: Buckets::new(rules.tenant_actions),
            failures: Buckets::new(rules.failures),
            in_hand: Arc::default(),
            right: Mutex::default(),
        }
    }

    /// Refuses an address that showed too many wrong tokens, before this one is looked at. One that was right lately
    /// passes, so that nobody can shut out the others behind the same proxy.
    pub(crate) fn before_token(&self, address: IpAddr, token: &str) -> Result<(), Problem> {
        let wait = self.failures.wait_ms(&address, self.clock.now());
        if wait == 0 || self.right().contains_key(&digest(token)) {
            return Ok(());
        }
        Err(Problem::too_many("wrong tokens from this address", seconds(wait)))
    }

    /// A wrong token was shown.
    pub(crate) fn token_wrong(&self, address: IpAddr) {
        // Full already: its wait only grows with time.
        let _ = self.failures.take(&address, self.clock.now());
    }

    /// A token was right until `expires`.
    pub(crate) fn token_right(&self, token: &str, expires: Timestamp) {
        let now = self.clock.now();
        let mut right = self.right();
        if right.len() >= TOKENS_MAX {
            right.retain(|_, expires| *expires > now);
        }
        if right.len() < TOKENS_MAX {
            right.insert(digest(token), expires);
        }
    }

    /// Counts one request of an operator; it is in hand until what this gives is dropped.
    pub(crate) fn operator(&self, subject: &OperatorSubject, kind: Kind) -> Result<InHand, Problem> {
        let (buckets, what) = match kind {
            Kind::Read => (&self.reads, "reads of this operator"),
            Kind::Action => (&self.actions, "actions of this operator"),
        };
        buckets.take(subject, self.clock.now()).map_err(|wait| Problem::too_many(what, seconds(wait)))?;
        let mut table = self.in_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let count = table.entry(subject.clone()).or_default();
        if *count >= IN_HAND_MAX {
            return Err(Problem::too_many("requests of this operator at once", 1));
        }
        *count += 1;
        drop(table);
        Ok(InHand { subject: subject.clone(), table: Arc::clone(&self.in_hand) })
    }

    /// Counts one action for a tenant.
    pub(crate) fn tenant_action(&self, tenant: &TenantId) -> Result<(), Problem> {
        let taken = self.tenant_actions.take(tenant, self.clock.now());
        taken.map_err(|wait| Problem::too_many("actions for this tenant", seconds(wait)))
    }

    fn right(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Timestamp>> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
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
