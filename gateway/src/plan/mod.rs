//! Plans: what a dry run found, signed, so that the run can be held to it.
//!
//! Reading order: [`Plan`] (what it says), [`key`] (signing and reading), [`drift`] (what changed since).
//!
//! Invariants
//! - A plan is stateless: whoever has the gateways' key can read it, nothing is kept of it.
//! - It says what it is of (trigger, tenant, scope), what was counted, for whom and until when; a plan of another scope
//!   is no plan.
//! - It proves what was seen, never who may act: the token of the request alone does.
//!
//! Deliberately not here: whether a run is allowed (`routes::admission`).

mod drift;
mod key;

pub(crate) use drift::Drift;
pub use key::{PlanKey, PlanKeyError};

use std::collections::BTreeMap;

use domain::{RecordId, StoreId, TenantId, Timestamp, Trigger};
use sha2::{Digest as _, Sha256};

/// How long a plan is good for, in milliseconds: the rest of a working day and a night, as the issue has it.
pub(crate) const PLAN_LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;

/// What a plan is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanScope<'a> {
    pub(crate) trigger: Trigger,
    pub(crate) tenant: &'a TenantId,
    pub(crate) store: Option<&'a StoreId>,
    pub(crate) record: Option<&'a RecordId>,
}

impl PlanScope<'_> {
    /// SHA-256 over trigger, tenant, store and record, in 64 hex digits.
    pub(crate) fn digest(&self) -> String {
        let store = self.store.map(StoreId::as_str).unwrap_or_default();
        let record = self.record.map(RecordId::as_str).unwrap_or_default();
        // No id can hold a line break.
        domain::hex(Sha256::digest(format!("{}\n{}\n{store}\n{record}", self.trigger, self.tenant)))
    }
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Labels in all.
    pub(crate) labels: i64,
    /// Labels by store, of the first stores by id: as many as a dry run lists at once.
    pub(crate) stores: BTreeMap<String, i64>,
    /// Whether there are more stores than those.
    pub(crate) more_stores: bool,
}

/// A plan that was read.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Of what: [`PlanScope::digest`].
    pub(crate) scope_digest: String,
    pub(crate) counted: Counted,
    pub(crate) made_at: Timestamp,
    pub(crate) expires_at: Timestamp,
}

/// SHA-256 of a plan's text, in 64 hex digits: what an operation keeps of its plan, and an approval names.
pub(crate) fn digest(plan_id: &str) -> String {
    domain::hex(Sha256::digest(plan_id))
}
