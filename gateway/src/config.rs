//! The configuration file of `reshelf-gateway`. Paths in it are relative to the file.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use daemon::{
    SystemClock, SystemIds, channel,
    identity::{ServiceCredentials, ServiceKey},
    telemetry::LogFormat,
};
use domain::{Clock, ServiceName};
use http::HeaderValue;
use serde::Deserialize;

use crate::{
    auth::{ClaimNames, Issuer, IssuerSettings, OperatorAlgorithm, OperatorVerifier, PublicKeyText},
    state::GatewayParts,
};

/// What is wrong with the configuration, with the key that says it.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigProblem {
    /// The key, e.g. `issuers[0].keys[1]`.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

fn wrong(key: impl Into<String>, message: &dyn Display) -> ConfigProblem {
    ConfigProblem { key: key.into(), message: message.to_string() }
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// Where to listen.
    #[serde(default = "loopback")]
    pub listen: SocketAddr,
    /// The private key of `operator-gateway`, as the service registry lists its public half.
    pub service_key: PathBuf,
    /// Addresses of platform servers (CQS and DTOflow), tried in turn.
    pub platform: Vec<String>,
    /// Per service that owns triggers, the addresses of workers that serve them, tried in turn.
    pub triggers: BTreeMap<String, Vec<String>>,
    /// Issuers of operator tokens.
    pub issuers: Vec<IssuerConfig>,
    /// Origins whose pages may call the API; none by default.
    #[serde(default)]
    pub cors_origins: Vec<String>,
    /// How log lines look.
    #[serde(default)]
    pub log: LogFormatName,
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8080))
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormatName {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl From<LogFormatName> for LogFormat {
    fn from(name: LogFormatName) -> Self {
        match name {
            LogFormatName::Text => Self::Text,
            LogFormatName::Json => Self::Json,
        }
    }
}

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
    /// Its public keys.
    pub keys: Vec<KeyConfig>,
    /// Names of its claims.
    #[serde(default)]
    pub claims: ClaimNames,
    /// Longest span from `nbf` to `exp`, in seconds; left out: no bound.
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

/// Whether the gateway may listen there: it speaks no TLS itself, so tokens would cross the network in the clear.
pub fn listen_allowed(listen: SocketAddr, insecure: bool) -> bool {
    listen.ip().is_loopback() || insecure
}

impl GatewayConfig {
    /// Everything the gateway is composed of. `folder` is where the file lies.
    pub fn parts(&self, folder: &Path) -> Result<GatewayParts, ConfigProblem> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let key = ServiceKey::read(&folder.join(&self.service_key)).map_err(|error| wrong("service_key", &error))?;
        let credentials = ServiceCredentials::new(ServiceName::OperatorGateway, key, Arc::clone(&clock));
        let platform = channel::connect(&self.platform).map_err(|error| wrong("platform", &error))?;
        let mut triggers = BTreeMap::new();
        for (name, addresses) in &self.triggers {
            let key = format!("triggers.{name}");
            let service: ServiceName = name.parse().map_err(|error| wrong(&key, &error))?;
            let transport = channel::connect(addresses).map_err(|error| wrong(&key, &error))?;
            triggers.insert(service, credentials.attach(transport));
        }
        Ok(GatewayParts {
            platform: credentials.attach(platform),
            triggers,
            operators: self.verifier(folder, Arc::clone(&clock))?,
            cors: self.origins()?,
            clock,
            ids: Arc::new(SystemIds),
        })
    }

    fn verifier(&self, folder: &Path, clock: Arc<dyn Clock>) -> Result<OperatorVerifier, ConfigProblem> {
        if self.issuers.is_empty() {
            return Err(wrong("issuers", &"needs at least one issuer of operator tokens"));
        }
        let mut issuers = Vec::new();
        for (index, config) in self.issuers.iter().enumerate() {
            if self.issuers.iter().take(index).any(|earlier| earlier.issuer == config.issuer) {
                return Err(wrong(format!("issuers[{index}].issuer"), &"is configured twice"));
            }
            issuers.push(config.issuer(&format!("issuers[{index}]"), folder)?);
        }
        Ok(OperatorVerifier::new(issuers, clock))
    }

    fn origins(&self) -> Result<Vec<HeaderValue>, ConfigProblem> {
        let origin = |(index, text): (usize, &String)| {
            let key = format!("cors_origins[{index}]");
            if !text.starts_with("https://") && !text.starts_with("http://") || text.ends_with('/') {
                return Err(wrong(key, &"must be an origin such as https://ops.example.com, without a path"));
            }
            HeaderValue::try_from(text).map_err(|error| wrong(key, &error))
        };
        self.cors_origins.iter().enumerate().map(origin).collect()
    }
}

impl IssuerConfig {
    fn issuer(&self, key: &str, folder: &Path) -> Result<Issuer, ConfigProblem> {
        let algorithms = self
            .algorithms
            .iter()
            .map(|text| text.parse().map_err(|error| wrong(format!("{key}.algorithms"), &error)))
            .collect::<Result<Vec<OperatorAlgorithm>, _>>()?;
        let keys = self
            .keys
            .iter()
            .enumerate()
            .map(|(index, source)| source.text(&format!("{key}.keys[{index}]"), folder))
            .collect::<Result<Vec<_>, _>>()?;
        Issuer::new(IssuerSettings {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            algorithms,
            keys,
            claims: self.claims.clone(),
            lifetime_s_max: self.lifetime_s_max,
        })
        .map_err(|error| wrong(key, &error))
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
