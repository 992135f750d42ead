//! Groups of a provider, and what each grants.

use std::collections::{BTreeMap, BTreeSet};

use domain::{OperatorScope, StoreId, TenantId};
use serde::Deserialize;

use super::{StoreAccess, TENANTS_MAX, verifier::TokenRefusal};

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
    tenants: BTreeMap<TenantId, StoreAccess>,
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
    let mut tenants = BTreeMap::new();
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

/// Scopes and tenants, as an operator holds them.
pub(super) type Granted = (BTreeSet<OperatorScope>, BTreeMap<TenantId, StoreAccess>);

/// What the groups in `held` grant together. A group that grants only scopes grants them wherever the others lead, one
/// that grants only tenants whatever the others allow. Beyond that an operator has one set of scopes for all of its
/// tenants: groups that would need two sets (reading here, acting there) are refused rather than mixed, since mixing would
/// grant what no group does.
pub(super) fn granted(groups: &Groups, held: &[&str]) -> Result<Granted, TokenRefusal> {
    let grants: Vec<&Grant> = held.iter().filter_map(|name| groups.0.get(*name)).collect();
    let scopes: BTreeSet<OperatorScope> = grants.iter().flat_map(|grant| grant.scopes.iter().copied()).collect();
    let mut tenants: BTreeMap<TenantId, StoreAccess> = BTreeMap::new();
    for grant in &grants {
        for (tenant, access) in &grant.tenants {
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
    let anywhere =
        |scope: &OperatorScope| grants.iter().any(|grant| grant.tenants.is_empty() && grant.scopes.contains(scope));
    let reaches = |grant: &Grant, tenant: &TenantId, store: Option<&StoreId>| match (grant.tenants.get(tenant), store) {
        (None, _) => false,
        (Some(access), None) => *access == StoreAccess::All,
        (Some(access), Some(store)) => access.allows(store),
    };
    let held_together = |scope: &OperatorScope, tenant: &TenantId, store: Option<&StoreId>| {
        let together =
            |grant: &&Grant| (grant.scopes.is_empty() || grant.scopes.contains(scope)) && reaches(grant, tenant, store);
        anywhere(scope) || grants.iter().any(together)
    };
    let nothing_new = scopes.iter().all(|scope| {
        tenants.iter().all(|(tenant, access)| match access {
            StoreAccess::All => held_together(scope, tenant, None),
            StoreAccess::Only(stores) => stores.iter().all(|store| held_together(scope, tenant, Some(store))),
        })
    });
    if !nothing_new || tenants.len() > TENANTS_MAX {
        tracing::warn!("an operator's groups grant different scopes for different tenants; such a token is refused");
        return Err(TokenRefusal::Claim);
    }
    Ok((scopes, tenants))
}
