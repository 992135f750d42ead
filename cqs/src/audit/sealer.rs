//! Signs the end of the chain now and then, and cuts off what is over for long.

use std::{sync::Arc, time::Duration};

use daemon::shutdown::Shutdown;
use domain::{Clock, Timestamp};

use super::{
    chain::{Anchor, ChainHead},
    checkpoint::{Checkpoint, CheckpointError, Checkpoints, Kind},
    verify::Broken,
};
use crate::{CqsStore, RetentionSettings, StoreError};

/// Between two looks at the end of the chain.
const LOOK: Duration = Duration::from_secs(1);
/// New entries at which a checkpoint is signed at the next look.
const ENTRIES: i64 = 1_000;
/// Time after which one is signed for any new entry, in milliseconds.
const AFTER_MS: i64 = 60_000;
/// Looks between two thoughts of what is over for long: an hour, of times counted in days.
const LOOKS_PER_CUT: u64 = 3_600;
/// Entries deleted by one unit of work.
const CUT_ROWS: usize = 1_000;

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The log could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be written.
    #[error(transparent)]
    File(#[from] CheckpointError),
    /// The end of the chain is not where the last checkpoint left it: signing it would cover that up.
    #[error("the audit log is not the one that was signed ({0}): run `reshelf audit verify`")]
    Broken(Broken),
}

/// Writes checkpoints of one log into one file.
pub struct AuditSealer {
    store: Arc<dyn CqsStore>,
    clock: Arc<dyn Clock>,
    file: Checkpoints,
    signed: Vec<Checkpoint>,
    retention: RetentionSettings,
    /// When a checkpoint was signed last, or the process began.
    last_at: Timestamp,
    /// The failure that was logged last and goes on; empty: none does.
    told: String,
}

/// When the end of the chain is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Once enough was added, or enough time went by.
    Due,
    /// Now, if anything was added.
    AtOnce,
}

impl AuditSealer {
    /// A sealer of that log; `opened` is what [`Checkpoints::open`] gave.
    pub fn new(store: Arc<dyn CqsStore>, clock: Arc<dyn Clock>, opened: (Checkpoints, Vec<Checkpoint>)) -> Self {
        let (file, signed) = opened;
        let last_at = clock.now();
        Self { store, clock, file, signed, retention: RetentionSettings::default(), last_at, told: String::new() }
    }

    /// Keeps entries that long.
    #[must_use]
    pub fn keeping(self, retention: RetentionSettings) -> Self {
        Self { retention, ..self }
    }

    /// Signs until `shutdown` asks for a drain, and once more when the process is about to end. A failure is logged and
    /// tried again; the log itself goes on, and what is not signed yet is told by `verify`.
    pub async fn run(mut self, shutdown: Shutdown) {
        self.logged(When::AtOnce).await;
        let mut looks = 0_u64;
        loop {
            tokio::select! {
                () = shutdown.soft.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            self.logged(When::Due).await;
            // At the first look, too: a process that never runs for an hour cuts all the same.
            if looks.is_multiple_of(LOOKS_PER_CUT)
                && let Err(error) = self.cut().await
            {
                tracing::error!(%error, "old audit entries were not deleted");
            }
            looks += 1;
        }
        self.logged(When::AtOnce).await;
    }

    async fn logged(&mut self, when: When) {
        let Err(error) = self.sign_end(when).await else {
            self.told.clear();
            return;
        };
        // One look a second would bury everything else in the log.
        let text = error.to_string();
        if text != self.told {
            tracing::error!(%error, "the audit log is not signed");
            self.told = text;
        }
    }

    /// Signs the end of the chain at once, unless it is signed already.
    pub async fn seal(&mut self) -> Result<(), SealError> {
        self.sign_end(When::AtOnce).await
    }

    async fn sign_end(&mut self, when: When) -> Result<(), SealError> {
        let head = self.store.audit_head().await?;
        let now = self.clock.now();
        let last = self.signed.iter().map(|line| line.head).max_by_key(|head| head.id);
        let last_id = last.map_or(0, |last| last.id);
        if head.id < last_id {
            return Err(SealError::Broken(Broken::Missing { id: head.id + 1 }));
        }
        if head.id == last_id {
            return match last {
                Some(last) if last.hash != head.hash => Err(SealError::Broken(Broken::Checkpoint { id: head.id })),
                _ => Ok(()),
            };
        }
        let due = when == When::AtOnce || head.id - last_id >= ENTRIES || now.ms_since(self.last_at) >= AFTER_MS;
        if !due {
            return Ok(());
        }
        if self.signed.is_empty() {
            // What the log began with is signed first, so that it is not only the database's word.
            for anchor in self.store.audit_anchor().await? {
                if let Anchor::Genesis(head) = anchor {
                    self.sign(Kind::Genesis, head, now)?;
                }
            }
        }
        self.sign(Kind::Checkpoint, head, now)
    }

    fn sign(&mut self, kind: Kind, head: ChainHead, at: Timestamp) -> Result<(), SealError> {
        self.file.append(kind, head, at)?;
        self.signed.push(Checkpoint { kind, head, at });
        self.last_at = at;
        Ok(())
    }

    /// Deletes entries that are older than they are kept, up to a checkpoint of that age: what the cut stands for is signed
    /// before anything goes.
    pub async fn cut(&mut self) -> Result<(), SealError> {
        let now = self.clock.now();
        let before = now.plus_ms(-self.retention.audit_ms);
        // Entries up to a checkpoint are older than it.
        let old = self.signed.iter().filter(|line| line.at < before).map(|line| line.head).max_by_key(|head| head.id);
        let cuts = self.signed.iter().filter(|line| line.kind == Kind::Cut);
        let mut cut = cuts.map(|line| line.head).max_by_key(|head| head.id);
        if let Some(old) = old.filter(|old| cut.is_none_or(|cut| old.id > cut.id)) {
            self.sign(Kind::Cut, old, now)?;
            cut = Some(old);
        }
        // Also when nothing is new: a deletion may have been cut short.
        if let Some(cut) = cut {
            while self.store.audit_cut(cut, CUT_ROWS).await? {}
        }
        Ok(())
    }
}
