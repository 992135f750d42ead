//! What becomes of a leased row: by its outcome, or because its lease lapsed.

use domain::{Outcome, SLA_MAX_AHEAD_MS, Timestamp, limits};

use crate::model::{Company, Row, RowKind};

/// First backoff, in milliseconds.
const BACKOFF_FIRST_MS: u64 = 1_000;
/// Longest backoff, in milliseconds: five minutes, so that a service that is back is noticed soon.
const BACKOFF_MAX_MS: u64 = 5 * 60 * 1_000;
/// How far ahead a defer may lie, in milliseconds: as far as an SLA may.
const DEFER_MAX_MS: i64 = SLA_MAX_AHEAD_MS;
/// Cause in the dead letter of a row that lapsed alone too often.
pub(crate) const LAPSED: &str = "its lease lapsed three times while it was leased alone";

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is done and goes; something changed.
    Done,
    /// It is done and goes; nothing had to change.
    Unchanged,
    /// It waits again, as this row.
    Waits(Box<Row>),
    /// It goes to the dead letter.
    Dead {
        /// Why.
        cause: String,
    },
}

/// The fate of a row by its outcome. `jitter` is 64 random bits for this row.
pub(crate) fn of_outcome(row: &Row, outcome: Outcome, now: Timestamp, jitter: u64) -> Fate {
    match outcome {
        Outcome::Done | Outcome::Confirmed { changed: true, .. } => Fate::Done,
        Outcome::Unchanged | Outcome::Confirmed { changed: false, .. } => Fate::Unchanged,
        Outcome::Failed { cause } => Fate::Dead { cause },
        Outcome::Retry { cause } => {
            let attempts = row.attempts.saturating_add(1);
            if attempts >= limits::ATTEMPTS_MAX {
                return Fate::Dead { cause };
            }
            let due_at = now.plus_ms(backoff_ms(attempts, jitter));
            Fate::Waits(Box::new(Row { attempts, due_at: Some(due_at), company: Company::Batch, cause, ..row.clone() }))
        }
        Outcome::Defer { until, cause } => deferred(row, (until, now), cause, row.handed_over),
        Outcome::Follow { until, cause, handed_over } => {
            deferred(row, (until, now), cause, handed_over && row.kind() == RowKind::Label)
        }
    }
}

fn deferred(row: &Row, (until, now): (Timestamp, Timestamp), cause: String, handed_over: bool) -> Fate {
    let until = until.min(now.plus_ms(DEFER_MAX_MS));
    let due_at = (until > now).then_some(until);
    Fate::Waits(Box::new(Row { due_at, company: Company::Batch, cause, handed_over, ..row.clone() }))
}

/// Full jitter: anything up to one second after the first attempt, two after the second … five minutes.
pub(crate) fn backoff_ms(attempts: i32, jitter: u64) -> i64 {
    let doublings = u32::try_from(attempts.clamp(1, 32) - 1).unwrap_or(0);
    let bound = BACKOFF_FIRST_MS.saturating_mul(1 << doublings).min(BACKOFF_MAX_MS);
    // At least one millisecond, so that a retried row is never ready in the same instant.
    i64::try_from(jitter % bound).unwrap_or(0) + 1
}

/// The fate of a row whose lease lapsed.
pub(crate) fn of_lapse(row: &Row) -> Fate {
    let lapses = match row.company {
        Company::Batch | Company::Returned => 0,
        Company::Alone { lapses } => lapses.saturating_add(1),
    };
    if lapses >= limits::LAPSES_ALONE_MAX {
        return Fate::Dead { cause: LAPSED.to_owned() };
    }
    Fate::Waits(Box::new(Row { due_at: None, company: Company::Alone { lapses }, ..row.clone() }))
}

/// The fate of a row whose lease lapsed while its holder lives: nothing was wrong with the row.
pub(crate) fn of_outlived(row: &Row) -> Fate {
    Fate::Waits(Box::new(Row { due_at: None, ..row.clone() }))
}

/// The fate of a row whose lease a restart ended: once, nothing; again, what a lapse does, so that a row that brings the
/// process down each time is found out.
pub(crate) fn of_restart(row: &Row) -> Fate {
    match row.company {
        Company::Batch => Fate::Waits(Box::new(Row { due_at: None, company: Company::Returned, ..row.clone() })),
        Company::Returned | Company::Alone { .. } => of_lapse(row),
    }
}

/// The fate of a row whose split goes on at `cursor`: it made progress, so its attempts and lapses start again.
pub(crate) fn of_unfinished_split(row: &Row, cursor: String) -> Fate {
    Fate::Waits(Box::new(Row { cursor, attempts: 0, due_at: None, company: Company::Batch, ..row.clone() }))
}

/// 64 bits for row `id`, drawn from the call's `seed` (the mixing of `SplitMix64`, so that rows of one call spread).
pub(crate) fn row_jitter(seed: u64, id: i64) -> u64 {
    let mut bits = seed ^ id.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
