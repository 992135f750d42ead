//! Time and randomness as arguments.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicI64, Ordering},
};

use crate::Timestamp;

/// The source of "now". Only `daemon` holds one that reads the machine's clock.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The source of random bits: incarnation ids, jitter, request ids. Only `daemon` holds one that asks the system.
pub trait IdSource: Send + Sync + 'static {
    /// 64 fresh random bits.
    fn bits(&self) -> u64;

    /// A fresh id of 32 hex digits.
    fn hex_id(&self) -> String {
        format!("{:016x}{:016x}", self.bits(), self.bits())
    }

    /// A number in `0..bound`, 0 when `bound` is 0. The bias is below 2⁻³² for the bounds of jitter.
    fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }
}

/// A clock that stands still until it is moved; for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_ms()))
    }

    /// Moves the clock forward by `ms` milliseconds.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::SeqCst))
    }
}

/// Reproducible bits (SplitMix64); for tests and simulations.
#[derive(Debug)]
pub struct SeededIds(Mutex<u64>);

impl SeededIds {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl IdSource for SeededIds {
    fn bits(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = *state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}
