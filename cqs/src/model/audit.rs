//! The audit log.

use domain::{ServiceName, TenantId, Timestamp};

/// What became of an audited call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// Done as asked.
    Accepted,
    /// The same request had been accepted before.
    Replayed,
    /// Refused; nothing was changed.
    Refused,
}

impl std::str::FromStr for AuditOutcome {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Accepted, Self::Replayed, Self::Refused].into_iter().find(|known| known.as_str() == text).ok_or(())
    }
}

impl AuditOutcome {
    /// The text in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Replayed => "replayed",
            Self::Refused => "refused",
        }
    }
}

/// A row with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// The row.
    pub row: AuditRow,
    /// The hash of the chain there, 64 hex digits; empty for a row from before the chain.
    pub hash: String,
}

/// A row of the audit log. Texts are bounded by who makes the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Position in the log, only grows; 0 before it is stored.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Which service called or appended.
    pub service: ServiceName,
    /// On whose behalf; empty: nobody's.
    pub operator_subject: String,
    /// The tenant concerned, where one is known.
    pub tenant: Option<TenantId>,
    /// What was asked.
    pub action: String,
    /// Of the request; empty where it had none that could be read.
    pub tracking_id: String,
    /// Of the request; empty where it had none that could be read.
    pub reason: String,
    /// SHA-256 of the request, 64 hex digits, or empty.
    pub request_digest: String,
    /// What became of it.
    pub outcome: AuditOutcome,
    /// Code of a refusal, or empty.
    pub error_code: String,
    /// One sentence more.
    pub detail: String,
}
