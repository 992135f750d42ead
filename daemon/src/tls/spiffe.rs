//! SPIFFE ids: what a client certificate says about a service.

use std::{fmt, str::FromStr};

use tokio_rustls::rustls::pki_types::CertificateDer;

/// Longest id, in bytes (the standard's own bound).
const ID_MAX_BYTES: usize = 2_048;

/// `spiffe://{trust domain}/{path}`, in its one canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpiffeId(Box<str>);

/// Why a text or certificate gives no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpiffeError {
    /// Not of the canonical form.
    #[error(
        "must be spiffe://trust-domain/path: lower-case trust domain, path of letters, digits, '.', '-', '_', no empty, '.' or '..' segment"
    )]
    Form,
    /// The certificate does not have exactly one URI name.
    #[error("the certificate must have exactly one URI name")]
    Names,
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Certificate,
}

impl FromStr for SpiffeId {
    type Err = SpiffeError;

    fn from_str(text: &str) -> Result<Self, SpiffeError> {
        let rest = text.strip_prefix("spiffe://").filter(|_| text.len() <= ID_MAX_BYTES).ok_or(SpiffeError::Form)?;
        let (domain, path) = rest.split_once('/').ok_or(SpiffeError::Form)?;
        let in_domain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
        let in_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let segment =
            |segment: &str| !segment.is_empty() && segment != "." && segment != ".." && segment.chars().all(in_path);
        if domain.is_empty() || domain.len() > 255 || !domain.chars().all(in_domain) || !path.split('/').all(segment) {
            return Err(SpiffeError::Form);
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SpiffeId {
    /// The id of a certificate whose chain was verified: its only URI name. Common names and DNS names are no identity.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, SpiffeError> {
        let parsed = webpki::EndEntityCert::try_from(certificate).map_err(|_| SpiffeError::Certificate)?;
        let mut names = parsed.valid_uri_names();
        match (names.next(), names.next()) {
            (Some(name), None) => name.parse(),
            _ => Err(SpiffeError::Names),
        }
    }
}
