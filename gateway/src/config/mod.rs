//! The configuration file of `reshelf-gateway`. Paths in it are relative to the file.

use std::{
    collections::BTreeMap,
    fmt::Display,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use daemon::{
    SystemClock, SystemIds,
    channel::{self, PeerTrust},
    failure::one_line,
    identity::{ServiceCredentials, ServiceKey},
    shutdown::Shutdown,
    telemetry::LogFormat,
    tls::{ClientTlsConfig, ServerTls, ServerTlsConfig},
};
use domain::{Clock, ServiceName};
use http::HeaderValue;
use serde::Deserialize;

use crate::{
    auth::OperatorVerifier,
    login::Login,
    notify::WebhooksConfig,
    plan::PlanKey,
    rates::Rules,
    state::{GatewayParts, OperatorPolicy},
};

mod issuer;

pub use issuer::{IssuerConfig, KeyConfig};

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
    /// The gateway's own certificate; left out: it speaks no TLS.
    #[serde(default)]
    pub tls: Option<ServerTlsConfig>,
    /// Whom the gateway trusts behind `https://` addresses of `platform` and `triggers`, and what it shows them.
    #[serde(default)]
    pub peer_tls: ClientTlsConfig,
    /// Issuers of operator tokens.
    pub issuers: Vec<IssuerConfig>,
    /// A private key that signs plans, the same at all gateways; left out: `service_key`.
    #[serde(default)]
    pub plan_key: Option<PathBuf>,
    /// What operators may do by themselves.
    #[serde(default)]
    pub policy: OperatorPolicy,
    /// Where the page at `/docs` logs in; left out: tokens are pasted.
    #[serde(default)]
    pub login: Option<Login>,
    /// Whom to tell what happens to operations; nobody by default.
    #[serde(default)]
    pub webhooks: WebhooksConfig,
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

/// Whether the gateway may listen there: without TLS (`protected` is false) tokens would cross the network in the clear.
pub fn listen_allowed(listen: SocketAddr, protected: bool) -> bool {
    listen.ip().is_loopback() || protected
}

impl GatewayConfig {
    /// Everything the gateway is composed of. `folder` is where the file lies.
    pub fn parts(&self, folder: &Path, shutdown: Shutdown) -> Result<GatewayParts, ConfigProblem> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let key = folder.join(&self.service_key);
        let credentials = ServiceCredentials::from_file(ServiceName::OperatorGateway, &key, Arc::clone(&clock))
            .map_err(|error| wrong("service_key", &one_line(&error)))?;
        let trust = PeerTrust { tls: &self.peer_tls, folder };
        let platform =
            channel::connect_over(&self.platform, trust).map_err(|error| wrong("platform", &one_line(&error)))?;
        let plan_key = folder.join(self.plan_key.as_ref().unwrap_or(&self.service_key));
        let plan_key = ServiceKey::read(&plan_key).map_err(|error| wrong("plan_key", &one_line(&error)))?;
        let plans = PlanKey::new(plan_key).map_err(|error| wrong("plan_key", &one_line(&error)))?;
        if self.policy.approval_above_labels < 0 {
            return Err(wrong("policy.approval_above_labels", &"must be a number of labels, 0 or more"));
        }
        let mut triggers = BTreeMap::new();
        for (name, addresses) in &self.triggers {
            let key = format!("triggers.{name}");
            let service: ServiceName = name.parse().map_err(|error| wrong(&key, &error))?;
            let transport = channel::connect_over(addresses, trust).map_err(|error| wrong(&key, &one_line(&error)))?;
            triggers.insert(service, credentials.attach(transport));
        }
        Ok(GatewayParts {
            platform: credentials.attach(platform),
            triggers,
            operators: self.verifier(folder, Arc::clone(&clock))?,
            plans,
            policy: self.policy,
            cors: self.origins()?,
            login: self.login()?,
            rules: Rules::default(),
            webhooks: self
                .webhooks
                .webhooks(folder)
                .map_err(|problem| wrong(format!("webhooks.{}", problem.key), &problem.message))?,
            shutdown,
            clock,
            ids: Arc::new(SystemIds),
        })
    }

    /// What accepts TLS here, when a certificate is configured.
    pub fn server_tls(&self, folder: &Path) -> Result<Option<ServerTls>, ConfigProblem> {
        let tls = self.tls.as_ref().map(|config| ServerTls::new(config, folder, &[b"http/1.1"]));
        tls.transpose().map_err(|error| wrong("tls", &one_line(&error)))
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

    fn login(&self) -> Result<Option<Login>, ConfigProblem> {
        match self.login.as_ref().and_then(Login::problem) {
            Some(key) => Err(wrong(format!("login.{key}"), &"must be an address such as https://id.example.com/token")),
            None => Ok(self.login.clone()),
        }
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
