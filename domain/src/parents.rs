//! Parents: the places under which records are found by an alias.
//!
//! A parent splits into a base and the store it is looked at from. `t/T/s/S/eccmodels/M` and `t/T/designs/D` seen from
//! store S have the bases `eccmodels/M` and `designs/D`; `t/T/s/S` has the empty base. Under the tenant's parent one
//! sees stores, under a store's one sees records; so one key, (tenant, type, alias, base, store, id), serves all.

use crate::{AliasName, Collection, DtoType, SplitItem, StoreId, TenantId, Urn};

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

impl AliasName {
    /// Whether records can be found by this alias under `urn`. A model's parent is a model, never a store: otherwise a
    /// refresh of one model would name a whole store.
    pub fn leads_from(self, urn: &Urn) -> bool {
        match (self, urn) {
            (Self::ByStore, Urn::Store(..) | Urn::Tenant(_)) | (Self::ByTenant, Urn::Tenant(_)) => true,
            (Self::ByAccessPoint, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::AccessPoints,
            (Self::ByEccModel, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::EccModels,
            (Self::ByItem, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::Items,
            (Self::ByStoreEsl, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::Esls,
            // A design is its tenant's; seen from a store it leads to that store's links.
            (Self::ByDesign, Urn::TenantRecord(_, collection, _) | Urn::StoreRecord(_, _, collection, _)) => {
                *collection == Collection::Designs
            }
            _ => false,
        }
    }
}

impl SplitItem {
    /// Whether its parent is a place its alias leads from; records always fit.
    pub fn parent_fits(&self) -> bool {
        let urn = self.target.urn();
        match self.alias {
            _ if !self.target.is_parent() => true,
            Some(alias) => alias.leads_from(urn),
            // Only a tenant's design says by itself what lies under it.
            None => {
                self.dto_type == DtoType::StudioLink
                    && matches!(urn, Urn::TenantRecord(_, collection, _) if *collection == Collection::Designs)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_leads_only_from_its_own_kind_of_parent() {
        let places = [
            "t/T",
            "t/T/s/S",
            "t/T/designs/D",
            "t/T/s/S/designs/D",
            "t/T/s/S/eccmodels/M",
            "t/T/s/S/items/I",
            "t/T/s/S/esls/E",
            "t/T/s/S/accesspoints/A",
        ];
        for (alias, from) in [
            (AliasName::ByStore, vec!["t/T", "t/T/s/S"]),
            (AliasName::ByTenant, vec!["t/T"]),
            (AliasName::ByAccessPoint, vec!["t/T/s/S/accesspoints/A"]),
            (AliasName::ByEccModel, vec!["t/T/s/S/eccmodels/M"]),
            (AliasName::ByItem, vec!["t/T/s/S/items/I"]),
            (AliasName::ByStoreEsl, vec!["t/T/s/S/esls/E"]),
            (AliasName::ByDesign, vec!["t/T/designs/D", "t/T/s/S/designs/D"]),
        ] {
            let leads: Vec<&str> = places.into_iter().filter(|urn| alias.leads_from(&urn.parse().unwrap())).collect();
            assert_eq!(leads, from, "{alias}");
        }
    }
}
