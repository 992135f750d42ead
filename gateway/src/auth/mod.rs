//! Operators: how a token is verified and what it lets its holder do.
//!
//! Invariants
//! - A token's algorithm is that of the key it verifies with; the token never chooses.
//! - Every time is checked here, against the injected clock, with [`LEEWAY_S`] seconds of leeway; the JWT library
//!   verifies signatures and nothing else.
//! - A claim that appears twice, or with a wrong type, refuses the token.
//!
//! - Published keys come from the issuer's own place over TLS, without redirects; no token decides where, and none can
//!   cause more than one fetch a cooldown (`remote`).
//!
//! Deliberately not here: sessions, refresh tokens, asking the provider about a single token.

mod claims;
mod fetch;
mod groups;
mod issuer;
mod jws;
mod keys;
mod operator;
mod remote;
mod rules;
mod verifier;

pub use claims::ClaimNames;
pub use groups::{GroupError, GroupGrant, Groups};
pub use issuer::{Issuer, IssuerError, IssuerSettings, KeySource, OperatorAlgorithm, PublicKeyText};
pub use operator::Operator;
pub(crate) use operator::{Reach, StoreAccess};
pub use rules::{TokenRules, TokenType};
pub use verifier::{OperatorVerifier, TokenRefusal};

/// How far two machines' clocks may differ, in seconds.
pub(crate) const LEEWAY_S: i64 = 5;
/// Longest token, in bytes: real ones are 1 to 3 KiB; anything longer is work for an attacker's benefit.
pub(crate) const TOKEN_MAX_BYTES: usize = 8 * 1024;
/// Tenants one token may name: the most one list call to CQS takes.
pub(crate) const TENANTS_MAX: usize = 1_000;
