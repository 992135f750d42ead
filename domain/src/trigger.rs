//! The named triggers: what an operator can force.

use crate::{OperatorScope, ServiceName, dto_type::UnknownName, dto_type::closed_text_enum};
use std::{fmt, str::FromStr};

closed_text_enum!(
    /// A trigger that starts an operation. (Touching records starts none, so it is not in this list.)
    Trigger, "trigger" {
        /// Render every label linked to one ECC model of a store again.
        ModelRefresh = "model-refresh",
    }
);

/// Four hours, in milliseconds: a refresh is bulk work; ordinary changes go first.
const REFRESH_ALLOWANCE_MS: i64 = 4 * 60 * 60 * 1000;

impl Trigger {
    /// The service that owns the trigger and whose queue the operation starts in.
    pub const fn service(self) -> ServiceName {
        match self {
            Self::ModelRefresh => ServiceName::EccImageRender,
        }
    }

    /// How far ahead the gateway sets the SLA timestamp when the operator names none, in milliseconds.
    pub const fn bulk_allowance_ms(self) -> i64 {
        match self {
            Self::ModelRefresh => REFRESH_ALLOWANCE_MS,
        }
    }

    /// The scope an operator needs.
    pub const fn scope(self) -> OperatorScope {
        match self {
            Self::ModelRefresh => OperatorScope::TriggerModelRefresh,
        }
    }
}
