//! How long a platform keeps what is over, and where it signs its audit log.
//!
//! Invariants
//! - Of several processes with one file of checkpoints, one appends at a time; the others wait until it is gone.
//! - A file that is there and not to be trusted, or a key that cannot be read, refuses the start: going on without
//!   checkpoints would leave a hole that nobody sees.
//!
//! Deliberately not here: what is signed and what is deleted (`cqs`).

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use cqs::{
    CqsStore, RetentionSettings,
    audit::{
        AuditSealer,
        checkpoint::{Checkpoint, CheckpointError, Checkpoints},
    },
};
use daemon::{identity::ServiceKey, shutdown::Shutdown};
use domain::Clock;
use dtoflow::HistorySettings;
use serde::Deserialize;

/// Between two tries for a file of checkpoints that another process appends to: after its end nothing stays unsigned for
/// longer than a checkpoint may wait anyway.
const RETRY: Duration = Duration::from_secs(10);

/// A day, in seconds.
const DAY_S: u64 = 24 * 60 * 60;
/// Longest time that may be set, in seconds: ten years, the longest that books are kept by law in most places.
const KEPT_MAX_S: u64 = 3_660 * DAY_S;
/// Least for operations, failures and histories, in seconds: a request repeated the next morning still finds its tracking id taken.
const KEPT_MIN_S: u64 = 2 * DAY_S;
/// Least for the audit log, in seconds: a month, in which somebody looks.
const AUDIT_MIN_S: u64 = 30 * DAY_S;

/// What a platform does beside answering.
#[derive(Debug, Clone, Default)]
pub struct Upkeep {
    /// How long what is over is kept.
    pub retention: RetentionSettings,
    /// How long histories of labels are kept.
    pub history: HistorySettings,
    /// Where the audit log is signed; none: nowhere, by this process.
    pub audit: Option<AuditSeal>,
}

/// Where the audit log is signed, and with what.
#[derive(Debug, Clone)]
pub struct AuditSeal {
    /// The file of checkpoints; made with its folder when absent.
    pub checkpoints: PathBuf,
    /// Signs them.
    pub key: ServiceKey,
}

/// Whether the file of checkpoints is this process's to append to.
enum Seal {
    Open((Checkpoints, Vec<Checkpoint>)),
    InUse,
}

impl AuditSeal {
    fn open(&self) -> Result<Seal, CheckpointError> {
        match Checkpoints::open(&self.checkpoints, self.key.clone()) {
            Ok(opened) => Ok(Seal::Open(opened)),
            Err(CheckpointError::InUse { .. }) => Ok(Seal::InUse),
            Err(error) => Err(error),
        }
    }

    /// Starts signing that log until `shutdown`.
    pub(crate) fn start(
        self,
        store: Arc<dyn CqsStore>,
        clock: Arc<dyn Clock>,
        until: (RetentionSettings, Shutdown),
    ) -> anyhow::Result<()> {
        let (retention, shutdown) = until;
        let first = self.open().context("the audit log cannot be signed")?;
        let (file, key) = (self.checkpoints.display(), self.key.public().as_str());
        match first {
            Seal::Open(_) => tracing::info!(%file, key, "the audit log is signed here"),
            Seal::InUse => tracing::info!(%file, key, "another process signs the audit log; this one stands by"),
        }
        let tasks = shutdown.tasks.clone();
        tasks.spawn(async move {
            let Some(opened) = self.ours(first, &shutdown).await else { return };
            AuditSealer::new(store, clock, opened).keeping(retention).run(shutdown).await;
        });
        Ok(())
    }

    /// The file once nobody else has it; none when a drain comes first.
    async fn ours(&self, mut seal: Seal, shutdown: &Shutdown) -> Option<(Checkpoints, Vec<Checkpoint>)> {
        loop {
            if let Seal::Open(opened) = seal {
                return Some(opened);
            }
            tokio::select! {
                () = shutdown.soft.cancelled() => return None,
                () = tokio::time::sleep(RETRY) => {}
            }
            seal = self.open().unwrap_or_else(|error| {
                tracing::error!(%error, "the audit log is not signed by this process");
                Seal::InUse
            });
        }
    }
}

/// How long what is over is kept, as a configuration file says it: `"90d"`, `"36h"`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetentionConfig {
    /// Operations after they finished, with counts, failures and tracking id.
    operations: Option<String>,
    /// Failures of ordinary changes.
    failures: Option<String>,
    /// Entries of the audit log.
    audit: Option<String>,
    /// Histories of labels.
    history: Option<String>,
}

impl RetentionConfig {
    /// The settings; what is left out has its default.
    pub(crate) fn settings(&self) -> anyhow::Result<RetentionSettings> {
        let default = RetentionSettings::default();
        Ok(RetentionSettings {
            operations_ms: kept("operations", self.operations.as_ref(), KEPT_MIN_S, default.operations_ms)?,
            failures_ms: kept("failures", self.failures.as_ref(), KEPT_MIN_S, default.failures_ms)?,
            audit_ms: kept("audit", self.audit.as_ref(), AUDIT_MIN_S, default.audit_ms)?,
        })
    }

    /// Those of histories.
    pub(crate) fn history(&self) -> anyhow::Result<HistorySettings> {
        let default = HistorySettings::default();
        Ok(HistorySettings { kept_ms: kept("history", self.history.as_ref(), KEPT_MIN_S, default.kept_ms)? })
    }
}

/// A time from the configuration, in milliseconds.
fn kept(name: &str, text: Option<&String>, min_s: u64, otherwise: i64) -> anyhow::Result<i64> {
    let Some(text) = text else { return Ok(otherwise) };
    let kept = crate::cli::duration::parse_within(text, min_s..=KEPT_MAX_S)
        .map_err(|error| anyhow::anyhow!("retention.{name} {error}"))?;
    Ok(i64::try_from(kept.as_millis())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_has_a_default() {
        let config = |operations: &str, audit: &str| RetentionConfig {
            operations: Some(operations.to_owned()),
            failures: None,
            audit: Some(audit.to_owned()),
            history: Some("90d".to_owned()),
        };
        let settings = config("48h", "3660d").settings().unwrap();
        assert_eq!((settings.operations_ms, settings.audit_ms), (2 * 86_400_000, 3_660 * 86_400_000));
        assert_eq!(settings.failures_ms, RetentionSettings::default().failures_ms);
        assert_eq!(RetentionConfig::default().settings().unwrap(), RetentionSettings::default());
        assert_eq!(RetentionConfig::default().history().unwrap(), HistorySettings::default());
        let short = RetentionConfig { history: Some("1d".to_owned()), ..RetentionConfig::default() };
        assert!(short.history().unwrap_err().to_string().starts_with("retention.history"));
        for (bad, name) in [
            (config("47h", "400d"), "retention.operations"),
            (config("90d", "29d"), "retention.audit"),
            (config("90d", "3661d"), "retention.audit"),
            (config("90", "400d"), "retention.operations"),
        ] {
            let error = bad.settings().unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
