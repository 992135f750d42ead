//! What every daemon does: service identity, TLS, channels, serving gRPC, bounds of connections and rates, calls to the outside,
//! configuration, telemetry, shutdown, failures, threads, real time.
//!
//! Invariants
//! - A gRPC handler learns who calls only from [`identity::Caller`], which the layer puts there after verifying a
//!   service token; metadata that a client sets by itself is never an identity.
//! - The same layer stands before a network server and before a server object of the same process.
//!
//! Deliberately not here: operator tokens (`gateway`), anything of queues or records.

pub mod admission;
pub mod channel;
pub mod config;
pub mod failure;
pub mod identity;
pub mod outbound;
pub mod rates;
pub mod serve;
pub mod shutdown;
pub mod telemetry;
pub mod threads;
pub mod tls;

mod clock;

pub use clock::{SystemClock, SystemIds};
