//! The one table of error codes. HTTP status (gateway) and gRPC code (proto) are two total matches over it.

use std::fmt;

use crate::dto_type::{UnknownName, closed_text_enum};
use std::str::FromStr;

closed_text_enum!(
    /// Why something was refused or failed, as a caller can act on it.
    ErrorCode, "error code" {
        /// The request is wrong; the field says where.
        InvalidArgument = "INVALID_ARGUMENT",
        /// No valid identity was shown.
        Unauthenticated = "UNAUTHENTICATED",
        /// The identity is known but may not do this.
        PermissionDenied = "PERMISSION_DENIED",
        /// Unknown, or belongs to a tenant the caller may not see.
        NotFound = "NOT_FOUND",
        /// The tracking id names another request.
        AlreadyExists = "ALREADY_EXISTS",
        /// The lease is over or was never the caller's; nothing was changed.
        StaleLease = "STALE_LEASE",
        /// The state does not allow it.
        FailedPrecondition = "FAILED_PRECONDITION",
        /// A bound is reached; try again later.
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        /// No space is left for writes; nothing was changed, and reads go on.
        StorageFull = "STORAGE_FULL",
        /// More bytes than allowed.
        PayloadTooLarge = "PAYLOAD_TOO_LARGE",
        /// A needed service does not answer; nothing was changed.
        Unavailable = "UNAVAILABLE",
        /// No answer in time: the outcome is unknown, repeat with the same tracking id.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// A fault of ours.
        Internal = "INTERNAL",
    }
);

/// A refusal as it crosses room and process borders: code, field and a text for people outside. Causes for us are logged
/// where they are handled, never put in here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// What kind.
    pub code: ErrorCode,
    /// The field of the request that is wrong, as a path (`items[3].dto_id`); empty when no single one is.
    pub field: String,
    /// One sentence, lower case, without full stop.
    pub message: String,
}

impl Refusal {
    /// A refusal that is not about one field.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, field: String::new(), message: message.into() }
    }

    /// A wrong field: `INVALID_ARGUMENT` naming it.
    pub fn field(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { code: ErrorCode::InvalidArgument, field: field.into(), message: message.to_string() }
    }

    /// A fault of ours, without saying more to the outside.
    pub fn internal() -> Self {
        Self::new(ErrorCode::Internal, "internal error; see the service's log")
    }

    /// The same refusal, about that field.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "{}: {}", self.code, self.message)
        } else {
            write!(f, "{}: {}: {}", self.code, self.field, self.message)
        }
    }
}
