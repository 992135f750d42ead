//! The store trait: the few atomic steps DTOflow needs. A write runs to its end or changes nothing, whether or not its
//! caller still waits.

use db::{DbError, Faults};
use domain::{ErrorCode, Refusal, Timestamp};

use crate::{
    alias::AliasRules,
    history::{HistoryAsk, HistoryEntry},
    model::{
        AliasFound, AliasListAsk, AliasLook, Page, ReadBatch, Reindexed, StoreCount, StoreListAsk, Stored, Touch,
        TouchDone, WriteBatch, WriteDone,
    },
};

/// Why a step of a store failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The request was refused, for a reason the caller can act on.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A step of the queues failed.
    #[error(transparent)]
    Queues(cqs::StoreError),
    /// A value could not be written as JSON for a statement; a fault of ours.
    #[error("statement parameters: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<cqs::StoreError> for StoreError {
    fn from(error: cqs::StoreError) -> Self {
        match error {
            cqs::StoreError::Refused(refusal) => Self::Refused(refusal),
            other => Self::Queues(other),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Db(error.into())
    }
}

/// Faults of the database.
static FAULTS: Faults = Faults::new();

impl StoreError {
    /// The refusal that goes to the caller. What is ours to know goes to the log here, once.
    pub(crate) fn into_refusal(self, rpc: &'static str) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Db(error) => {
                if let Some(left_out) = FAULTS.due(&error.to_string()) {
                    tracing::error!(%error, rpc, left_out, "database");
                }
                error.refusal()
            }
            Self::Queues(error) => {
                tracing::error!(%error, rpc, "queues");
                error.into_refusal()
            }
            Self::Json(error) => {
                tracing::error!(%error, rpc, "statement parameters");
                Refusal::internal()
            }
        }
    }

    /// A refusal because the state does not allow the call.
    pub(crate) fn denied(field: impl Into<String>, message: &'static str) -> Self {
        Self::Refused(Refusal::new(ErrorCode::PermissionDenied, message).at(field))
    }
}

pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// Storage of DTOflow. `now` is the service's time.
#[tonic::async_trait]
pub trait DtoStore: sealed::Reindex + Send + Sync + 'static {
    /// Writes and deletes records: the lease is checked, the inputs compared, records, aliases and counts changed and the
    /// queues told, in one transaction.
    async fn record_write(&self, batch: WriteBatch, now: Timestamp) -> Result<WriteDone>;

    /// Bumps the time of records and tells the queues, in one transaction.
    async fn record_touch(&self, touch: Touch, now: Timestamp) -> Result<TouchDone>;

    /// Reads records, one answer per key; none where absent. Refuses more bytes than a message carries.
    async fn record_read(&self, batch: ReadBatch) -> Result<Vec<Option<Stored>>>;

    /// Records under parents, by parent in the order given, then by id.
    async fn alias_list(&self, ask: AliasListAsk) -> Result<Page<AliasFound>>;

    /// How many records lie under each parent, on either level. Does not scan them.
    async fn alias_count(&self, look: AliasLook, parents: Vec<domain::Parent>) -> Result<Vec<i64>>;

    /// Stores that have records under a tenant's parent, by id. Does not scan the records.
    async fn alias_stores(&self, ask: StoreListAsk) -> Result<Page<StoreCount>>;

    /// A label's history, newest first.
    async fn history_list(&self, ask: HistoryAsk) -> Result<Page<HistoryEntry>>;

    /// Forgets entries from before `before`, looking at the oldest `limit` only; how many it forgot.
    async fn history_prune(&self, before: Timestamp, limit: usize) -> Result<usize>;
}

/// What only this room calls.
pub(crate) mod sealed {
    use super::{AliasRules, Reindexed, Result};

    /// The re-index, in bounded steps; apart because rules are not for others to give.
    #[tonic::async_trait]
    pub trait Reindex {
        /// Brings up to `limit` records' aliases to `rules`. Resumes where the last step ended, also after a restart.
        async fn alias_reindex(&self, rules: AliasRules, limit: usize) -> Result<Reindexed>;
    }
}

/// Records of one step of a re-index: one transaction stays well under 100 ms, so writes get between.
const REINDEX_RECORDS: usize = 500;

/// Brings the alias index to the rules of this build, when they changed since the database was written. To be awaited
/// before serving: until it ends, look-ups by alias may miss records. Resumable: a restart goes on where it stopped.
pub async fn reindex(store: &dyn DtoStore) -> std::result::Result<(), Refusal> {
    let mut records = 0;
    loop {
        let step = store.alias_reindex(AliasRules::CURRENT, REINDEX_RECORDS).await;
        match step.map_err(|error| error.into_refusal("reindex"))? {
            Reindexed::Current if records == 0 => return Ok(()),
            Reindexed::Current => {
                tracing::info!(records, rules = AliasRules::CURRENT.version, "alias index rebuilt");
                return Ok(());
            }
            Reindexed::Step(looked_at) => records += looked_at,
        }
    }
}
