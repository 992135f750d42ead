//! Reading certificates and keys from PEM files.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
};

use tokio_rustls::rustls::{
    self, RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

/// The permissions of accounts that are neither the file's owner nor of its group.
const MODE_OTHERS: u32 = 0o007;
/// Longest PEM file, in bytes: a system's whole bundle of authorities is some 250 KiB.
const PEM_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Why TLS cannot be set up. Names the file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file could not be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file does not hold what it should.
    #[error("{path}: {problem}")]
    Content {
        /// Which.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// Other accounts of the machine could read the private key.
    #[error("{0} is open to every account of this machine; it may have been copied: make another, or `chmod 600` it")]
    Exposed(String),
    /// The system has no bundle of authorities where bundles usually are.
    #[error("no bundle of certificate authorities was found on this system; name one with ca_file")]
    NoSystemBundle,
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// The library refuses the pair of certificate and key.
    #[error(transparent)]
    Library(#[from] rustls::Error),
}

fn content(path: &Path, problem: &dyn fmt::Display) -> TlsError {
    TlsError::Content { path: path.display().to_string(), problem: problem.to_string() }
}

fn read(path: &Path) -> Result<(u32, Vec<u8>), TlsError> {
    let read = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode();
        let mut bytes = Vec::new();
        file.take(PEM_MAX_BYTES).read_to_end(&mut bytes)?;
        Ok((mode, bytes))
    };
    read().map_err(|source| TlsError::File { path: path.display().to_string(), source })
}

/// A chain, the server's or client's own certificate first.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (_, bytes) = read(path)?;
    let chain = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| content(path, &error))?;
    if chain.is_empty() { Err(content(path, &"holds no certificate")) } else { Ok(chain) }
}

/// The private key of that chain.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let (mode, bytes) = read(path)?;
    if mode & MODE_OTHERS != 0 {
        return Err(TlsError::Exposed(path.display().to_string()));
    }
    // The library's own text could quote the key; this one cannot.
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| content(path, &"holds no private key in PEM"))
}

/// The authorities of a bundle.
pub(super) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(path)?);
    if added == 0 { Err(content(path, &"holds no usable certificate authority")) } else { Ok(roots) }
}

/// Where distributions keep their bundle of public authorities.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The system's bundle of public authorities.
pub(super) fn system_bundle() -> Result<&'static Path, TlsError> {
    SYSTEM_BUNDLES
        .iter()
        .map(Path::new)
        .find(|path| fs::metadata(path).is_ok_and(|file| file.is_file()))
        .ok_or(TlsError::NoSystemBundle)
}

/// The one cryptographic library.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
