//! Issuers of operator tokens: whom they are, where their keys come from, what their tokens must say.

use std::{fmt, str::FromStr, sync::Arc};

use daemon::{identity::PublicKey, tls::ClientTls};
use domain::{Clock, Timestamp};
use jsonwebtoken::Algorithm;

use super::{
    ClaimNames, TokenRules,
    keys::KeySet,
    remote::{RemoteKeys, RemoteSettings},
};

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

/// Where the keys of an issuer come from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// From configuration, at least one.
    Fixed(Vec<PublicKeyText>),
    /// From the issuer's discovery document (`{issuer}/.well-known/openid-configuration`).
    Discovered {
        /// How its server is trusted.
        tls: ClientTls,
    },
    /// From a JWK set at that address.
    JwkSetAt {
        /// `https://…`, or `http://` on this machine.
        uri: String,
        /// How its server is trusted.
        tls: ClientTls,
    },
}

/// One issuer as configuration gives it.
#[derive(Debug, Clone)]
pub struct IssuerSettings {
    /// Exactly the tokens' `iss`.
    pub issuer: String,
    /// Must be among the tokens' `aud`.
    pub audience: String,
    /// The algorithms accepted; configured keys of others are refused at start, published ones passed over.
    pub algorithms: Vec<OperatorAlgorithm>,
    /// Its keys.
    pub keys: KeySource,
    /// Names of its claims.
    pub claims: ClaimNames,
    /// What its tokens must say beyond `iss`, `aud`, `sub` and `exp`.
    pub rules: TokenRules,
    /// Longest span from `nbf` (or `iat`) to `exp`, in seconds; none for no bound.
    pub lifetime_s_max: Option<i64>,
}

enum Keys {
    Fixed(Arc<KeySet>),
    Remote(Arc<RemoteKeys>),
}

/// One issuer, its configured keys parsed.
pub struct Issuer {
    pub(super) name: String,
    pub(super) audience: String,
    pub(super) claims: ClaimNames,
    pub(super) rules: TokenRules,
    pub(super) lifetime_s_max: Option<i64>,
    keys: Keys,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keys {
            Keys::Fixed(keys) => write!(f, "Issuer({}, {} keys)", self.name, keys.len()),
            Keys::Remote(_) => write!(f, "Issuer({}, published keys)", self.name),
        }
    }
}

impl Issuer {
    /// Parses and checks the keys of a configuration, and where published ones are to be found. Fetches nothing.
    pub fn new(settings: IssuerSettings) -> Result<Self, IssuerError> {
        let wrong = |problem: String| IssuerError { issuer: settings.issuer.clone(), problem };
        if settings.issuer.is_empty() || settings.audience.is_empty() {
            return Err(wrong("issuer and audience must not be empty".to_owned()));
        }
        let remote = |jwks_uri, tls| {
            RemoteKeys::new(RemoteSettings {
                issuer: settings.issuer.clone(),
                jwks_uri,
                algorithms: settings.algorithms.clone(),
                tls,
            })
            .map(|keys| Keys::Remote(Arc::new(keys)))
        };
        let keys = match settings.keys {
            KeySource::Fixed(texts) => {
                KeySet::configured(&texts, &settings.algorithms).map(|keys| Keys::Fixed(Arc::new(keys)))
            }
            KeySource::Discovered { tls } => remote(None, tls),
            KeySource::JwkSetAt { uri, tls } => remote(Some(uri), tls),
        }
        .map_err(wrong)?;
        Ok(Self {
            name: settings.issuer,
            audience: settings.audience,
            claims: settings.claims,
            rules: settings.rules,
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
            keys: KeySource::Fixed(vec![PublicKeyText::Ed25519(key.clone())]),
            claims: ClaimNames::default(),
            rules: TokenRules::own(),
            lifetime_s_max: None,
        })
    }

    /// The keys known now, without asking anybody.
    pub(super) fn known_keys(&self, now: Timestamp) -> Option<Arc<KeySet>> {
        match &self.keys {
            Keys::Fixed(keys) => Some(Arc::clone(keys)),
            Keys::Remote(remote) => remote.known(now),
        }
    }

    /// The keys as of now: published ones are fetched when they are due. None when there are none to trust.
    pub(super) async fn keys(&self, clock: &Arc<dyn Clock>) -> Option<Arc<KeySet>> {
        match &self.keys {
            Keys::Fixed(keys) => Some(Arc::clone(keys)),
            Keys::Remote(remote) => remote.current(clock).await,
        }
    }

    /// The keys after a look for one that is not known yet. None when it is too early to look again, or nothing came.
    pub(super) async fn newer_keys(&self, clock: &Arc<dyn Clock>) -> Option<Arc<KeySet>> {
        match &self.keys {
            Keys::Fixed(_) => None,
            Keys::Remote(remote) => remote.newer(clock).await,
        }
    }
}
