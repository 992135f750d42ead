//! Groups of a provider, and what each grants.

use std::collections::{BTreeMap, BTreeSet};

use domain::{OperatorScope, StoreId, TenantId};
use serde::Deserialize;

use super::{
    StoreAccess, TENANTS_MAX,
    operator::{Granted, Tenants},
    verifier::TokenRefusal,
};

/// What one group grants, as configuration gives it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupGrant {
    /// Scopes.
    pub scopes: Vec<String>,
    /// Tenants, whole.
    pub tenants: Vec<String>,
    /// Single stores, as `tenant/store`.
    pub stores: Vec<String>,
}

/// Why groups are not accepted. Names the group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("group {group:?}: {problem}")]
pub struct GroupError {
    group: String,
    problem: String,
}

#[derive(Debug, Clone)]
struct Grant {
    scopes: BTreeSet<OperatorScope>,
    tenants: Tenants,
}

/// Groups by name, and what they grant.
#[derive(Debug, Clone, Default)]
pub struct Groups(BTreeMap<String, Grant>);

impl Groups {
    /// Parses what configuration gives.
    pub fn parse(groups: &BTreeMap<String, GroupGrant>) -> Result<Self, GroupError> {
        let parsed = groups.iter().map(|(name, grant)| {
            let grant = parse(grant).map_err(|problem| GroupError { group: name.clone(), problem })?;
            Ok((name.clone(), grant))
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn parse(grant: &GroupGrant) -> Result<Grant, String> {
    let scopes = grant.scopes.iter().map(|text| text.parse().map_err(|error| format!("scope {text:?}: {error}")));
    let mut tenants = Tenants::new();
    for text in &grant.tenants {
        tenants.insert(text.parse().map_err(|error| format!("tenant {text:?}: {error}"))?, StoreAccess::All);
    }
    for text in &grant.stores {
        let wrong = || format!("store {text:?} must be tenant/store");
        let (tenant, store) = text.split_once('/').ok_or_else(wrong)?;
        let tenant: TenantId = tenant.parse().map_err(|_| wrong())?;
        let store: StoreId = store.parse().map_err(|_| wrong())?;
        let access = tenants.entry(tenant).or_insert_with(|| StoreAccess::Only(BTreeSet::new()));
        if let StoreAccess::Only(stores) = access {
            stores.insert(store);
        }
    }
    Ok(Grant { scopes: scopes.collect::<Result<_, _>>()?, tenants })
}

/// What the groups in `held` grant together: each its scopes at its tenants. A group that grants only scopes grants them
/// wherever the others lead, one that grants only tenants whatever the others allow. Nothing is mixed beyond that: who may
/// act at one tenant and read at another does each where its group says.
pub(super) fn granted(groups: &Groups, held: &[&str]) -> Result<Granted, TokenRefusal> {
    let grants: Vec<&Grant> = held.iter().filter_map(|name| groups.0.get(*name)).collect();
    let mut tenants = Tenants::new();
    for grant in &grants {
        add(&mut tenants, &grant.tenants);
    }
    if tenants.len() > TENANTS_MAX {
        tracing::warn!(TENANTS_MAX, "an operator's groups lead to more tenants than one token may; it is refused");
        return Err(TokenRefusal::Claim);
    }
    let mut scopes: BTreeMap<OperatorScope, Tenants> = BTreeMap::new();
    for scope in grants.iter().flat_map(|grant| grant.scopes.iter().copied()) {
        scopes.entry(scope).or_insert_with(|| {
            let mut at = Tenants::new();
            for grant in grants.iter().filter(|grant| grant.scopes.is_empty() || grant.scopes.contains(&scope)) {
                // Without tenants of its own it grants the scope wherever the others lead.
                add(&mut at, if grant.tenants.is_empty() { &tenants } else { &grant.tenants });
            }
            at
        });
    }
    Ok(Granted::each(scopes, tenants))
}

fn add(tenants: &mut Tenants, more: &Tenants) {
    for (tenant, access) in more {
        let merged = match (tenants.remove(tenant), access) {
            (None, access) => access.clone(),
            (Some(StoreAccess::Only(mut stores)), StoreAccess::Only(more)) => {
                stores.extend(more.iter().cloned());
                StoreAccess::Only(stores)
            }
            _ => StoreAccess::All,
        };
        tenants.insert(tenant.clone(), merged);
    }
}
