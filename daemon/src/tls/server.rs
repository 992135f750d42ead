//! Accepting TLS.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, server::WebPkiClientVerifier},
};

use super::{TlsError, Watched, files};

/// A server's certificate. Paths are relative to the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTlsConfig {
    /// Its chain (PEM), its own certificate first.
    pub certificate_file: PathBuf,
    /// The private key (PEM), 0600.
    pub key_file: PathBuf,
    /// Whose certificates clients must show; left out: clients show none.
    #[serde(default)]
    pub client_ca_file: Option<PathBuf>,
}

/// Accepts TLS with the certificate its files hold now. Cheap to clone.
#[derive(Clone)]
pub struct ServerTls(Arc<Watched<ServerConfig>>);

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    /// Reads the files. `folder` is where the configuration file lies; `protocols` are offered by ALPN, best first.
    pub fn new(config: &ServerTlsConfig, folder: &Path, protocols: &'static [&'static [u8]]) -> Result<Self, TlsError> {
        let config = ServerTlsConfig {
            certificate_file: folder.join(&config.certificate_file),
            key_file: folder.join(&config.key_file),
            client_ca_file: config.client_ca_file.as_ref().map(|path| folder.join(path)),
        };
        // The first reading tells its cause as a value; later ones only tell the log.
        made(&config, protocols)?;
        let paths = [&config.certificate_file, &config.key_file].into_iter().chain(&config.client_ca_file);
        let paths = paths.cloned().collect();
        let watched = Watched::new("server certificate", paths, move || {
            made(&config, protocols).map_err(|error| error.to_string())
        });
        watched.map(|watched| Self(Arc::new(watched))).map_err(TlsError::Settings)
    }

    /// What accepts the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.get())
    }
}

fn made(config: &ServerTlsConfig, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let chain = files::certificates(&config.certificate_file)?;
    let key = files::private_key(&config.key_file)?;
    let builder = ServerConfig::builder_with_provider(files::provider()).with_safe_default_protocol_versions()?;
    let builder = match &config.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(files::authorities(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, files::provider())
                .build()
                .map_err(|error| TlsError::Settings(format!("{}: {error}", path.display())))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut made = builder.with_single_cert(chain, key)?;
    made.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(made)
}
