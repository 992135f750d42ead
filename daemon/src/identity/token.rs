//! Service tokens: minted by the caller, verified by the server. Times come from the injected clock on both sides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Clock, ServiceIdentity, ServiceName, Timestamp};
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};

use super::{Caller, Registry, RegistrySource, ServiceKey};
use crate::tls::SpiffeId;

/// How long a service token is good for, in milliseconds: long enough to be reused, short enough that a leaked one
/// soon is worthless.
pub const TOKEN_LIFETIME_MS: i64 = 5 * 60 * 1000;
/// How far two machines' clocks may differ, in milliseconds.
const LEEWAY_MS: i64 = 5_000;
/// Tokens remembered as right: each process of each service has one or two at a time.
const VERIFIED_MAX: usize = 1_024;
/// The audience of service tokens: never that of operator tokens.
const AUDIENCE: &str = "reshelf-services";

/// Why a token was not accepted. Callers outside learn only "unauthenticated".
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    /// No `authorization` metadata, or not exactly one bearer token.
    #[error("no single bearer token")]
    Missing,
    /// Not a token, of another algorithm or type, or of a key that the registry does not list for its subject.
    #[error("not a token of a registered service")]
    Invalid,
    /// Its time has not come or is over.
    #[error("outside its lifetime")]
    Lifetime,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    sub: String,
    iss: String,
    aud: String,
    /// Seconds.
    iat: i64,
    /// Seconds.
    exp: i64,
}

/// A token for `service` that is good from `now` on.
pub(super) fn mint(service: ServiceName, key: &ServiceKey, now: Timestamp) -> Result<String, TokenError> {
    let identity = ServiceIdentity(service).to_string();
    let claims = Claims {
        sub: identity.clone(),
        iss: identity,
        aud: AUDIENCE.to_owned(),
        iat: now.as_ms() / 1000,
        exp: now.plus_ms(TOKEN_LIFETIME_MS).as_ms() / 1000,
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.typ = Some("svc+jwt".to_owned());
    encode(&header, &claims, key.encoding()).map_err(|_| TokenError::Invalid)
}

/// Verifies service tokens against the registry. Cheap to clone.
#[derive(Clone)]
pub struct Verifier {
    registry: RegistrySource,
    clock: Arc<dyn Clock>,
    /// Tokens that were right lately, so that a reused one costs no cryptography. At most [`VERIFIED_MAX`].
    verified: Arc<Mutex<HashMap<String, Verified>>>,
}

struct Verified {
    service: ServiceName,
    /// Milliseconds.
    expires: i64,
    /// By which registry: another one may not list the key any more.
    registry: Arc<Registry>,
}

impl Verifier {
    /// A verifier over `registry`.
    pub fn new(registry: impl Into<RegistrySource>, clock: Arc<dyn Clock>) -> Self {
        Self { registry: registry.into(), clock, verified: Arc::default() }
    }

    /// Who holds the verified certificate of that id; `token`, when one is shown too, must be of the same service.
    pub(super) fn verify_peer(&self, id: &SpiffeId, token: Option<&str>) -> Result<Caller, TokenError> {
        let registry = self.registry.now();
        let named = registry.service_of(id);
        let Some(token) = token else {
            return named.map_or(Err(TokenError::Invalid), |service| caller(&registry, service));
        };
        let caller = self.verify(token)?;
        // A service that lists ids may show its tokens only over a connection with one of them.
        let listed = registry.grants(caller.service()).is_some_and(|grants| !grants.spiffe_ids().is_empty());
        if (listed || named.is_some()) && named != Some(caller.service()) {
            return Err(TokenError::Invalid);
        }
        Ok(caller)
    }

    /// Who holds this token.
    pub fn verify(&self, token: &str) -> Result<Caller, TokenError> {
        let registry = self.registry.now();
        if let Some(service) = self.remembered(token, &registry) {
            return caller(&registry, service);
        }
        let header = decode_header(token).map_err(|_| TokenError::Invalid)?;
        if header.typ.as_deref() != Some("svc+jwt") {
            return Err(TokenError::Invalid);
        }
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        // Lifetimes are checked below, against the injected clock.
        validation.validate_exp = false;
        let unverified =
            jsonwebtoken::dangerous::insecure_decode::<Claims>(token).map_err(|_| TokenError::Invalid)?.claims;
        let ServiceIdentity(service) = unverified.sub.parse().map_err(|_| TokenError::Invalid)?;
        let grants = registry.grants(service).ok_or(TokenError::Invalid)?;
        let claims = grants
            .keys()
            .iter()
            .find_map(|key| decode::<Claims>(token, key, &validation).ok())
            .ok_or(TokenError::Invalid)?
            .claims;
        if claims.iss != claims.sub || claims.sub != unverified.sub {
            return Err(TokenError::Invalid);
        }
        let now = self.clock.now().as_ms();
        let (issued, expires) = (claims.iat.saturating_mul(1000), claims.exp.saturating_mul(1000));
        let lifetime_is_sane = expires.saturating_sub(issued) <= TOKEN_LIFETIME_MS;
        if !lifetime_is_sane || now.saturating_add(LEEWAY_MS) < issued || now > expires.saturating_add(LEEWAY_MS) {
            return Err(TokenError::Lifetime);
        }
        let found = caller(&registry, service)?;
        self.remember(token, Verified { service, expires, registry });
        Ok(found)
    }

    /// Whether this very token was right lately and still is.
    pub(super) fn knows(&self, token: &str) -> bool {
        self.remembered(token, &self.registry.now()).is_some()
    }

    /// Now, by the clock that tokens are judged by.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn remember(&self, token: &str, right: Verified) {
        let now = self.clock.now().as_ms();
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= VERIFIED_MAX {
            verified.retain(|_, known| now <= known.expires && Arc::ptr_eq(&known.registry, &right.registry));
        }
        if verified.len() < VERIFIED_MAX {
            verified.insert(token.to_owned(), right);
        }
    }

    fn remembered(&self, token: &str, registry: &Arc<Registry>) -> Option<ServiceName> {
        let now = self.clock.now().as_ms();
        let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let known = verified.get(token)?;
        (now <= known.expires && Arc::ptr_eq(&known.registry, registry)).then_some(known.service)
    }
}

fn caller(registry: &Registry, service: ServiceName) -> Result<Caller, TokenError> {
    registry.grants(service).map(|grants| Caller::new(service, grants)).ok_or(TokenError::Invalid)
}
