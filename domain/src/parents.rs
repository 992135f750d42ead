//! Parents: the places under which records are found by an alias.
//!
//! A parent splits into a base and the store it is looked at from. `t/T/s/S/eccmodels/M` and `t/T/designs/D` seen from
//! store S have the bases `eccmodels/M` and `designs/D`; `t/T/s/S` has the empty base. Under the tenant's parent one
//! sees stores, under a store's one sees records; so one key, (tenant, type, alias, base, store, id), serves all.

use crate::{StoreId, TenantId, Urn};

/// A parent URN taken apart for the alias index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parent {
    /// The tenant.
    pub tenant: TenantId,
    /// The store it is seen from; none at the tenant's level.
    pub store: Option<StoreId>,
    /// `{collection}/{id}`, or empty for a store or tenant itself.
    pub base: String,
}

impl From<&Urn> for Parent {
    fn from(urn: &Urn) -> Self {
        let base = match urn {
            Urn::Tenant(_) | Urn::Store(_, _) => String::new(),
            Urn::TenantRecord(_, collection, id) | Urn::StoreRecord(_, _, collection, id) => {
                format!("{collection}/{id}")
            }
        };
        Self { tenant: urn.tenant().clone(), store: urn.store().cloned(), base }
    }
}
