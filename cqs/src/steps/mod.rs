//! The atomic steps, written once over [`crate::unit`]; each twin runs them inside its own unit of work.
//!
//! Invariants
//! - A step looks and refuses before it writes; what it writes goes with the twin's transaction.
//! - Every row that moves is told to [`changes::Changes`], which alone writes heads and ledger.

pub(crate) mod announce;
pub(crate) mod arrive;
pub(crate) mod audit;
pub(crate) mod brake;
pub(crate) mod changes;
pub(crate) mod clear;
pub(crate) mod complete;
pub(crate) mod control;
pub(crate) mod dequeue;
pub(crate) mod failures;
mod family;
pub(crate) mod further;
pub(crate) mod lease;
pub(crate) mod operation;
pub(crate) mod overview;
pub(crate) mod queue;
pub(crate) mod re_enqueue;
pub(crate) mod retention;
pub(crate) mod retry;
pub(crate) mod self_enqueue;
pub(crate) mod upkeep;
