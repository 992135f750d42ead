//! Aliases: under which parents a record is found. Derived from the record itself, so they cannot drift from it.

use domain::{AliasName, Collection, DtoType, Parent, RecordScope, Urn};

use crate::record::Record;

/// One alias of a record: the relation and the base of the parent (see [`domain::Parent`]); the parent's tenant and store
/// are the record's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AliasKey {
    /// The relation.
    pub alias: AliasName,
    /// `{collection}/{id}` of the parent, or empty for the store or tenant itself.
    pub base: String,
}

/// How aliases are derived. A changed rule gets a larger version, and the index is rebuilt to it (`crate::reindex`).
#[derive(Debug, Clone, Copy)]
pub struct AliasRules {
    /// Only grows.
    pub(crate) version: i64,
    /// The derivation.
    pub(crate) derive: fn(DtoType, &Urn, &Record) -> Vec<AliasKey>,
}

impl AliasRules {
    /// The rules of this build.
    pub(crate) const CURRENT: Self = Self { version: 1, derive: aliases_of };

    /// The aliases of a record, sorted.
    pub(crate) fn aliases(&self, dto_type: DtoType, urn: &Urn, record: &Record) -> Vec<AliasKey> {
        let mut aliases = (self.derive)(dto_type, urn, record);
        aliases.sort();
        aliases
    }
}

/// The domain's table: which field or part of the URN each alias comes from.
fn aliases_of(dto_type: DtoType, urn: &Urn, record: &Record) -> Vec<AliasKey> {
    let under = |collection: Collection, id: &str| format!("{collection}/{id}");
    dto_type
        .aliases()
        .iter()
        .filter_map(|alias| {
            let base = match (alias, record) {
                (AliasName::ByStore | AliasName::ByTenant, _) => String::new(),
                (AliasName::ByStoreEsl, _) => under(Collection::Esls, urn.record_id()?.as_str()),
                (AliasName::ByAccessPoint, Record::StoreEsl(esl)) => {
                    under(Collection::AccessPoints, &esl.accesspoint_id)
                }
                (AliasName::ByEccModel, Record::EccLink(link)) => under(Collection::EccModels, &link.model_id),
                (AliasName::ByItem, Record::EccLink(link)) => under(Collection::Items, &link.item_id),
                (AliasName::ByItem, Record::StudioLink(link)) => under(Collection::Items, &link.item_id),
                (AliasName::ByDesign, Record::StudioLink(link)) => under(Collection::Designs, &link.design_id),
                (AliasName::ByAccessPoint | AliasName::ByEccModel | AliasName::ByItem | AliasName::ByDesign, _) => {
                    return None;
                }
            };
            Some(AliasKey { alias: *alias, base })
        })
        .collect()
}

/// Why a parent cannot be looked under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParentFault {
    /// The type has no such alias.
    #[error("is not an alias of that type")]
    NoAlias,
    /// The alias has parents of another kind.
    #[error("is not a parent of that alias")]
    Kind,
    /// The alias has such parents, but records are listed one level below.
    #[error("must be a store's parent; ask for the stores of a tenant's parent first")]
    TenantLevel,
    /// Only a tenant's parent has stores below it.
    #[error("must be a tenant's parent of records that lie in stores")]
    StoreLevel,
}

/// Checks that `urn` is a parent, on either level, of that alias of that type.
pub(crate) fn parent(dto_type: DtoType, alias: AliasName, urn: &Urn) -> Result<Parent, ParentFault> {
    if !dto_type.aliases().contains(&alias) {
        return Err(ParentFault::NoAlias);
    }
    let fits = match (alias, urn) {
        (AliasName::ByStore, Urn::Store(..) | Urn::Tenant(_)) | (AliasName::ByTenant, Urn::Tenant(_)) => true,
        (AliasName::ByDesign, Urn::StoreRecord(_, _, collection, _) | Urn::TenantRecord(_, collection, _)) => {
            *collection == Collection::Designs
        }
        (AliasName::ByAccessPoint, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::AccessPoints,
        (AliasName::ByEccModel, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::EccModels,
        (AliasName::ByItem, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::Items,
        (AliasName::ByStoreEsl, Urn::StoreRecord(_, _, collection, _)) => *collection == Collection::Esls,
        _ => false,
    };
    if fits { Ok(Parent::from(urn)) } else { Err(ParentFault::Kind) }
}

/// As [`parent`], where the records themselves lie below: a store's parent, or the tenant of tenant-scoped records.
pub(crate) fn parent_of_records(dto_type: DtoType, alias: AliasName, urn: &Urn) -> Result<Parent, ParentFault> {
    let parent = parent(dto_type, alias, urn)?;
    if parent.store.is_none() && dto_type.scope() == RecordScope::Store {
        return Err(ParentFault::TenantLevel);
    }
    Ok(parent)
}

/// As [`parent`], where stores lie below: a tenant's parent.
pub(crate) fn parent_of_stores(dto_type: DtoType, alias: AliasName, urn: &Urn) -> Result<Parent, ParentFault> {
    let parent = parent(dto_type, alias, urn)?;
    if parent.store.is_some() || dto_type.scope() == RecordScope::Tenant {
        return Err(ParentFault::StoreLevel);
    }
    Ok(parent)
}

#[cfg(test)]
mod tests {
    use proto::records::v1 as wire;

    use super::*;

    /// A record of that type that names item I, model M, design D and access point A wherever it can.
    fn record(dto_type: DtoType) -> Record {
        let (item_id, model_id, design_id) = ("I".to_owned(), "M".to_owned(), "D".to_owned());
        match dto_type {
            DtoType::StoreItemValues => Record::StoreItemValues(wire::StoreItemValues::default()),
            DtoType::EslType => Record::EslType(wire::EslType::default()),
            DtoType::AccessPoint => Record::AccessPoint(wire::AccessPoint::default()),
            DtoType::StoreEsl => {
                Record::StoreEsl(wire::StoreEsl { accesspoint_id: "A".to_owned(), ..wire::StoreEsl::default() })
            }
            DtoType::EccModel => Record::EccModel(wire::EccModel::default()),
            DtoType::EccLink => Record::EccLink(wire::EccLink { item_id, model_id, ..wire::EccLink::default() }),
            DtoType::Design => Record::Design(wire::Design::default()),
            DtoType::StudioLink => Record::StudioLink(wire::StudioLink { item_id, design_id }),
            DtoType::EccEslImage | DtoType::StudioEslImage => Record::SourceEslImage(wire::SourceEslImage::default()),
            DtoType::EslImage => Record::EslImage(wire::EslImage::default()),
            DtoType::StoreEslStatus => Record::StoreEslStatus(Box::default()),
            DtoType::AccessPointStatus => Record::AccessPointStatus(wire::AccessPointStatus::default()),
        }
    }

    #[test]
    fn each_type_has_the_aliases_of_the_domains_table() {
        use DtoType as D;
        let (in_store, item) = (("by_store", ""), ("by_item", "items/I"));
        let label = ("by_storeesl", "esls/E");
        let table = [
            (D::StoreItemValues, "t/T/s/S/items/I", vec![]),
            (D::EslType, "t/T/esltypes/X", vec![]),
            (D::AccessPoint, "t/T/s/S/accesspoints/A", vec![in_store]),
            (D::StoreEsl, "t/T/s/S/esls/E", vec![in_store, ("by_accesspoint", "accesspoints/A")]),
            (D::EccModel, "t/T/s/S/eccmodels/M", vec![in_store]),
            (D::EccLink, "t/T/s/S/ecclinks/E", vec![in_store, ("by_eccmodel", "eccmodels/M"), item, label]),
            (D::Design, "t/T/designs/D", vec![("by_tenant", "")]),
            (D::StudioLink, "t/T/s/S/studiolinks/E", vec![in_store, item, label, ("by_design", "designs/D")]),
            (D::EccEslImage, "t/T/s/S/ecceslimages/E", vec![in_store]),
            (D::StudioEslImage, "t/T/s/S/studioeslimages/E", vec![in_store]),
            (D::EslImage, "t/T/s/S/eslimages/E", vec![in_store, label]),
            (D::StoreEslStatus, "t/T/s/S/eslstatuses/E", vec![in_store]),
            (D::AccessPointStatus, "t/T/s/S/accesspointstatuses/A", vec![]),
        ];
        assert_eq!(table.len(), DtoType::ALL.len());
        for (dto_type, urn, expected) in table {
            let urn = Urn::record(dto_type, urn).unwrap();
            let found = AliasRules::CURRENT.aliases(dto_type, &urn, &record(dto_type));
            let found: Vec<_> = found.iter().map(|key| (key.alias.as_str(), key.base.as_str())).collect();
            assert_eq!(found, expected, "{dto_type}");
        }
    }

    #[test]
    fn parents_have_the_kind_and_level_of_their_alias() {
        use AliasName as A;
        use DtoType as D;
        use ParentFault as F;
        let urn = |text: &str| text.parse::<Urn>().unwrap();
        for (dto_type, alias, text, records, stores) in [
            (D::EccLink, A::ByEccModel, "t/T/s/S/eccmodels/M", None, Some(F::StoreLevel)),
            (D::EccLink, A::ByEccModel, "t/T/s/S/items/I", Some(F::Kind), Some(F::Kind)),
            (D::EccLink, A::ByDesign, "t/T/s/S/designs/D", Some(F::NoAlias), Some(F::NoAlias)),
            (D::StudioLink, A::ByDesign, "t/T/s/S/designs/D", None, Some(F::StoreLevel)),
            (D::StudioLink, A::ByDesign, "t/T/designs/D", Some(F::TenantLevel), None),
            (D::EccLink, A::ByItem, "t/T/items/I", Some(F::Kind), Some(F::Kind)),
            (D::EccLink, A::ByStore, "t/T", Some(F::TenantLevel), None),
            (D::EccLink, A::ByStore, "t/T/s/S", None, Some(F::StoreLevel)),
            (D::StoreEsl, A::ByAccessPoint, "t/T/s/S/accesspoints/A", None, Some(F::StoreLevel)),
            (D::EslImage, A::ByStoreEsl, "t/T/s/S/esls/E", None, Some(F::StoreLevel)),
            (D::Design, A::ByTenant, "t/T", None, Some(F::StoreLevel)),
            (D::Design, A::ByTenant, "t/T/s/S", Some(F::Kind), Some(F::Kind)),
        ] {
            let urn = urn(text);
            assert_eq!(parent_of_records(dto_type, alias, &urn).err(), records, "{dto_type} {alias} {text}");
            assert_eq!(parent_of_stores(dto_type, alias, &urn).err(), stores, "{dto_type} {alias} {text}");
        }
    }
}
