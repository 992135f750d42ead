//! Why a step of a store failed.

use domain::{ErrorCode, Refusal};

/// Why a step of a store failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The request was refused, for a reason the caller can act on.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A stored row cannot be read back.
    #[error("broken row: table {table}, column {column}, id {id}")]
    BrokenRow {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// Its key, as text.
        id: String,
    },
    /// The database failed, or rolled the step back.
    #[error(transparent)]
    Db(#[from] db::DbError),
    /// A value could not be written as JSON for a statement; a fault of ours.
    #[error("statement parameters")]
    Json(#[from] serde_json::Error),
}

impl StoreError {
    /// The refusal that says a lease is over, without saying whether it ever was.
    pub(crate) fn stale_lease() -> Self {
        Self::Refused(Refusal::new(ErrorCode::StaleLease, "the lease is over; nothing was changed"))
    }

    /// The refusal that goes to the caller: its own, or that of an internal fault.
    pub fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Db(error) => error.refusal(),
            Self::BrokenRow { .. } | Self::Json(_) => Refusal::internal(),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Db(error.into())
    }
}

impl db::postgres::Failure for StoreError {
    fn database(&self) -> Option<&db::DbError> {
        match self {
            Self::Db(error) => Some(error),
            Self::Refused(_) | Self::BrokenRow { .. } | Self::Json(_) => None,
        }
    }
}
