//! The public keys of one issuer, parsed from configuration or from what its provider publishes.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;

use super::{OperatorAlgorithm, PublicKeyText};

/// Keys one issuer may have: current, next and last of a few algorithms, with room.
const KEYS_MAX: usize = 32;
/// Keys a published set may list, those of other uses included.
const PUBLISHED_MAX: usize = 128;
/// Shortest RSA modulus, in bytes (2,048 bits).
const RSA_MODULUS_MIN_BYTES: usize = 256;
/// Longest RSA modulus, in bytes (8,192 bits): a longer one only makes each check slow.
const RSA_MODULUS_MAX_BYTES: usize = 1_024;

struct IssuerKey {
    kid: Option<String>,
    algorithm: OperatorAlgorithm,
    key: DecodingKey,
}

/// Parsed keys; each verifies one algorithm.
pub(super) struct KeySet(Vec<IssuerKey>);

impl KeySet {
    /// Keys of a configuration: each must be right.
    pub(super) fn configured(texts: &[PublicKeyText], algorithms: &[OperatorAlgorithm]) -> Result<Self, String> {
        let mut keys = Vec::new();
        for text in texts {
            keys.extend(parse(text)?);
        }
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(format!("needs 1 to {KEYS_MAX} keys"));
        }
        if let Some(key) = keys.iter().find(|key| !algorithms.contains(&key.algorithm)) {
            return Err(format!("a key is for {:?}, which its algorithms do not list", key.algorithm));
        }
        if keys.iter().any(|key| key.kid.is_some() && count(&keys, key.kid.as_deref()) > 1) {
            return Err("two keys have the same kid".to_owned());
        }
        Ok(Self(keys))
    }

    /// Keys as a provider publishes them: those that are not for us are passed over (RFC 7517, 5), as are two keys that
    /// share a kid, since nobody can say which is meant.
    pub(super) fn published(json: &[u8], algorithms: &[OperatorAlgorithm]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Published {
            keys: Vec<Value>,
        }
        let set: Published = serde_json::from_slice(json).map_err(|_| "is no JWK set".to_owned())?;
        if set.keys.len() > PUBLISHED_MAX {
            return Err(format!("lists more than {PUBLISHED_MAX} keys"));
        }
        let mut keys = Vec::new();
        for value in set.keys {
            match serde_json::from_value::<Jwk>(value)
                .map_err(|_| "is malformed".to_owned())
                .and_then(|jwk| jwk.parse())
            {
                Ok(key) if algorithms.contains(&key.algorithm) => keys.push(key),
                Ok(_) => {}
                Err(problem) => tracing::debug!(problem, "a published key is passed over"),
            }
        }
        let shared: Vec<bool> =
            keys.iter().map(|key| key.kid.is_some() && count(&keys, key.kid.as_deref()) > 1).collect();
        if shared.contains(&true) {
            tracing::warn!("published keys that share a kid are passed over");
        }
        let mut shared = shared.into_iter();
        keys.retain(|_| !shared.next().unwrap_or_default());
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(format!("has {} usable keys, not 1 to {KEYS_MAX}", keys.len()));
        }
        Ok(Self(keys))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys a token of that algorithm and key id may have been signed with.
    pub(super) fn candidates(
        &self,
        algorithm: OperatorAlgorithm,
        kid: Option<&str>,
    ) -> impl Iterator<Item = &DecodingKey> {
        self.0
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

fn count(keys: &[IssuerKey], kid: Option<&str>) -> usize {
    keys.iter().filter(|key| key.kid.as_deref() == kid).count()
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
                let length = modulus.iter().skip_while(|byte| **byte == 0).count();
                if !(RSA_MODULUS_MIN_BYTES..=RSA_MODULUS_MAX_BYTES).contains(&length) {
                    return Err(wrong("RSA keys need at least 2,048 bits, and at most 8,192"));
                }
                let e = self.e.as_deref().ok_or_else(missing)?;
                let exponent = BASE64_URL_SAFE_NO_PAD.decode(e).map_err(|_| wrong("e is not base64url"))?;
                // An exponent of 1 verifies anything; an even or long one is no honest key's.
                let sound = match exponent.as_slice() {
                    [] => false,
                    [only] => *only >= 3 && only % 2 == 1,
                    [.., last] => exponent.len() <= 4 && last % 2 == 1,
                };
                if !sound {
                    return Err(wrong("its RSA exponent is not accepted"));
                }
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
