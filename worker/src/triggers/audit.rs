//! The audit row of a refusal.

use domain::{ErrorCode, Refusal};
use proto::cqs::v1::{AuditEntry, AuditOutcome};
use sha2::{Digest as _, Sha256};
use tonic::Status;

use super::calls::Calls;
use crate::runtime::cause;

/// A refusal, and whose audit row it has.
#[derive(Debug)]
pub(super) enum Denied {
    /// Refused here: the row is written here.
    Here(Refusal),
    /// Refused by CQS's `SelfEnqueue`, which has audited it; or the platform failed, which is no refusal.
    Elsewhere(Refusal),
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self::Here(refusal)
    }
}

/// Writes the row where it is ours to write, and gives the status for the caller. A refusal stands even when its row
/// cannot be written; then our log has it.
pub(super) async fn refuse(calls: &Calls, attempt: AuditEntry, denied: Denied) -> Status {
    let tracking_id = attempt.tracking_id.clone();
    let refusal = match denied {
        Denied::Elsewhere(refusal) => refusal,
        Denied::Here(refusal) => {
            let entry = AuditEntry {
                outcome: AuditOutcome::Refused.into(),
                error_code: refusal.code.to_string(),
                detail: cause(refusal.to_string()),
                ..attempt
            };
            if let Err(error) = calls.append_audit(entry).await {
                tracing::error!(%error, tracking_id, %refusal, "a refusal could not be audited");
            }
            refusal
        }
    };
    tracing::warn!(tracking_id, %refusal, "trigger refused");
    proto::status_from_refusal(&refusal)
}

/// SHA-256 of a request as the wire carries it, in 64 hex digits.
pub(super) fn request_digest(request: &impl prost::Message) -> String {
    domain::hex(Sha256::digest(request.encode_to_vec()))
}

/// What the platform failed with, for the operator: a refusal of our own identity is our configuration's fault, not the
/// operator's lack of permission.
pub(super) fn platform_failure(refusal: Refusal) -> Denied {
    Denied::Elsewhere(match refusal.code {
        ErrorCode::Unavailable
        | ErrorCode::DeadlineExceeded
        | ErrorCode::ResourceExhausted
        | ErrorCode::StorageFull => refusal,
        _ => {
            tracing::error!(%refusal, "the platform refused a call of the trigger's service");
            Refusal::internal()
        }
    })
}
