//! What is decided, as pure functions and values: which lane is served, what becomes of a row, what merges, who may
//! inject. No I/O, no clock, no randomness of its own.

pub(crate) mod batch;
pub mod choice;
pub(crate) mod coalesce;
pub(crate) mod fate;
pub(crate) mod gates;

#[cfg(test)]
mod tests;
