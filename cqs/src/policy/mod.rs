//! What is decided, as pure functions and values: which lane is served, what becomes of a row, what merges, who may
//! inject, what a person may do to an operation and why one waits. No I/O, no clock, no randomness of its own.

pub(crate) mod batch;
pub(crate) mod blocked;
pub mod choice;
pub(crate) mod coalesce;
pub(crate) mod control;
pub(crate) mod fate;
pub(crate) mod gates;

#[cfg(test)]
mod tests;
