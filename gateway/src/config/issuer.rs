//! Issuers of operator tokens, as the configuration file names them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use daemon::{
    failure::one_line,
    tls::{ClientTls, ClientTlsConfig},
};
use serde::Deserialize;

use super::{ConfigProblem, wrong};
use crate::auth::{
    ClaimNames, GroupGrant, Groups, Issuer, IssuerSettings, KeySource, OperatorAlgorithm, PublicKeyText, TokenRules,
    TokenType,
};

/// One issuer of operator tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// Exactly the tokens' `iss`.
    pub issuer: String,
    /// Must be among the tokens' `aud`.
    pub audience: String,
    /// Of RS256, ES256, EdDSA.
    pub algorithms: Vec<String>,
    /// Its public keys, when they are configured here.
    #[serde(default)]
    pub keys: Vec<KeyConfig>,
    /// Whether its keys are found through `{issuer}/.well-known/openid-configuration`.
    #[serde(default)]
    pub discovery: bool,
    /// Where its JWK set is published, instead of `discovery`.
    #[serde(default)]
    pub jwks_uri: Option<String>,
    /// Authorities of its server (PEM); left out: the system's bundle.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// How its access tokens are marked.
    #[serde(default)]
    pub token_type: TokenType,
    /// Claims that must be there; left out: `nbf` with configured keys, else what RFC 9068 requires.
    #[serde(default)]
    pub required_claims: Option<Vec<String>>,
    /// The only clients whose tokens are accepted; none for all of the issuer's.
    #[serde(default)]
    pub clients: Vec<String>,
    /// Names of its claims.
    #[serde(default)]
    pub claims: ClaimNames,
    /// What its groups grant; scopes and tenants then come from groups only.
    #[serde(default)]
    pub groups: BTreeMap<String, GroupGrant>,
    /// Longest span from `nbf` (or `iat`) to `exp`, in seconds; left out: no bound.
    #[serde(default)]
    pub lifetime_s_max: Option<i64>,
}

/// One source of public keys: exactly one of `pem_file` (with `algorithm`), `jwks_file` and `ed25519`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyConfig {
    /// A PEM file with one public key.
    pub pem_file: Option<PathBuf>,
    /// What the PEM's key verifies.
    pub algorithm: Option<String>,
    /// Id of the PEM's key.
    pub kid: Option<String>,
    /// A JWK set file.
    pub jwks_file: Option<PathBuf>,
    /// Base64url of one Ed25519 public key.
    pub ed25519: Option<String>,
}

impl IssuerConfig {
    pub(super) fn issuer(&self, key: &str, folder: &Path) -> Result<Issuer, ConfigProblem> {
        let algorithms = self
            .algorithms
            .iter()
            .map(|text| text.parse().map_err(|error| wrong(format!("{key}.algorithms"), &error)))
            .collect::<Result<Vec<OperatorAlgorithm>, _>>()?;
        let keys = self.key_source(key, folder)?;
        let fixed = matches!(keys, KeySource::Fixed(_));
        let mut rules = if fixed { TokenRules::own() } else { TokenRules::rfc9068() };
        rules.token_type = self.token_type;
        rules.clients.clone_from(&self.clients);
        if let Some(required) = &self.required_claims {
            rules.required.clone_from(required);
        }
        rules.groups = Groups::parse(&self.groups).map_err(|error| wrong(format!("{key}.groups"), &error))?;
        Issuer::new(IssuerSettings {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            algorithms,
            keys,
            claims: self.claims.clone(),
            rules,
            lifetime_s_max: self.lifetime_s_max,
        })
        .map_err(|error| wrong(key, &error))
    }

    fn key_source(&self, key: &str, folder: &Path) -> Result<KeySource, ConfigProblem> {
        let tls = || {
            let trust = ClientTlsConfig { ca_file: self.ca_file.clone(), ..ClientTlsConfig::default() };
            ClientTls::new(&trust, folder, &[b"http/1.1"])
                .map_err(|error| wrong(format!("{key}.ca_file"), &one_line(&error)))
        };
        match (self.keys.as_slice(), self.discovery, &self.jwks_uri) {
            (keys, false, None) => keys
                .iter()
                .enumerate()
                .map(|(index, source)| source.text(&format!("{key}.keys[{index}]"), folder))
                .collect::<Result<Vec<_>, _>>()
                .map(KeySource::Fixed),
            ([], true, None) => Ok(KeySource::Discovered { tls: tls()? }),
            ([], false, Some(uri)) => Ok(KeySource::JwkSetAt { uri: uri.clone(), tls: tls()? }),
            _ => Err(wrong(key, &"needs exactly one of keys, discovery = true, jwks_uri")),
        }
    }
}

impl KeyConfig {
    fn text(&self, key: &str, folder: &Path) -> Result<PublicKeyText, ConfigProblem> {
        let read = |name: &str, path: &Path| {
            fs::read_to_string(folder.join(path))
                .map_err(|error| wrong(format!("{key}.{name}"), &format!("{}: {error}", path.display())))
        };
        match (&self.pem_file, &self.algorithm, &self.jwks_file, &self.ed25519) {
            (Some(path), Some(algorithm), None, None) => Ok(PublicKeyText::Pem {
                pem: read("pem_file", path)?,
                algorithm: algorithm.parse().map_err(|error| wrong(format!("{key}.algorithm"), &error))?,
                kid: self.kid.clone(),
            }),
            (None, None, Some(path), None) if self.kid.is_none() => Ok(PublicKeyText::JwkSet(read("jwks_file", path)?)),
            (None, None, None, Some(text)) if self.kid.is_none() => {
                Ok(PublicKeyText::Ed25519(text.parse().map_err(|error| wrong(format!("{key}.ed25519"), &error))?))
            }
            _ => Err(wrong(key, &"needs exactly one of pem_file (with algorithm, perhaps kid), jwks_file, ed25519")),
        }
    }
}
