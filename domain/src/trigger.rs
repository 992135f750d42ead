//! The named triggers: what an operator can force.

use crate::{OperatorScope, ServiceName, dto_type::UnknownName, dto_type::closed_text_enum};
use std::{fmt, str::FromStr};

closed_text_enum!(
    /// A trigger that starts an operation. (Touching records starts none, so it is not in this list.)
    Trigger, "trigger" {
        /// Render every label linked to one ECC model of a store again.
        ModelRefresh = "model-refresh",
        /// Render every label linked to one Studio design of a tenant again, in all its stores.
        DesignRefresh = "design-refresh",
        /// Render every label of a store that is linked to an ECC model again.
        EccStoreRerender = "ecc-store-rerender",
        /// Render every label of a store that is linked to a Studio design again.
        StudioStoreRerender = "studio-store-rerender",
        /// Send the picture of every label of a store again.
        StoreReexport = "store-reexport",
        /// Send the picture of every label of an access point again.
        AccessPointReexport = "access-point-reexport",
        /// Send the picture of one label again.
        LabelReexport = "label-reexport",
    }
);

/// Four hours, in milliseconds: rendering many labels again is bulk work; ordinary changes go first. A written design,
/// which renders the same labels as its trigger does, has the same allowance.
pub const RENDER_ALLOWANCE_MS: i64 = 4 * 60 * 60 * 1000;

/// One hour, in milliseconds: sending the labels of a store or an access point again is bulk work too, but shelves may be
/// empty until it is done.
const REEXPORT_ALLOWANCE_MS: i64 = 60 * 60 * 1000;

impl Trigger {
    /// The service that owns the trigger and whose queue the operation starts in.
    pub const fn service(self) -> ServiceName {
        match self {
            Self::ModelRefresh | Self::EccStoreRerender => ServiceName::EccImageRender,
            Self::DesignRefresh | Self::StudioStoreRerender => ServiceName::StudioRenderer,
            Self::StoreReexport | Self::AccessPointReexport | Self::LabelReexport => ServiceName::HardwareExporter,
        }
    }

    /// How far ahead the gateway sets the SLA timestamp when the operator names none, in milliseconds.
    pub const fn bulk_allowance_ms(self) -> i64 {
        match self {
            Self::ModelRefresh | Self::DesignRefresh | Self::EccStoreRerender | Self::StudioStoreRerender => {
                RENDER_ALLOWANCE_MS
            }
            Self::StoreReexport | Self::AccessPointReexport => REEXPORT_ALLOWANCE_MS,
            // Somebody stands before it.
            Self::LabelReexport => 0,
        }
    }

    /// The scope an operator needs.
    pub const fn scope(self) -> OperatorScope {
        match self {
            Self::ModelRefresh => OperatorScope::TriggerModelRefresh,
            Self::DesignRefresh => OperatorScope::TriggerDesignRefresh,
            Self::EccStoreRerender => OperatorScope::TriggerEccStoreRerender,
            Self::StudioStoreRerender => OperatorScope::TriggerStudioStoreRerender,
            Self::StoreReexport => OperatorScope::TriggerStoreReexport,
            Self::AccessPointReexport => OperatorScope::TriggerAccessPointReexport,
            Self::LabelReexport => OperatorScope::TriggerLabelReexport,
        }
    }
}
