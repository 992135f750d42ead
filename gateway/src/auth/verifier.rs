//! Verifying an operator token.

use std::{fmt, sync::Arc};

use domain::{Clock, Timestamp};
use http::{HeaderMap, header::AUTHORIZATION};
use jsonwebtoken::crypto;

use super::{
    Issuer, Operator, OperatorAlgorithm,
    claims::ClaimPolicy,
    jws::{self, UniqueObject},
    keys::KeySet,
};

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
    /// No key of its issuer can be had: the provider has not answered for too long. No fault of the token.
    #[error("no keys of this issuer can be had")]
    NoKeys,
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

    /// The operator whose token the headers show. Fetches published keys when they are due, or when the token names one
    /// that is not known.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Operator, TokenRefusal> {
        let presented = self.read(bearer(headers)?)?;
        let keys = presented.issuer.keys(&self.clock).await.ok_or(TokenRefusal::NoKeys)?;
        let keys = if presented.may_be_of(&keys) {
            keys
        } else {
            presented.issuer.newer_keys(&self.clock).await.ok_or(TokenRefusal::Signature)?
        };
        presented.judge(&keys, self.clock.now())
    }

    /// The operator who holds this token, by the keys known now.
    pub fn verify(&self, token: &str) -> Result<Operator, TokenRefusal> {
        let presented = self.read(token)?;
        let now = self.clock.now();
        let keys = presented.issuer.known_keys(now).ok_or(TokenRefusal::NoKeys)?;
        presented.judge(&keys, now)
    }

    /// The issuers none of whose keys can be had.
    pub(crate) async fn issuers_without_keys(&self) -> Vec<&str> {
        let mut without = Vec::new();
        for issuer in self.issuers.iter() {
            if issuer.keys(&self.clock).await.is_none() {
                without.push(issuer.name.as_str());
            }
        }
        without
    }

    /// Takes a token apart and finds its issuer. Costs no cryptography.
    fn read<'t>(&'t self, token: &'t str) -> Result<Presented<'t>, TokenRefusal> {
        let compact = jws::split(token)?;
        // The issuer is read before it is verified, only to choose whose keys must verify it.
        let header = TokenHeader::read(&compact.header)?;
        let named = compact.claims.text("iss")?.ok_or(TokenRefusal::Claim)?;
        let issuer = self.issuers.iter().find(|issuer| issuer.name == named).ok_or(TokenRefusal::Issuer)?;
        if !issuer.rules.token_type.takes(&header.typ) {
            return Err(TokenRefusal::Header);
        }
        Ok(Presented { compact, header, issuer })
    }
}

/// The one token of an `Authorization: Bearer …` header.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, TokenRefusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Err(TokenRefusal::Missing) };
    let text = value.to_str().map_err(|_| TokenRefusal::Missing)?;
    let (scheme, token) = text.split_once(' ').ok_or(TokenRefusal::Missing)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token) } else { Err(TokenRefusal::Missing) }
}

/// What of a token's header counts.
struct TokenHeader {
    typ: String,
    algorithm: OperatorAlgorithm,
    kid: Option<String>,
}

impl TokenHeader {
    fn read(header: &UniqueObject) -> Result<Self, TokenRefusal> {
        let text = |name| header.text(name).map_err(|_| TokenRefusal::Header);
        // `jku`, `jwk`, `x5u` and `x5c` are ignored: keys come from the issuer's own place only.
        if ["crit", "b64", "zip", "cty", "enc"].iter().any(|name| header.get(name).is_some()) {
            return Err(TokenRefusal::Header);
        }
        let typ = text("typ")?.ok_or(TokenRefusal::Header)?.to_ascii_lowercase();
        let algorithm = text("alg")?.ok_or(TokenRefusal::Header)?.parse().map_err(|_| TokenRefusal::Header)?;
        Ok(Self { typ, algorithm, kid: text("kid")?.map(str::to_owned) })
    }
}

/// A token whose form is right and whose issuer is known; nothing of it is verified yet.
struct Presented<'t> {
    compact: jws::Compact<'t>,
    header: TokenHeader,
    issuer: &'t Issuer,
}

impl Presented<'_> {
    fn may_be_of(&self, keys: &KeySet) -> bool {
        keys.candidates(self.header.algorithm, self.header.kid.as_deref()).next().is_some()
    }

    fn judge(&self, keys: &KeySet, now: Timestamp) -> Result<Operator, TokenRefusal> {
        let (compact, algorithm) = (&self.compact, self.header.algorithm);
        let authentic = keys.candidates(algorithm, self.header.kid.as_deref()).any(|key| {
            crypto::verify(compact.signature, compact.signed.as_bytes(), key, algorithm.library()).unwrap_or(false)
        });
        if !authentic {
            return Err(TokenRefusal::Signature);
        }
        let policy = ClaimPolicy {
            audience: &self.issuer.audience,
            names: &self.issuer.claims,
            rules: &self.issuer.rules,
            lifetime_s_max: self.issuer.lifetime_s_max,
        };
        policy.operator(&compact.claims, now)
    }
}
