//! Operators: people or scripts with a verified token.

use std::{fmt, str::FromStr};

use crate::{dto_type::UnknownName, dto_type::closed_text_enum, reason::is_clean};

/// Longest subject, in bytes (what identity providers issue stays below).
pub(crate) const SUBJECT_MAX_BYTES: usize = 255;

/// The `sub` of a verified operator token. Set by the gateway from the token, never from a body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OperatorSubject(Box<str>);

/// Why a text is not a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {SUBJECT_MAX_BYTES} bytes without control characters, and not begin with svc:")]
pub struct SubjectError;

impl OperatorSubject {
    /// The subject as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperatorSubject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        // What begins so names a service, in audit rows too; no token of an operator may.
        let is_service = text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("svc:"));
        if text.trim().is_empty() || text.len() > SUBJECT_MAX_BYTES || !text.chars().all(is_clean) || is_service {
            return Err(SubjectError);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for OperatorSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

closed_text_enum!(
    /// What an operator's token may allow; each operation of the REST API names the one it needs.
    OperatorScope, "scope" {
        /// Call the model-refresh trigger.
        TriggerModelRefresh = "trigger:model-refresh",
        /// Call the design-refresh trigger.
        TriggerDesignRefresh = "trigger:design-refresh",
        /// Call the trigger that renders a store's ECC labels again.
        TriggerEccStoreRerender = "trigger:ecc-store-rerender",
        /// Call the trigger that renders a store's Studio labels again.
        TriggerStudioStoreRerender = "trigger:studio-store-rerender",
        /// Call the trigger that sends a store's pictures again.
        TriggerStoreReexport = "trigger:store-reexport",
        /// Call the trigger that sends an access point's pictures again.
        TriggerAccessPointReexport = "trigger:access-point-reexport",
        /// Call the trigger that sends a label's picture again.
        TriggerLabelReexport = "trigger:label-reexport",
        /// Touch records.
        TriggerTouch = "trigger:touch",
        /// Follow operations.
        OperationsRead = "operations:read",
        /// Pause, resume, cancel and throttle operations, and retry what failed of them.
        OperationsControl = "operations:control",
        /// Approve or decline operations that another operator asked for.
        OperationsApprove = "operations:approve",
        /// Let an operation go ahead without a second operator. Each use is told in the audit log and by webhook.
        OperationsBreakGlass = "operations:break-glass",
        /// Put on and take off the brake, which holds all operator work of all tenants.
        OperationsBrake = "operations:brake",
        /// See stores, models, labels and their pictures.
        LabelsRead = "labels:read",
        /// Read the audit log.
        AuditRead = "audit:read",
    }
);
