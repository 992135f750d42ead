//! Counts of an operation.

use std::ops::{Add, AddAssign};

use domain::{Evidence, QueueName};

use super::RowKind;

/// Counts of one kind of rows of one queue under one operation, or a change of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ever came in.
    pub enqueued: i64,
    /// Handled.
    pub done: i64,
    /// Of the handled: nothing had to change.
    pub unchanged: i64,
    /// In the dead letter.
    pub failed: i64,
    /// Merged into a row that waited.
    pub coalesced: i64,
    /// Cancelled.
    pub cancelled: i64,
    /// Waiting, deferred and backing-off ones included.
    pub waiting: i64,
    /// Leased.
    pub leased: i64,
    /// Of the waiting, leased and cancelled: handed over to what lies behind the service and neither confirmed nor given up.
    /// No part of the equation.
    pub handed_over: i64,
    /// Of the handled: confirmed, by evidence. No part of the equation.
    pub confirmed_by: ByEvidence,
    /// Of those in the dead letter: were handed over when they failed. No part of the equation.
    pub failed_handed_over: i64,
}

/// Labels by the evidence that confirmed them, or a change of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByEvidence {
    /// [`Evidence::Written`].
    pub written: i64,
    /// [`Evidence::Transferred`].
    pub transferred: i64,
    /// [`Evidence::Displayed`].
    pub displayed: i64,
}

impl ByEvidence {
    /// One more label with that evidence.
    pub fn count(&mut self, evidence: Evidence) {
        match evidence {
            Evidence::Written => self.written += 1,
            Evidence::Transferred => self.transferred += 1,
            Evidence::Displayed => self.displayed += 1,
        }
    }

    /// All of them.
    pub fn sum(&self) -> i64 {
        self.written + self.transferred + self.displayed
    }
}

impl Counts {
    /// Whether every row is in exactly one place: the ledger's equation.
    pub fn balanced(&self) -> bool {
        self.enqueued == self.done + self.failed + self.coalesced + self.cancelled + self.waiting + self.leased
    }

    /// What is not over yet.
    pub fn open(&self) -> i64 {
        self.waiting + self.leased
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            enqueued: self.enqueued + other.enqueued,
            done: self.done + other.done,
            unchanged: self.unchanged + other.unchanged,
            failed: self.failed + other.failed,
            coalesced: self.coalesced + other.coalesced,
            cancelled: self.cancelled + other.cancelled,
            waiting: self.waiting + other.waiting,
            leased: self.leased + other.leased,
            handed_over: self.handed_over + other.handed_over,
            confirmed_by: self.confirmed_by + other.confirmed_by,
            failed_handed_over: self.failed_handed_over + other.failed_handed_over,
        }
    }
}

impl Counts {
    /// These counts so often.
    #[must_use]
    pub fn times(self, rows: i64) -> Self {
        Self {
            enqueued: self.enqueued * rows,
            done: self.done * rows,
            unchanged: self.unchanged * rows,
            failed: self.failed * rows,
            coalesced: self.coalesced * rows,
            cancelled: self.cancelled * rows,
            waiting: self.waiting * rows,
            leased: self.leased * rows,
            handed_over: self.handed_over * rows,
            confirmed_by: self.confirmed_by.times(rows),
            failed_handed_over: self.failed_handed_over * rows,
        }
    }
}

impl Add for ByEvidence {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            written: self.written + other.written,
            transferred: self.transferred + other.transferred,
            displayed: self.displayed + other.displayed,
        }
    }
}

impl ByEvidence {
    /// These counts so often.
    #[must_use]
    pub fn times(self, rows: i64) -> Self {
        Self { written: self.written * rows, transferred: self.transferred * rows, displayed: self.displayed * rows }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Where counts belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerKey {
    /// The operation's lane.
    pub lane: i64,
    /// Key of the queue.
    pub queue: i64,
    /// Labels or parents.
    pub kind: RowKind,
}

/// Counts of one queue under one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    /// The queue.
    pub queue: QueueName,
    /// Of labels.
    pub labels: Counts,
    /// Of parents.
    pub parents: Counts,
    /// Of the failed labels: taken over by a retry.
    pub labels_retried: i64,
    /// Of the failed parents: taken over by a retry.
    pub parents_retried: i64,
    /// Of the labels taken over by a retry: were handed over when they failed.
    pub retried_handed_over: i64,
    /// Of a retry, of the cancelled labels: open again where they failed.
    pub labels_given_back: i64,
    /// Of a retry, of the cancelled parents: open again where they failed.
    pub parents_given_back: i64,
}
