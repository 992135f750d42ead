//! Whom to tell what: the `[webhooks]` section of the configuration.

use std::{
    fs,
    path::{Path, PathBuf},
};

use daemon::{
    failure::one_line,
    outbound::{AllowList, Outbound, Peer},
    tls::{ClientTls, ClientTlsConfig},
};
use serde::Deserialize;

use super::{Endpoint, Webhooks, signature::Secret};

/// Endpoints at most: each has a task of its own and a position at CQS.
const ENDPOINTS_MAX: usize = 16;
/// Longest name, in bytes: it is part of a reader's name at CQS.
const NAME_MAX_BYTES: usize = 40;

/// What is wrong with the section.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {message}")]
pub struct WebhookProblem {
    /// The key, e.g. `endpoints[0].url`.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

fn wrong(key: impl Into<String>, message: impl std::fmt::Display) -> WebhookProblem {
    WebhookProblem { key: key.into(), message: format!("{message}") }
}

/// The section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhooksConfig {
    /// Networks and hosts that may be reached.
    pub allow: Vec<String>,
    /// Whom to trust behind `https://`.
    pub tls: ClientTlsConfig,
    /// Whom to tell.
    pub endpoints: Vec<EndpointConfig>,
}

/// One address that is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointConfig {
    /// Names it: `a-z 0-9 -`, at most 40. How far it has come is kept under this name.
    pub name: String,
    /// `https://host[:port]/path`; `http://` for loopback only.
    pub url: String,
    /// A file with the shared secret, `whsec_` and 24 to 64 bytes in base64, readable by nobody else.
    pub secret_file: PathBuf,
    /// Only of these tenants; left out: of all. The brake is told to all.
    #[serde(default)]
    pub tenants: Vec<String>,
    /// Only of these types; left out: of all.
    #[serde(default)]
    pub events: Vec<String>,
}

impl WebhooksConfig {
    /// Reads secrets and certificates. `folder` is where the configuration file lies.
    pub fn webhooks(&self, folder: &Path) -> Result<Webhooks, WebhookProblem> {
        if self.endpoints.is_empty() {
            return Ok(Webhooks::default());
        }
        if self.endpoints.len() > ENDPOINTS_MAX {
            return Err(wrong("endpoints", format!("at most {ENDPOINTS_MAX}")));
        }
        let allow = AllowList::parse(&self.allow).map_err(|error| wrong("allow", error))?;
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for (index, config) in self.endpoints.iter().enumerate() {
            let endpoint = config.endpoint(&format!("endpoints[{index}]"), folder)?;
            if endpoints.iter().any(|known| known.name == endpoint.name) {
                return Err(wrong(format!("endpoints[{index}].name"), "is given twice"));
            }
            endpoints.push(endpoint);
        }
        let encrypted = endpoints.iter().any(|endpoint| endpoint.encrypted);
        let tls = encrypted.then(|| ClientTls::new(&self.tls, folder, &[b"http/1.1"])).transpose();
        Ok(Webhooks {
            endpoints,
            outbound: Outbound::new(allow),
            tls: tls.map_err(|error| wrong("tls", one_line(&error)))?,
        })
    }
}

impl EndpointConfig {
    fn endpoint(&self, key: &str, folder: &Path) -> Result<Endpoint, WebhookProblem> {
        let at = |field: &str| format!("{key}.{field}");
        let named = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty() || self.name.len() > NAME_MAX_BYTES || !self.name.bytes().all(named) {
            return Err(wrong(at("name"), format!("must be 1 to {NAME_MAX_BYTES} of a-z 0-9 -")));
        }
        let (encrypted, rest) = match (self.url.strip_prefix("https://"), self.url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong(at("url"), "must begin with https://")),
        };
        let cut = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        let peer = Peer::parse(authority, if encrypted { 443 } else { 80 }).map_err(|error| wrong(at("url"), error))?;
        let loopback = peer.host().parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        if !encrypted && !loopback {
            return Err(wrong(at("url"), "must begin with https:// unless it is a loopback address"));
        }
        let text = fs::read_to_string(folder.join(&self.secret_file))
            .map_err(|error| wrong(at("secret_file"), format!("{}: {error}", self.secret_file.display())))?;
        let tenants = self.tenants.iter().map(|tenant| tenant.parse().map_err(|error| wrong(at("tenants"), error)));
        let types = self.events.iter().map(|name| name.parse().map_err(|error| wrong(at("events"), error)));
        Ok(Endpoint {
            name: self.name.clone(),
            peer,
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
            encrypted,
            secret: Secret::parse(text.trim())
                .ok_or_else(|| wrong(at("secret_file"), "must hold whsec_ and 24 to 64 bytes in base64"))?,
            tenants: tenants.collect::<Result<_, _>>()?,
            types: types.collect::<Result<_, _>>()?,
        })
    }
}
