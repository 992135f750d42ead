//! Ed25519 keys of services and of the local operator issuer.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, EncodingKey};

/// The permissions of accounts that are neither the file's owner nor of its group.
const MODE_OTHERS: u32 = 0o007;

/// Why a key could not be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not an Ed25519 public key.
    #[error("is not a base64url Ed25519 public key of 32 bytes")]
    Public,
    /// The file does not hold an Ed25519 private key.
    #[error("{0} does not hold a base64 PKCS#8 Ed25519 private key; restore it, or remove it and make another")]
    Private(String),
    /// Other accounts of the machine could read the private key, or put theirs in its place.
    #[error("{0} is open to every account of this machine; it may have been copied: make another, or `chmod 600` it")]
    Exposed(String),
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

    /// Whether `signature` (base64url) is this key's over `message`.
    pub fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let decoded = (BASE64_URL_SAFE_NO_PAD.decode(&self.0), BASE64_URL_SAFE_NO_PAD.decode(signature));
        let (Ok(key), Ok(signature)) = decoded else { return false };
        UnparsedPublicKey::new(&ED25519, key).verify(message, &signature).is_ok()
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

    /// Reads the key a file holds. The group may read it (that is how a mounted secret is shared with a service's
    /// account), everybody may not.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let name = || path.display().to_string();
        let read = || {
            let mut file = File::open(path)?;
            let mode = file.metadata()?.permissions().mode();
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            Ok((mode, text))
        };
        let (mode, text) = read().map_err(|source| KeyError::File { path: name(), source })?;
        if mode & MODE_OTHERS != 0 {
            return Err(KeyError::Exposed(name()));
        }
        let der = BASE64_URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| KeyError::Private(name()))?;
        Self::from_pkcs8(&der).ok_or_else(|| KeyError::Private(name()))
    }

    /// Writes the key to a new file that only its owner can read. Fails when the file exists. The file appears whole
    /// or not at all: half a key would stop every later start, long after the disk that was full has space again.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        use secrecy::ExposeSecret as _;
        let beside = beside(path);
        let write = || {
            // What a start that was cut short left under the same number.
            match fs::remove_file(&beside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            file.write_all(BASE64_URL_SAFE_NO_PAD.encode(self.pkcs8.expose_secret()).as_bytes())?;
            file.sync_all()?;
            // Unlike a rename, a link never replaces a key that is there.
            fs::hard_link(&beside, path)?;
            fs::remove_file(&beside)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        write().map_err(|source| {
            // The error that stopped the writing is the one to tell.
            fs::remove_file(&beside).ok();
            KeyError::File { path: path.display().to_string(), source }
        })
    }

    /// The signature over `message`, base64url.
    pub fn sign(&self, message: &[u8]) -> Result<String, KeyError> {
        use secrecy::ExposeSecret as _;
        let pair = Ed25519KeyPair::from_pkcs8(self.pkcs8.expose_secret()).map_err(|_| KeyError::Generate)?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(pair.sign(message)))
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

/// Where a key is written before it appears under its name: a place of this writing alone, since several processes may start
/// at once and each would make it.
fn beside(path: &Path) -> PathBuf {
    static WRITINGS: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}-{}", std::process::id(), WRITINGS.fetch_add(1, Ordering::Relaxed)));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_appears_whole_under_its_name_and_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        // A start that was cut short (or a disk that was full) left this; it must not be in the way.
        let cut_short = beside(&path);
        fs::write(&cut_short, "half a k").unwrap();
        let key = ServiceKey::generate().unwrap();
        key.write(&path).unwrap();
        assert_eq!(ServiceKey::read(&path).unwrap().public(), key.public());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let other = ServiceKey::generate().unwrap().write(&path).unwrap_err();
        assert!(matches!(&other, KeyError::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists));
        assert_eq!(ServiceKey::read(&path).unwrap().public(), key.public());
        // It may be another start's that is writing, so it is let be; nothing else is left.
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        assert_eq!(left, [path, cut_short]);
    }

    #[test]
    fn a_signature_is_of_one_message_by_one_key() {
        let (key, other) = (ServiceKey::generate().unwrap(), ServiceKey::generate().unwrap());
        let signature = key.sign(b"what was so").unwrap();
        assert!(key.public().verifies(b"what was so", &signature));
        assert!(!key.public().verifies(b"what was not so", &signature));
        assert!(!other.public().verifies(b"what was so", &signature));
        assert!(!key.public().verifies(b"what was so", "!"));
    }

    #[test]
    fn a_key_that_cannot_be_written_leaves_nothing_under_its_name() {
        let folder = tempfile::tempdir().unwrap();
        // Stands for any failure on the way: nothing can be written below a file.
        fs::write(folder.path().join("file"), "").unwrap();
        let path = folder.path().join("file/a.key");
        assert!(ServiceKey::generate().unwrap().write(&path).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn a_key_open_to_everybody_is_refused_and_one_open_to_its_group_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        ServiceKey::generate().unwrap().write(&path).unwrap();
        for mode in [0o400, 0o600, 0o440, 0o660] {
            set_mode(&path, mode);
            assert!(ServiceKey::read(&path).is_ok(), "{mode:o}");
        }
        for mode in [0o644, 0o602, 0o666] {
            set_mode(&path, mode);
            let error = ServiceKey::read(&path).unwrap_err();
            assert!(matches!(error, KeyError::Exposed(_)), "{mode:o}: {error}");
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
    }
}
