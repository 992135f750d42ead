//! The closed list of DTO types, their collections, and the aliases records are found under.

use std::{fmt, str::FromStr};

/// Where a record lies: under its tenant, or under one of its stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordScope {
    /// `t/{tenant}/{collection}/{id}`
    Tenant,
    /// `t/{tenant}/s/{store}/{collection}/{id}`
    Store,
}

macro_rules! closed_text_enum {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every value, in the order of the domain's table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The text on the wire, in the database and in URNs.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text { $($text => Ok(Self::$variant),)+ _ => Err(UnknownName($what)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use closed_text_enum;

/// A text that is not in a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a known {0}")]
pub struct UnknownName(pub &'static str);

closed_text_enum!(
    /// A type of record, with its version.
    DtoType, "DTO type" {
        /// Values of an item: name, price, GTIN …
        StoreItemValues = "storeitemvalues.v1",
        /// A kind of panel: size, palette, rotation.
        EslType = "esltype.v1",
        /// A radio access point: driver, address.
        AccessPoint = "accesspoint.v1",
        /// A label as hardware: its type, access point and hardware address.
        StoreEsl = "storeesl.v1",
        /// An ECC layout.
        EccModel = "eccmodel.v1",
        /// Item + ECC model + parameters of a label.
        EccLink = "ecclink.v1",
        /// A Studio design.
        Design = "design.v1",
        /// Item + design of a label.
        StudioLink = "studiolink.v1",
        /// The picture that the ECC renderer made.
        EccEslImage = "ecceslimage.v1",
        /// The picture that the Studio renderer made.
        StudioEslImage = "studioeslimage.v1",
        /// Which picture a label shall show.
        EslImage = "eslimage.v1",
        /// What is known of a label's delivery.
        StoreEslStatus = "storeeslstatus.v1",
        /// What is known of an access point.
        AccessPointStatus = "accesspointstatus.v1",
    }
);

closed_text_enum!(
    /// The collection segment of a URN.
    Collection, "collection" {
        /// `items`
        Items = "items",
        /// `esltypes`
        EslTypes = "esltypes",
        /// `accesspoints`
        AccessPoints = "accesspoints",
        /// `esls`
        Esls = "esls",
        /// `eccmodels`
        EccModels = "eccmodels",
        /// `ecclinks`
        EccLinks = "ecclinks",
        /// `designs`
        Designs = "designs",
        /// `studiolinks`
        StudioLinks = "studiolinks",
        /// `ecceslimages`
        EccEslImages = "ecceslimages",
        /// `studioeslimages`
        StudioEslImages = "studioeslimages",
        /// `eslimages`
        EslImages = "eslimages",
        /// `eslstatuses`
        EslStatuses = "eslstatuses",
        /// `accesspointstatuses`
        AccessPointStatuses = "accesspointstatuses",
    }
);

closed_text_enum!(
    /// The name of an alias: the relation under which a record is found below a parent.
    AliasName, "alias name" {
        /// Below its store.
        ByStore = "by_store",
        /// Below its tenant.
        ByTenant = "by_tenant",
        /// Labels below their access point.
        ByAccessPoint = "by_accesspoint",
        /// ECC links below their model.
        ByEccModel = "by_eccmodel",
        /// Links below their item.
        ByItem = "by_item",
        /// Records of a label below the label.
        ByStoreEsl = "by_storeesl",
        /// Studio links below their design.
        ByDesign = "by_design",
    }
);

impl DtoType {
    /// The collection its records lie in.
    pub const fn collection(self) -> Collection {
        match self {
            Self::StoreItemValues => Collection::Items,
            Self::EslType => Collection::EslTypes,
            Self::AccessPoint => Collection::AccessPoints,
            Self::StoreEsl => Collection::Esls,
            Self::EccModel => Collection::EccModels,
            Self::EccLink => Collection::EccLinks,
            Self::Design => Collection::Designs,
            Self::StudioLink => Collection::StudioLinks,
            Self::EccEslImage => Collection::EccEslImages,
            Self::StudioEslImage => Collection::StudioEslImages,
            Self::EslImage => Collection::EslImages,
            Self::StoreEslStatus => Collection::EslStatuses,
            Self::AccessPointStatus => Collection::AccessPointStatuses,
        }
    }

    /// The type of the record, of the same id, that is made from it and holds nothing else: the picture of a renderer leads to the
    /// picture to show. Where that one has not arrived, this one has not either.
    pub const fn leads_to(self) -> Option<Self> {
        match self {
            Self::EccEslImage | Self::StudioEslImage => Some(Self::EslImage),
            _ => None,
        }
    }

    /// Whether its records lie under a tenant or under a store.
    pub const fn scope(self) -> RecordScope {
        match self {
            Self::EslType | Self::Design => RecordScope::Tenant,
            _ => RecordScope::Store,
        }
    }

    /// The aliases its records have; deriving them from a record is DTOflow's.
    pub const fn aliases(self) -> &'static [AliasName] {
        use AliasName as A;
        match self {
            Self::StoreItemValues | Self::EslType | Self::AccessPointStatus => &[],
            Self::AccessPoint | Self::EccModel | Self::EccEslImage | Self::StudioEslImage | Self::StoreEslStatus => {
                &[A::ByStore]
            }
            Self::StoreEsl => &[A::ByAccessPoint, A::ByStore],
            Self::EccLink => &[A::ByEccModel, A::ByItem, A::ByStoreEsl, A::ByStore],
            Self::Design => &[A::ByTenant],
            Self::StudioLink => &[A::ByDesign, A::ByItem, A::ByStoreEsl, A::ByStore],
            Self::EslImage => &[A::ByStore, A::ByStoreEsl],
        }
    }
}

impl Collection {
    /// The DTO type whose records lie in this collection.
    pub fn dto_type(self) -> DtoType {
        // Total: the two enums are in the same order and `collection_round_trip` holds it.
        DtoType::ALL.iter().copied().find(|dto_type| dto_type.collection() == self).unwrap_or(DtoType::StoreItemValues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_round_trip() {
        for dto_type in DtoType::ALL {
            assert_eq!(dto_type.collection().dto_type(), *dto_type);
            assert_eq!(dto_type.as_str().parse::<DtoType>(), Ok(*dto_type));
        }
        assert_eq!(DtoType::ALL.len(), Collection::ALL.len());
    }
}
