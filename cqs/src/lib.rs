//! The change queue service: one queue per service, lanes, leases, the operation ledger, the audit log.
//!
//! Reading order: [`announce`] and [`model`] (the words), [`policy`] (what is decided, pure), `unit` (what a twin can do),
//! `steps` (the atomic steps, written once), the twins [`memory`], [`sqlite`] and [`postgres`]
//! (`columns`: what the last two read and bind alike), [`store`] (the trait), `server` (gRPC).
//!
//! Invariants
//! - A lease's generation only grows; a report under an ended or lapsed lease changes nothing.
//! - A row is in exactly one place: waiting, leased, dead, or gone as done; the ledger of its operation says which, at
//!   every instant.
//! - A parent comes into a queue by `SelfEnqueue` or under a live lease of the queue's own service, in no other way.
//! - Every step runs to its end or changes nothing, whether or not its caller still waits.
//!
//! Deliberately not here: what a notification means (worker services), records (`dtoflow`), operator tokens (`gateway`).

pub mod announce;
pub mod audit;
pub mod audit_store;
mod columns;
mod error;
pub mod failure_store;
mod maintainer;
pub mod memory;
pub mod model;
pub mod policy;
pub mod postgres;
mod retention;
mod server;
pub mod sqlite;
mod steps;
pub mod store;
mod store_steps;
mod unit;
mod wakeups;

pub use error::StoreError;
pub use maintainer::Maintainer;
pub use retention::RetentionSettings;
pub use server::{CqsServer, CqsServerParts};
pub use store::CqsStore;
pub use unit::AuditFilter;
pub use wakeups::Wakeups;
