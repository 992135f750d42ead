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
//! - Every table is bounded ([`daemon::rates`]).
//! - A bound speaks before anything is done, and says when to come again.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use daemon::rates::Buckets;
use domain::{Clock, OperatorSubject, TenantId, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;

pub use daemon::rates::Rule;

/// Requests of one operator in hand at once: a page, its refreshes, and a few scripts.
const IN_HAND_MAX: usize = 32;
/// Tokens remembered as right.
const TOKENS_MAX: usize = 4_096;

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
