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
    }
);

/// Four hours, in milliseconds: rendering many labels again is bulk work; ordinary changes go first. A written design,
/// which renders the same labels as its trigger does, has the same allowance.
pub const RENDER_ALLOWANCE_MS: i64 = 4 * 60 * 60 * 1000;

impl Trigger {
    /// The service that owns the trigger and whose queue the operation starts in.
    pub const fn service(self) -> ServiceName {
        match self {
            Self::ModelRefresh | Self::EccStoreRerender => ServiceName::EccImageRender,
            Self::DesignRefresh | Self::StudioStoreRerender => ServiceName::StudioRenderer,
        }
    }

    /// How far ahead the gateway sets the SLA timestamp when the operator names none, in milliseconds.
    pub const fn bulk_allowance_ms(self) -> i64 {
        match self {
            Self::ModelRefresh | Self::DesignRefresh | Self::EccStoreRerender | Self::StudioStoreRerender => {
                RENDER_ALLOWANCE_MS
            }
        }
    }

    /// The scope an operator needs.
    pub const fn scope(self) -> OperatorScope {
        match self {
            Self::ModelRefresh => OperatorScope::TriggerModelRefresh,
            Self::DesignRefresh => OperatorScope::TriggerDesignRefresh,
            Self::EccStoreRerender => OperatorScope::TriggerEccStoreRerender,
            Self::StudioStoreRerender => OperatorScope::TriggerStudioStoreRerender,
        }
    }
}
