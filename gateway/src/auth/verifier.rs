//! Verifying an operator token.

use std::{fmt, sync::Arc};

use domain::Clock;
use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::crypto;

use super::{Issuer, Operator, OperatorAlgorithm, claims::ClaimPolicy, jws};

/// Why a token was refused; for our log only. Outside, every refusal is the same 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// Not exactly one `Authorization: Bearer …` header.
    #[error("no single bearer token")]
    Missing,
    /// Not three canonical parts with two JSON objects, or too long.
    #[error("not a compact signed token")]
    Form,
    /// A header parameter we refuse: type, critical extension, compression, nesting, algorithm.
    #[error("header not accepted")]
    Header,
    /// Its `iss` is not configured.
    #[error("issuer not configured")]
    Issuer,
    /// No key of the issuer verifies it under that key's own algorithm.
    #[error("signature not of a configured key")]
    Signature,
    /// Meant for someone else.
    #[error("not meant for this audience")]
    Audience,
    /// Its time has not come or is over.
    #[error("outside its lifetime")]
    Lifetime,
    /// A required claim is missing, or a claim has a wrong type or value.
    #[error("claim missing or malformed")]
    Claim,
}

/// Verifies operator tokens against the configured issuers. Cheap to clone.
#[derive(Clone)]
pub struct OperatorVerifier {
    issuers: Arc<[Issuer]>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for OperatorVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorVerifier").field("issuers", &self.issuers).finish_non_exhaustive()
    }
}

impl OperatorVerifier {
    /// A verifier over `issuers`, whose names must all differ (the first of two would win).
    pub fn new(issuers: Vec<Issuer>, clock: Arc<dyn Clock>) -> Self {
        Self { issuers: issuers.into(), clock }
    }

    /// The operator whose token the headers show.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Operator, TokenRefusal> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return Err(TokenRefusal::Missing) };
        let text = value.to_str().map_err(|_| TokenRefusal::Missing)?;
        let (scheme, token) = text.split_once(' ').ok_or(TokenRefusal::Missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(TokenRefusal::Missing);
        }
        self.verify(token)
    }

    /// The operator who holds this token.
    pub fn verify(&self, token: &str) -> Result<Operator, TokenRefusal> {
        let compact = jws::split(token)?;
        let header = &compact.header;
        let text = |name| header.text(name).map_err(|_| TokenRefusal::Header);
        let is_access_token = text("typ")?
            .is_some_and(|typ| typ.eq_ignore_ascii_case("at+jwt") || typ.eq_ignore_ascii_case("application/at+jwt"));
        // `jku`, `jwk`, `x5u` and `x5c` are ignored: keys come from configuration only.
        let refused = ["crit", "b64", "zip", "cty", "enc"].iter().any(|name| header.get(name).is_some());
        if !is_access_token || refused {
            return Err(TokenRefusal::Header);
        }
        let algorithm: OperatorAlgorithm =
            text("alg")?.ok_or(TokenRefusal::Header)?.parse().map_err(|_| TokenRefusal::Header)?;
        let kid = text("kid")?;
        // The issuer is read before it is verified, only to choose whose keys must verify it.
        let named = compact.claims.text("iss")?.ok_or(TokenRefusal::Claim)?;
        let issuer = self.issuers.iter().find(|issuer| issuer.name == named).ok_or(TokenRefusal::Issuer)?;
        let authentic = issuer.candidates(algorithm, kid).any(|key| {
            crypto::verify(compact.signature, compact.signed.as_bytes(), key, algorithm.library()).unwrap_or(false)
        });
        if !authentic {
            return Err(TokenRefusal::Signature);
        }
        let policy =
            ClaimPolicy { audience: &issuer.audience, names: &issuer.claims, lifetime_s_max: issuer.lifetime_s_max };
        policy.operator(&compact.claims, self.clock.now())
    }
}
