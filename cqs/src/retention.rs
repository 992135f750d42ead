//! How long what is over is kept.

/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long what is over is kept, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionSettings {
    /// An operation, its counts and its failures, after it finished. As long its tracking id stays reserved.
    pub operations_ms: i64,
    /// Failures of ordinary changes. Whether the record was delivered since is known beyond that.
    pub failures_ms: i64,
    /// Audit entries.
    pub audit_ms: i64,
}

impl Default for RetentionSettings {
    /// Operations a quarter: "what did we do before the last two inventories" is still answered. Failures a month: they
    /// are shown while nobody corrected them. Audit 400 days: a year's audit, with time to do it.
    fn default() -> Self {
        Self { operations_ms: 90 * DAY_MS, failures_ms: 30 * DAY_MS, audit_ms: 400 * DAY_MS }
    }
}
