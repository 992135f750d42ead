//! TLS: certificates from PEM files, read again when they change, so that rotation needs no restart.
//!
//! [`ServerTls`] accepts, [`ClientTls`] connects, [`SpiffeId`] is what a client certificate says about a service.
//!
//! Invariants
//! - A file that cannot be read or does not fit its key never replaces what works; the log says so.
//! - A private key that every account may read is refused, like a service key.
//! - With a client CA, a connection without a certificate of that CA does not come to be.
//!
//! Deliberately not here: revocation lists (certificates are short-lived instead), protocols older than TLS 1.2.

mod client;
mod files;
mod server;
mod spiffe;
mod watched;

#[cfg(test)]
mod tests;

pub use client::{ClientTls, ClientTlsConfig};
pub use files::TlsError;
pub use server::{ServerTls, ServerTlsConfig};
pub use spiffe::{SpiffeError, SpiffeId};
pub(crate) use watched::Watched;
