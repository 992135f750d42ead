//! Connecting over TLS.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, pki_types::ServerName},
};

use super::{TlsError, Watched, files};

/// Whom a client trusts and what it shows. Paths are relative to the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientTlsConfig {
    /// Authorities of the servers (PEM); left out: the system's bundle.
    pub ca_file: Option<PathBuf>,
    /// The client's own chain (PEM), with `key_file`: for servers that ask for one.
    pub certificate_file: Option<PathBuf>,
    /// The private key of that chain (PEM), 0600.
    pub key_file: Option<PathBuf>,
}

/// Connects with what its files hold now. Cheap to clone.
#[derive(Clone)]
pub struct ClientTls(Arc<Watched<ClientConfig>>);

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl ClientTls {
    /// Reads the files. `folder` is where the configuration file lies; `protocols` are offered by ALPN, best first.
    pub fn new(config: &ClientTlsConfig, folder: &Path, protocols: &'static [&'static [u8]]) -> Result<Self, TlsError> {
        let own = match (&config.certificate_file, &config.key_file) {
            (Some(chain), Some(key)) => Some((folder.join(chain), folder.join(key))),
            (None, None) => None,
            _ => return Err(TlsError::Settings("certificate_file and key_file belong together".to_owned())),
        };
        let ca = match &config.ca_file {
            Some(path) => folder.join(path),
            None => files::system_bundle()?.to_path_buf(),
        };
        made(&ca, own.as_ref(), protocols)?;
        let paths = [ca.clone()].into_iter().chain(own.clone().into_iter().flat_map(|(chain, key)| [chain, key]));
        let paths = paths.collect();
        let watched = Watched::new("client certificates", paths, move || {
            made(&ca, own.as_ref(), protocols).map_err(|error| error.to_string())
        });
        watched.map(|watched| Self(Arc::new(watched))).map_err(TlsError::Settings)
    }

    /// TLS over `stream` with the server of that name (a DNS name or an IP address).
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        // IPv6 addresses stand in brackets within addresses, and without them within certificates.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        TlsConnector::from(self.0.get()).connect(name, stream).await
    }
}

fn made(ca: &Path, own: Option<&(PathBuf, PathBuf)>, protocols: &[&[u8]]) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(files::provider()).with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(files::authorities(ca)?);
    let mut made = match own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(files::certificates(chain)?, files::private_key(key)?)?,
    };
    made.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(made)
}
