//! Issuers of operator tokens and their public keys, all from configuration.

use std::{fmt, str::FromStr};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use daemon::identity::PublicKey;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;

use super::ClaimNames;

/// Keys one issuer may have: current, next and last of a few algorithms, with room.
const KEYS_MAX: usize = 32;
/// Shortest RSA modulus, in bytes (2,048 bits).
const RSA_MODULUS_MIN_BYTES: usize = 256;

/// The signature algorithms accepted for operator tokens: asymmetric, and one per kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperatorAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl OperatorAlgorithm {
    pub(super) fn library(self) -> Algorithm {
        match self {
            Self::Rs256 => Algorithm::RS256,
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

/// The text is not one of `RS256`, `ES256`, `EdDSA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be RS256, ES256 or EdDSA")]
pub struct UnknownAlgorithm;

impl FromStr for OperatorAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        match text {
            "RS256" => Ok(Self::Rs256),
            "ES256" => Ok(Self::Es256),
            "EdDSA" => Ok(Self::EdDsa),
            _ => Err(UnknownAlgorithm),
        }
    }
}

/// Why an issuer is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("issuer {issuer}: {problem}")]
pub struct IssuerError {
    /// Which.
    pub issuer: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A public key as configuration gives it.
#[derive(Debug, Clone)]
pub enum PublicKeyText {
    /// One key as PEM (`SubjectPublicKeyInfo`), with its algorithm.
    Pem {
        /// The PEM text.
        pem: String,
        /// What it verifies.
        algorithm: OperatorAlgorithm,
        /// Its id; without one it is tried for every token.
        kid: Option<String>,
    },
    /// A JWK set; each key's algorithm follows from its kind and curve.
    JwkSet(String),
    /// One Ed25519 key, as `daemon` writes public keys.
    Ed25519(PublicKey),
}

/// One issuer as configuration gives it.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// Exactly the tokens' `iss`.
    pub issuer: String,
    /// Must be among the tokens' `aud`.
    pub audience: String,
    /// The algorithms accepted; keys of others are refused at start.
    pub algorithms: Vec<OperatorAlgorithm>,
    /// Its keys, at least one.
    pub keys: Vec<PublicKeyText>,
    /// Names of its claims.
    pub claims: ClaimNames,
    /// Longest span from `nbf` to `exp`, in seconds; none for no bound.
    pub lifetime_s_max: Option<i64>,
}

struct IssuerKey {
    kid: Option<String>,
    algorithm: OperatorAlgorithm,
    key: DecodingKey,
}

/// One issuer, its keys parsed.
pub struct Issuer {
    pub(super) name: String,
    pub(super) audience: String,
    pub(super) claims: ClaimNames,
    pub(super) lifetime_s_max: Option<i64>,
    keys: Vec<IssuerKey>,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issuer({}, {} keys)", self.name, self.keys.len())
    }
}

impl Issuer {
    /// Parses and checks the keys.
    pub fn new(settings: IssuerSettings) -> Result<Self, IssuerError> {
        let wrong = |problem: String| IssuerError { issuer: settings.issuer.clone(), problem };
        if settings.issuer.is_empty() || settings.audience.is_empty() {
            return Err(wrong("issuer and audience must not be empty".to_owned()));
        }
        let mut keys = Vec::new();
        for text in &settings.keys {
            keys.extend(parse(text).map_err(wrong)?);
        }
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(wrong(format!("needs 1 to {KEYS_MAX} keys")));
        }
        if let Some(key) = keys.iter().find(|key| !settings.algorithms.contains(&key.algorithm)) {
            return Err(wrong(format!("a key is for {:?}, which its algorithms do not list", key.algorithm)));
        }
        for (index, key) in keys.iter().enumerate() {
            if key.kid.is_some() && keys.iter().skip(index + 1).any(|other| other.kid == key.kid) {
                return Err(wrong("two keys have the same kid".to_owned()));
            }
        }
        Ok(Self {
            name: settings.issuer,
            audience: settings.audience,
            claims: settings.claims,
            lifetime_s_max: settings.lifetime_s_max,
            keys,
        })
    }

    /// The local issuer of `reshelf dev` and `reshelf token`: one Ed25519 key, the names of [`crate::token`].
    pub fn local(key: &PublicKey) -> Result<Self, IssuerError> {
        Self::new(IssuerSettings {
            issuer: crate::token::LOCAL_ISSUER.to_owned(),
            audience: crate::token::LOCAL_AUDIENCE.to_owned(),
            algorithms: vec![OperatorAlgorithm::EdDsa],
            keys: vec![PublicKeyText::Ed25519(key.clone())],
            claims: ClaimNames::default(),
            lifetime_s_max: None,
        })
    }

    /// The keys a token of that algorithm and key id may have been signed with.
    pub(super) fn candidates(
        &self,
        algorithm: OperatorAlgorithm,
        kid: Option<&str>,
    ) -> impl Iterator<Item = &DecodingKey> {
        self.keys
            .iter()
            .filter(move |key| {
                let named = match (kid, key.kid.as_deref()) {
                    (Some(asked), Some(known)) => asked == known,
                    _ => true,
                };
                named && key.algorithm == algorithm
            })
            .map(|key| &key.key)
    }
}

fn parse(text: &PublicKeyText) -> Result<Vec<IssuerKey>, String> {
    match text {
        PublicKeyText::Pem { pem, algorithm, kid } => {
            let parsed = match algorithm {
                OperatorAlgorithm::Rs256 => DecodingKey::from_rsa_pem(pem.as_bytes()),
                OperatorAlgorithm::Es256 => DecodingKey::from_ec_pem(pem.as_bytes()),
                OperatorAlgorithm::EdDsa => DecodingKey::from_ed_pem(pem.as_bytes()),
            };
            let key = parsed.map_err(|_| format!("a PEM is not a public key for {algorithm:?}"))?;
            Ok(vec![IssuerKey { kid: kid.clone(), algorithm: *algorithm, key }])
        }
        PublicKeyText::Ed25519(key) => {
            let key = key.decoding().map_err(|error| error.to_string())?;
            Ok(vec![IssuerKey { kid: None, algorithm: OperatorAlgorithm::EdDsa, key }])
        }
        PublicKeyText::JwkSet(json) => {
            let set: JwkSet = serde_json::from_str(json).map_err(|error| format!("JWK set: {error}"))?;
            set.keys.iter().map(Jwk::parse).collect()
        }
    }
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<String>,
}

impl Jwk {
    fn parse(&self) -> Result<IssuerKey, String> {
        let name = self.kid.as_deref().unwrap_or("without kid");
        let wrong = |what: &str| format!("JWK {name}: {what}");
        if self.d.is_some() {
            return Err(wrong("is a private key"));
        }
        if self.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return Err(wrong("is not for signatures"));
        }
        let missing = || wrong("lacks a parameter of its kind");
        let (algorithm, key) = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", None) => {
                let n = self.n.as_deref().ok_or_else(missing)?;
                let modulus = BASE64_URL_SAFE_NO_PAD.decode(n).map_err(|_| wrong("n is not base64url"))?;
                if modulus.iter().skip_while(|byte| **byte == 0).count() < RSA_MODULUS_MIN_BYTES {
                    return Err(wrong("RSA keys need at least 2,048 bits"));
                }
                let e = self.e.as_deref().ok_or_else(missing)?;
                (OperatorAlgorithm::Rs256, DecodingKey::from_rsa_components(n, e))
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (self.x.as_deref().ok_or_else(missing)?, self.y.as_deref().ok_or_else(missing)?);
                (OperatorAlgorithm::Es256, DecodingKey::from_ec_components(x, y))
            }
            ("OKP", Some("Ed25519")) => {
                (OperatorAlgorithm::EdDsa, DecodingKey::from_ed_components(self.x.as_deref().ok_or_else(missing)?))
            }
            _ => return Err(wrong("its kind or curve is not accepted")),
        };
        if self.alg.as_deref().is_some_and(|alg| alg.parse() != Ok(algorithm)) {
            return Err(wrong("its alg is not that of its kind"));
        }
        let key = key.map_err(|_| wrong("is malformed"))?;
        Ok(IssuerKey { kid: self.kid.clone(), algorithm, key })
    }
}
