//! Ed25519 keys of services and of the local operator issuer.

use std::{fmt, fs, io, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, str::FromStr};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, EncodingKey};

/// Why a key could not be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not an Ed25519 public key.
    #[error("is not a base64url Ed25519 public key of 32 bytes")]
    Public,
    /// The file does not hold an Ed25519 private key.
    #[error("{0} does not hold a base64 PKCS#8 Ed25519 private key")]
    Private(String),
    /// The cryptographic library failed to make a key.
    #[error("the system gave no key")]
    Generate,
    /// The file could not be read or written.
    #[error("key file {path}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The public half of a key, as it stands in the registry (base64url of 32 bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(String);

impl PublicKey {
    /// The key as base64url text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as `jsonwebtoken` verifies with it.
    pub fn decoding(&self) -> Result<DecodingKey, KeyError> {
        DecodingKey::from_ed_components(&self.0).map_err(|_| KeyError::Public)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        match BASE64_URL_SAFE_NO_PAD.decode(text) {
            Ok(bytes) if bytes.len() == 32 => Ok(Self(text.to_owned())),
            _ => Err(KeyError::Public),
        }
    }
}

/// A private key. Its `Debug` shows nothing.
#[derive(Clone)]
pub struct ServiceKey {
    encoding: EncodingKey,
    pkcs8: secrecy::SecretSlice<u8>,
    public: PublicKey,
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceKey({})", self.public.as_str())
    }
}

impl ServiceKey {
    /// A fresh key.
    pub fn generate() -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| KeyError::Generate)?;
        let der = pair.to_pkcs8v1().map_err(|_| KeyError::Generate)?;
        Self::from_pkcs8(der.as_ref()).ok_or(KeyError::Generate)
    }

    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8(der).ok()?;
        Some(Self {
            encoding: EncodingKey::from_ed_der(der),
            pkcs8: der.to_vec().into(),
            public: PublicKey(BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref())),
        })
    }

    /// Reads the key a file holds.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| KeyError::File { path: name(), source })?;
        let der = BASE64_URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| KeyError::Private(name()))?;
        Self::from_pkcs8(&der).ok_or_else(|| KeyError::Private(name()))
    }

    /// Writes the key to a new file that only its owner can read. Fails when the file exists.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        use secrecy::ExposeSecret as _;
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(BASE64_URL_SAFE_NO_PAD.encode(self.pkcs8.expose_secret()).as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| KeyError::File { path: path.display().to_string(), source })
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The key as `jsonwebtoken` signs with it.
    pub fn encoding(&self) -> &EncodingKey {
        &self.encoding
    }
}
