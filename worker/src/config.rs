//! The program's configuration file.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use daemon::{
    channel::{self, PeerTrust},
    identity::{RegistrySource, ServiceCredentials},
    telemetry::LogFormat,
    tls::{ClientTlsConfig, ServerTls, ServerTlsConfig},
};
use domain::{Clock, ServiceName};
use proto::Transport;

use crate::{ExporterSettings, PipelineSettings};

/// Variables that begin so lie over the configuration file.
const ENVIRONMENT: &str = "RESHELF_WORKER__";

/// `reshelf-worker --config FILE`, as TOML. Paths are relative to the file.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// The services to run, e.g. `["ecc-image-render-service"]`.
    pub services: Vec<String>,
    /// Addresses of the platform, tried in turn, e.g. `["http://127.0.0.1:7400"]`.
    pub platform: Vec<String>,
    /// Where triggers are served; needed when a service has some.
    pub listen: Option<SocketAddr>,
    /// The service registry: who may call the triggers.
    pub registry: PathBuf,
    /// Directory of the services' private keys, `{service}.key`.
    pub keys: PathBuf,
    /// The exporter's drivers.
    #[serde(default)]
    pub exporter: ExporterSettings,
    /// How each queue is worked.
    #[serde(default)]
    pub pipelines: PipelineSettings,
    /// The certificate triggers are served with, and whose client certificates are wanted; left out: no TLS.
    #[serde(default)]
    pub tls: Option<ServerTlsConfig>,
    /// Whom the worker trusts behind `https://` addresses of `platform`, and what it shows there.
    #[serde(default)]
    pub peer_tls: ClientTlsConfig,
    /// How log lines look.
    #[serde(default)]
    pub log: LogLines,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLines {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl From<LogLines> for LogFormat {
    fn from(lines: LogLines) -> Self {
        match lines {
            LogLines::Text => Self::Text,
            LogLines::Json => Self::Json,
        }
    }
}

impl WorkerConfig {
    /// The services named. Refuses one that is named twice, before anything is started.
    pub fn service_names(&self) -> anyhow::Result<Vec<ServiceName>> {
        anyhow::ensure!(!self.services.is_empty(), "services must not be empty");
        let mut names: Vec<ServiceName> = Vec::with_capacity(self.services.len());
        for name in &self.services {
            let service = name.parse().with_context(|| format!("services: {name:?}"))?;
            anyhow::ensure!(!names.contains(&service), "services: {name:?} is listed twice, and would be run twice");
            names.push(service);
        }
        Ok(names)
    }

    /// The key of every service named, as credentials.
    pub fn credentials(&self, clock: &Arc<dyn Clock>) -> anyhow::Result<BTreeMap<ServiceName, ServiceCredentials>> {
        self.service_names()?
            .into_iter()
            .map(|service| {
                let key = self.keys.join(format!("{service}.key"));
                Ok((service, ServiceCredentials::from_file(service, &key, Arc::clone(clock))?))
            })
            .collect()
    }

    /// The registry, read again when it changes.
    pub fn registry(&self) -> anyhow::Result<RegistrySource> {
        Ok(RegistrySource::file(&self.registry)?)
    }

    /// The platform's addresses, and whom to trust there.
    pub fn platform(&self) -> anyhow::Result<Transport> {
        // The paths were made absolute, or relative to the process, when the file was read.
        let trust = PeerTrust { tls: &self.peer_tls, folder: Path::new("") };
        channel::connect_over(&self.platform, trust).context("platform")
    }

    /// What accepts TLS here, when a certificate is configured.
    pub fn server_tls(&self) -> anyhow::Result<Option<ServerTls>> {
        let made = self.tls.as_ref().map(|tls| ServerTls::new(tls, Path::new(""), &[b"h2"]));
        made.transpose().context("tls")
    }

    /// The address triggers are served on. Refuses one beyond loopback without `insecure`: the connection is not
    /// encrypted.
    pub fn listen_address(&self, insecure: Insecure) -> anyhow::Result<Option<SocketAddr>> {
        match self.listen {
            Some(address) if !address.ip().is_loopback() && insecure == Insecure::Refused && self.tls.is_none() => {
                anyhow::bail!(
                    "listen: {address} is reachable from other machines without TLS: name a certificate under [tls], \
                     or say --insecure"
                )
            }
            listen => Ok(listen),
        }
    }
}

/// Whether unencrypted connections from other machines are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insecure {
    /// Only from this machine.
    Refused,
    /// Accepted; a network that is trusted, or TLS in front.
    Allowed,
}

/// Reads the file.
pub fn read(path: &Path) -> anyhow::Result<WorkerConfig> {
    let mut config: WorkerConfig = daemon::config::read_with_environment(path, ENVIRONMENT)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    for relative in [&mut config.registry, &mut config.keys, &mut config.exporter.folder] {
        // An empty one stays empty: it says that the key was left out.
        if !relative.as_os_str().is_empty() {
            *relative = folder.join(&*relative);
        }
    }
    let own = config
        .tls
        .as_mut()
        .map(|tls| [Some(&mut tls.certificate_file), Some(&mut tls.key_file), tls.client_ca_file.as_mut()]);
    let peer = &mut config.peer_tls;
    let shown = [peer.ca_file.as_mut(), peer.certificate_file.as_mut(), peer.key_file.as_mut()];
    let systems = config.exporter.webhook.as_mut().and_then(|webhook| webhook.ca_file.as_mut());
    for relative in own.into_iter().flatten().chain(shown).chain([systems]).flatten() {
        *relative = folder.join(&*relative);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MINIMAL: &str = r#"
        services = ["ecc-image-render-service", "esl-image-merger"]
        platform = ["http://127.0.0.1:7400"]
        registry = "registry.toml"
        keys = "keys"
    "#;

    fn written(text: &str) -> anyhow::Result<WorkerConfig> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    #[test]
    fn a_minimal_file_has_sound_defaults() {
        let config = written(MINIMAL).unwrap();
        assert_eq!(config.service_names().unwrap(), [ServiceName::EccImageRender, ServiceName::EslImageMerger]);
        assert_eq!(config.pipelines, PipelineSettings::default());
        assert_eq!(config.log, LogLines::Text);
    }

    #[test]
    fn unknown_keys_and_services_are_refused_by_name() {
        let error = written(&format!("{MINIMAL}\nworkers = 3")).unwrap_err().to_string();
        assert!(error.contains("workers"), "{error}");
        let error = written(&MINIMAL.replace("esl-image-merger", "merger")).unwrap().service_names().unwrap_err();
        assert!(format!("{error:#}").contains("merger"), "{error:#}");
    }

    #[test]
    fn a_service_that_is_named_twice_is_refused_by_name() {
        let twice = MINIMAL.replace("esl-image-merger", "ecc-image-render-service");
        let error = written(&twice).unwrap().service_names().unwrap_err().to_string();
        assert!(error.contains("services: \"ecc-image-render-service\" is listed twice"), "{error}");
    }

    #[test]
    fn beyond_loopback_only_when_told() {
        let config = written(&format!("listen = \"0.0.0.0:7500\"\n{MINIMAL}")).unwrap();
        assert!(config.listen_address(Insecure::Refused).is_err());
        assert!(config.listen_address(Insecure::Allowed).unwrap().is_some());
        let config = written(&format!("listen = \"127.0.0.1:7500\"\n{MINIMAL}")).unwrap();
        assert!(config.listen_address(Insecure::Refused).unwrap().is_some());
    }
}
