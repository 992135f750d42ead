//! A verified operator and what the token allows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::extract::FromRequestParts;
use domain::{OperatorScope, OperatorSubject, StoreId, TenantId, Timestamp, Urn};
use http::request::Parts;

use super::{TokenRefusal, verifier::bearer};
use crate::{
    parameters,
    problem::Problem,
    rates::{InHand, Kind},
    serve::PeerAddress,
    state::Gateway,
};

/// Which stores of a tenant a token may act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreAccess {
    /// All of them, and what lies at the tenant's level.
    All,
    /// Only these, and nothing at the tenant's level.
    Only(BTreeSet<StoreId>),
}

impl StoreAccess {
    pub(super) fn allows(&self, store: &StoreId) -> bool {
        match self {
            Self::All => true,
            Self::Only(stores) => stores.contains(store),
        }
    }
}

/// Tenants, and which of their stores.
pub(super) type Tenants = BTreeMap<TenantId, StoreAccess>;

/// What a token grants: each scope, and where it holds.
#[derive(Debug, Clone, Default)]
pub(super) struct Granted {
    /// Scopes, each with the tenants where it holds.
    scopes: BTreeMap<OperatorScope, Arc<Tenants>>,
    /// The tenants of the token, whatever it may do there.
    tenants: Arc<Tenants>,
}

impl Granted {
    /// The same scopes at all of the tenants.
    pub(super) fn everywhere(scopes: BTreeSet<OperatorScope>, tenants: Tenants) -> Self {
        let tenants = Arc::new(tenants);
        Self { scopes: scopes.into_iter().map(|scope| (scope, Arc::clone(&tenants))).collect(), tenants }
    }

    /// Each scope where it says.
    pub(super) fn each(scopes: BTreeMap<OperatorScope, Tenants>, tenants: Tenants) -> Self {
        Self {
            scopes: scopes.into_iter().map(|(scope, at)| (scope, Arc::new(at))).collect(),
            tenants: Arc::new(tenants),
        }
    }
}

/// Whom a verified token names.
#[derive(Debug, Clone)]
pub struct Operator {
    subject: OperatorSubject,
    granted: Granted,
    expires_at: Timestamp,
    /// Keeps the request counted among those in hand.
    in_hand: Option<Arc<InHand>>,
}

impl Operator {
    pub(super) fn new(subject: OperatorSubject, granted: Granted, expires_at: Timestamp) -> Self {
        Self { subject, granted, expires_at, in_hand: None }
    }

    /// The token's `sub`.
    pub fn subject(&self) -> &OperatorSubject {
        &self.subject
    }

    /// The scopes it has, of those we know, each at some tenant at least.
    pub fn scopes(&self) -> impl Iterator<Item = OperatorScope> {
        self.granted.scopes.keys().copied()
    }

    /// The scopes it has at `tenant`, in one of its stores at least.
    pub fn scopes_at(&self, tenant: &TenantId) -> impl Iterator<Item = OperatorScope> {
        self.granted.scopes.iter().filter(|(_, at)| at.contains_key(tenant)).map(|(scope, _)| *scope)
    }

    /// The tenants it may act on, by id.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.granted.tenants.keys()
    }

    /// When the token ends.
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    pub(crate) fn access(&self) -> impl Iterator<Item = (&TenantId, &StoreAccess)> {
        self.granted.tenants.iter()
    }

    /// Whether the token leads to `tenant` at all.
    pub(crate) fn knows(&self, tenant: &TenantId) -> bool {
        self.granted.tenants.contains_key(tenant)
    }

    /// Where the token has `scope`. Refuses, naming it, when that is nowhere.
    pub(crate) fn require(&self, scope: OperatorScope) -> Result<Reach<'_>, Problem> {
        let at = self.granted.scopes.get(&scope).ok_or_else(|| Problem::missing_scope(scope))?;
        Ok(Reach { scope, at, known: &self.granted.tenants })
    }
}

/// Where a token has one scope. Outside the token nothing exists; where the token leads, but not with this scope, the
/// scope is missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'o> {
    scope: OperatorScope,
    at: &'o Tenants,
    /// Where the token leads with any scope.
    known: &'o Tenants,
}

impl<'o> Reach<'o> {
    /// The tenants.
    pub(crate) fn tenants(self) -> impl Iterator<Item = &'o TenantId> {
        self.at.keys()
    }

    /// The tenants that it has as a whole.
    pub(crate) fn whole_tenants(self) -> impl Iterator<Item = &'o TenantId> {
        self.at.iter().filter(|(_, access)| **access == StoreAccess::All).map(|(tenant, _)| tenant)
    }

    /// The access to `tenant`.
    pub(crate) fn tenant(self, tenant: &TenantId) -> Result<&'o StoreAccess, Problem> {
        self.at.get(tenant).ok_or_else(|| self.outside(self.known.contains_key(tenant)))
    }

    /// Refuses unless it has `tenant` as a whole: for what lies at the tenant's level.
    pub(crate) fn whole(self, tenant: &TenantId) -> Result<(), Problem> {
        match self.tenant(tenant)? {
            StoreAccess::All => Ok(()),
            StoreAccess::Only(_) => Err(self.outside(self.known.get(tenant) == Some(&StoreAccess::All))),
        }
    }

    /// Refuses unless it has `store`.
    pub(crate) fn store(self, tenant: &TenantId, store: &StoreId) -> Result<(), Problem> {
        if self.tenant(tenant)?.allows(store) {
            return Ok(());
        }
        Err(self.outside(self.known.get(tenant).is_some_and(|access| access.allows(store))))
    }

    /// Refuses unless it has what `urn` names.
    pub(crate) fn record(self, urn: &Urn) -> Result<(), Problem> {
        match urn.store() {
            Some(store) => self.store(urn.tenant(), store),
            None => self.whole(urn.tenant()),
        }
    }

    fn outside(self, known: bool) -> Problem {
        if known { Problem::missing_scope(self.scope) } else { Problem::not_found() }
    }
}

impl FromRequestParts<Arc<Gateway>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Problem> {
        let address = parts.extensions.get::<PeerAddress>().map(|peer| peer.0);
        let token = bearer(&parts.headers).ok();
        if let (Some(address), Some(token)) = (address, token) {
            gateway.rates.before_token(address, token)?;
        }
        let mut operator = gateway.operators.authenticate(&parts.headers).await.map_err(|refusal| {
            tracing::warn!(reason = %refusal, "operator token refused");
            match (refusal, address) {
                (TokenRefusal::NoKeys, _) => return Problem::no_keys(),
                // Costs nothing to refuse; every page without a token does it.
                (TokenRefusal::Missing, _) | (_, None) => {}
                (_, Some(address)) => gateway.rates.token_wrong(address),
            }
            Problem::unauthenticated()
        })?;
        if let Some(token) = token {
            gateway.rates.token_right(token, operator.expires_at);
        }
        let kind = if parts.method.is_safe() { Kind::Read } else { Kind::Action };
        operator.in_hand = Some(Arc::new(gateway.rates.operator(&operator.subject, kind)?));
        if kind == Kind::Read {
            parameters::check(parts)?;
        }
        Ok(operator)
    }
}
