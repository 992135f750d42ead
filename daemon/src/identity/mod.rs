//! Service identity: who a service is, how it proves it, what the registry lets it do.
//!
//! A service mints short-lived EdDSA tokens from its own key ([`ServiceCredentials`]); a server verifies them against
//! the [`Registry`] ([`AuthLayer`]) and hands the handler a [`Caller`]. Operator tokens are signed by keys that are in
//! no registry, so they are unauthenticated here by construction.

mod caller;
mod credentials;
mod key;
mod layer;
mod registry;
mod token;

#[cfg(test)]
mod tests;

pub use caller::{Caller, caller};
pub use credentials::ServiceCredentials;
pub use key::{KeyError, PublicKey, ServiceKey};
pub use layer::{AuthLayer, AuthService};
pub use registry::{Registry, RegistryError, RegistrySource, ServiceGrants};
pub use token::{TOKEN_LIFETIME_MS, TokenError, Verifier};
