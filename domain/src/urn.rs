//! URNs: the names of tenants, stores and records.

use std::{fmt, str::FromStr};

use crate::{Collection, DtoType, RecordId, RecordScope, StoreId, TenantId};

/// A parsed URN. `Display` gives back exactly the text it was parsed from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urn {
    /// `t/{tenant}`
    Tenant(TenantId),
    /// `t/{tenant}/s/{store}`
    Store(TenantId, StoreId),
    /// `t/{tenant}/{collection}/{id}`. As a *parent* any collection may stand here: `t/T/designs/D`.
    TenantRecord(TenantId, Collection, RecordId),
    /// `t/{tenant}/s/{store}/{collection}/{id}`. As a *parent* also a tenant's record seen from a store: `t/T/s/S/designs/D`.
    StoreRecord(TenantId, StoreId, Collection, RecordId),
}

/// Why a text is not a URN, or not the URN of that DTO type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrnError {
    /// The segments do not form a URN.
    #[error("is not a URN such as t/T, t/T/s/S, t/T/s/S/ecclinks/E or t/T/designs/D")]
    Shape,
    /// The URN is well formed but its collection or scope is not that of the DTO type.
    #[error("is not the URN of a {0}")]
    WrongType(DtoType),
}

impl Urn {
    /// The URN of a store-scoped or tenant-scoped record, checked against its type.
    pub fn record(dto_type: DtoType, text: &str) -> Result<Self, UrnError> {
        let urn: Self = text.parse()?;
        if urn.is_record_of(dto_type) { Ok(urn) } else { Err(UrnError::WrongType(dto_type)) }
    }

    /// The URN of the store-scoped record `id` of `dto_type`.
    pub fn in_store(tenant: &TenantId, store: &StoreId, dto_type: DtoType, id: &RecordId) -> Self {
        Self::StoreRecord(tenant.clone(), store.clone(), dto_type.collection(), id.clone())
    }

    /// The URN of the tenant-scoped record `id` of `dto_type`.
    pub fn in_tenant(tenant: &TenantId, dto_type: DtoType, id: &RecordId) -> Self {
        Self::TenantRecord(tenant.clone(), dto_type.collection(), id.clone())
    }

    /// Whether this names a record of that type (collection and scope agree).
    pub fn is_record_of(&self, dto_type: DtoType) -> bool {
        match self {
            Self::StoreRecord(_, _, collection, _) => {
                *collection == dto_type.collection() && dto_type.scope() == RecordScope::Store
            }
            Self::TenantRecord(_, collection, _) => {
                *collection == dto_type.collection() && dto_type.scope() == RecordScope::Tenant
            }
            Self::Tenant(_) | Self::Store(_, _) => false,
        }
    }

    /// The tenant everything here belongs to.
    pub fn tenant(&self) -> &TenantId {
        match self {
            Self::Tenant(tenant)
            | Self::Store(tenant, _)
            | Self::TenantRecord(tenant, _, _)
            | Self::StoreRecord(tenant, _, _, _) => tenant,
        }
    }

    /// The store, where the URN lies in one.
    pub fn store(&self) -> Option<&StoreId> {
        match self {
            Self::Store(_, store) | Self::StoreRecord(_, store, _, _) => Some(store),
            Self::Tenant(_) | Self::TenantRecord(_, _, _) => None,
        }
    }

    /// The last segment, where the URN names a record.
    pub fn record_id(&self) -> Option<&RecordId> {
        match self {
            Self::TenantRecord(_, _, id) | Self::StoreRecord(_, _, _, id) => Some(id),
            Self::Tenant(_) | Self::Store(_, _) => None,
        }
    }

    /// A tenant's parent as it is seen from one of its stores: `t/T/designs/D` from S is `t/T/s/S/designs/D`. What lies in
    /// a store is moved to that store.
    #[must_use]
    pub fn seen_from(&self, store: &StoreId) -> Self {
        match self {
            Self::Tenant(tenant) | Self::Store(tenant, _) => Self::Store(tenant.clone(), store.clone()),
            Self::TenantRecord(tenant, collection, id) | Self::StoreRecord(tenant, _, collection, id) => {
                Self::StoreRecord(tenant.clone(), store.clone(), *collection, id.clone())
            }
        }
    }

    /// The record of another type with the same tenant, store and id: link, images and status of a label share its id.
    #[must_use]
    pub fn sibling(&self, dto_type: DtoType) -> Option<Self> {
        match self {
            Self::StoreRecord(tenant, store, _, id) => Some(Self::in_store(tenant, store, dto_type, id)),
            Self::Tenant(_) | Self::Store(_, _) | Self::TenantRecord(_, _, _) => None,
        }
    }
}

impl FromStr for Urn {
    type Err = UrnError;

    fn from_str(text: &str) -> Result<Self, UrnError> {
        fn id<T: FromStr>(segment: &str) -> Result<T, UrnError> {
            segment.parse().map_err(|_| UrnError::Shape)
        }
        let mut segments = text.split('/');
        let mut parts = [""; 6];
        let mut len = 0;
        for slot in &mut parts {
            let Some(segment) = segments.next() else { break };
            *slot = segment;
            len += 1;
        }
        if segments.next().is_some() {
            return Err(UrnError::Shape);
        }
        match (len, parts) {
            (2, ["t", t, ..]) => Ok(Self::Tenant(id(t)?)),
            (4, ["t", t, "s", s, ..]) => Ok(Self::Store(id(t)?, id(s)?)),
            (4, ["t", t, collection, record, ..]) => Ok(Self::TenantRecord(id(t)?, id(collection)?, id(record)?)),
            (6, ["t", t, "s", s, collection, record]) => {
                Ok(Self::StoreRecord(id(t)?, id(s)?, id(collection)?, id(record)?))
            }
            _ => Err(UrnError::Shape),
        }
    }
}

impl fmt::Display for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(t) => write!(f, "t/{t}"),
            Self::Store(t, s) => write!(f, "t/{t}/s/{s}"),
            Self::TenantRecord(t, c, id) => write!(f, "t/{t}/{c}/{id}"),
            Self::StoreRecord(t, s, c, id) => write!(f, "t/{t}/s/{s}/{c}/{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for text in ["t/T", "t/T/s/S", "t/T/designs/D", "t/T/s/S/ecclinks/E-1", "t/T/s/S/designs/D"] {
            assert_eq!(text.parse::<Urn>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refuses_other_shapes() {
        for text in [
            "",
            "t",
            "t/",
            "t/T/",
            "t/T/s",
            "t/T/s/S/ecclinks",
            "t/T/s/S/ecclinks/E/x",
            "T/T",
            "t/T/s/../esls/E",
            "t/T/nothing/X",
        ] {
            assert!(text.parse::<Urn>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_tenants_parent_is_seen_from_each_store() {
        let store: StoreId = "S".parse().unwrap();
        for (parent, seen) in [("t/T/designs/D", "t/T/s/S/designs/D"), ("t/T", "t/T/s/S"), ("t/T/s/R", "t/T/s/S")] {
            assert_eq!(parent.parse::<Urn>().unwrap().seen_from(&store).to_string(), seen);
        }
    }

    #[test]
    fn a_record_has_its_types_collection_and_scope() {
        assert!(Urn::record(DtoType::EccLink, "t/T/s/S/ecclinks/E").is_ok());
        assert!(Urn::record(DtoType::EccLink, "t/T/s/S/eccmodels/E").is_err());
        assert!(Urn::record(DtoType::Design, "t/T/s/S/designs/D").is_err());
        assert!(Urn::record(DtoType::EccLink, "t/T/ecclinks/E").is_err());
    }
}
