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

/// Whom a verified token names.
#[derive(Debug, Clone)]
pub struct Operator {
    subject: OperatorSubject,
    scopes: BTreeSet<OperatorScope>,
    tenants: BTreeMap<TenantId, StoreAccess>,
    expires_at: Timestamp,
    /// Keeps the request counted among those in hand.
    in_hand: Option<Arc<InHand>>,
}

impl Operator {
    pub(super) fn new(
        subject: OperatorSubject,
        scopes: BTreeSet<OperatorScope>,
        tenants: BTreeMap<TenantId, StoreAccess>,
        expires_at: Timestamp,
    ) -> Self {
        Self { subject, scopes, tenants, expires_at, in_hand: None }
    }

    /// The token's `sub`.
    pub fn subject(&self) -> &OperatorSubject {
        &self.subject
    }

    /// The scopes it has, of those we know.
    pub fn scopes(&self) -> impl Iterator<Item = OperatorScope> {
        self.scopes.iter().copied()
    }

    /// The tenants it may act on, by id.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.tenants.keys()
    }

    /// When the token ends.
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    pub(crate) fn access(&self) -> impl Iterator<Item = (&TenantId, &StoreAccess)> {
        self.tenants.iter()
    }

    /// Refuses unless the token has `scope`, naming it.
    pub(crate) fn require(&self, scope: OperatorScope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) { Ok(()) } else { Err(Problem::missing_scope(scope)) }
    }

    /// The access to `tenant`; outside the token it does not exist.
    pub(crate) fn tenant(&self, tenant: &TenantId) -> Result<&StoreAccess, Problem> {
        self.tenants.get(tenant).ok_or_else(Problem::not_found)
    }

    /// Refuses a store outside the token as one that does not exist.
    pub(crate) fn store(&self, tenant: &TenantId, store: &StoreId) -> Result<(), Problem> {
        if self.tenant(tenant)?.allows(store) { Ok(()) } else { Err(Problem::not_found()) }
    }

    /// Whether the token reaches what `urn` names.
    pub(crate) fn reaches(&self, urn: &Urn) -> bool {
        match (self.tenants.get(urn.tenant()), urn.store()) {
            (None, _) => false,
            (Some(access), Some(store)) => access.allows(store),
            (Some(access), None) => *access == StoreAccess::All,
        }
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
        Ok(operator)
    }
}
