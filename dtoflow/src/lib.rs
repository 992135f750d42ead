//! DTOflow: the store of typed records, their alias index, and the source of change notifications.
//!
//! Reading order: `record` (what a payload must be), `alias` (what a record is found under), [`model`] (the words),
//! `plan` (what a batch does, pure), `unit` (what a twin can do), `steps` (the atomic steps, written once), the twins
//! [`memory`], [`sqlite`] and [`postgres`] (`columns` and `alias_list`: what the last two share), [`store`] (the trait, the
//! re-index), `server` (gRPC); [`history`] (what is kept of a label's past) with its `keeper`.
//!
//! Invariants
//! - A stored payload decodes as its type and has its required fields.
//! - A write, its aliases, their counts and its notifications commit together or not at all.
//! - Versions of a record only grow, also across deletes. Equal bytes make no version.
//! - An output computed from inputs that have changed since is not written.
//! - A write that changes what a label shows, or ends a delivery, leaves an entry in the label's history.
//! - What the index holds for a record is noted with the record, so a write removes exactly what is there.
//!
//! Deliberately not here: queues and leases (`cqs`), what a record means to a service (`worker`), operators (`gateway`).

mod alias;
mod alias_list;
mod columns;
pub mod history;
mod keeper;
mod limits;
pub mod memory;
pub mod model;
mod plan;
pub mod postgres;
mod record;
mod server;
pub mod sqlite;
mod steps;
pub mod store;
#[cfg(test)]
mod tests;
mod unit;

pub use alias::AliasKey;
pub use keeper::{HistoryKeeper, HistorySettings};
pub use server::{DtoFlowServer, DtoFlowServerParts};
pub use store::{DtoStore, StoreError, reindex};
