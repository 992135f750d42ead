//! What lies where in a data directory. The directory is its owner's alone (0700), keys and tokens 0600.
//!
//! ```text
//! reshelf.db               records, queues, ledger, audit
//! keys/<service>.key       one private key per service
//! keys/operator-issuer.key signs operator tokens
//! keys/audit.key           signs checkpoints of the audit log
//! audit/checkpoints.jsonl  these checkpoints, unless they are told to lie elsewhere
//! registry.toml            what each service may do; written anew at every start
//! operator.token           a token for the printed commands; written anew at every start
//! platform.addr            where a running `dev` answers gRPC
//! gateway.addr             where a running `dev` answers REST
//! labels/                  the pictures that the folder driver wrote
//! ```

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use daemon::identity::{KeyError, PublicKey, Registry, ServiceKey};
use domain::ServiceName;

/// The services that take part in one process or in a platform of several.
pub const SERVICES: &[ServiceName] = ServiceName::ALL;

/// What to do where there is no data directory.
const MAKE_ONE: &str = "name one with --data-dir, or make one with `reshelf dev`";

/// Name of the data directory of a `dev` that is told no other.
pub const USUAL: &str = ".reshelf";
/// Name of the file in it that holds an operator token.
pub const OPERATOR_TOKEN: &str = "operator.token";
/// Name of the file in it that says where a running `dev` answers REST.
pub const GATEWAY_ADDRESS: &str = "gateway.addr";

/// Bytes of a mebibyte.
pub(crate) const MIB: u64 = 1024 * 1024;

/// A data directory.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// Creates the directory where there is none, and makes its path absolute.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).with_context(|| format!("cannot create the data directory {name}"))?;
        let dir = Self::absolute(path)?;
        builder.create(dir.keys()).with_context(|| format!("cannot create {}", dir.keys().display()))?;
        Ok(dir)
    }

    /// A data directory that was made before.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let dir = Self::absolute(path)?;
        anyhow::ensure!(dir.keys().is_dir(), "{} is no data directory; {MAKE_ONE}", path.display());
        Ok(dir)
    }

    fn absolute(path: &Path) -> anyhow::Result<Self> {
        let absolute = path.canonicalize().with_context(|| format!("no {}; {MAKE_ONE}", path.display()))?;
        Ok(Self(absolute))
    }

    /// Refuses when the disk has less room than `bytes`.
    pub fn require_space(&self, bytes: u64) -> anyhow::Result<()> {
        let free = fs4::available_space(&self.0).with_context(|| format!("{}", self.0.display()))?;
        anyhow::ensure!(
            free >= bytes,
            "the disk of {} is full: {} MiB are free, {} MiB are needed; free some space and start again",
            self.0.display(),
            free / MIB,
            bytes / MIB
        );
        Ok(())
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.0.join("reshelf.db")
    }

    /// The directory of the private keys.
    pub fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    /// The service registry.
    pub fn registry(&self) -> PathBuf {
        self.0.join("registry.toml")
    }

    /// The operator token of the printed commands.
    pub fn operator_token(&self) -> PathBuf {
        self.0.join(OPERATOR_TOKEN)
    }

    /// Where a running `dev` writes its gRPC address.
    pub fn platform_address(&self) -> PathBuf {
        self.0.join("platform.addr")
    }

    /// Where a running `dev` writes its REST address.
    pub fn gateway_address(&self) -> PathBuf {
        self.0.join(GATEWAY_ADDRESS)
    }

    /// Log files, one a day.
    pub fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// Where the folder driver writes pictures.
    pub fn labels(&self) -> PathBuf {
        self.0.join("labels")
    }

    /// The key of a service; made when it has none yet.
    pub fn service_key(&self, service: ServiceName) -> Result<ServiceKey, KeyError> {
        read_or_generate(&self.keys().join(format!("{service}.key")))
    }

    /// The key that signs operator tokens; made when there is none yet.
    pub fn operator_issuer(&self) -> Result<ServiceKey, KeyError> {
        read_or_generate(&self.keys().join("operator-issuer.key"))
    }

    /// The key that signs checkpoints of the audit log; made when there is none yet.
    pub fn audit_key(&self) -> Result<ServiceKey, KeyError> {
        read_or_generate(&self.keys().join("audit.key"))
    }

    /// The public half of that key; none is made.
    pub fn audit_public_key(&self) -> Result<PublicKey, KeyError> {
        Ok(ServiceKey::read(&self.keys().join("audit.key"))?.public().clone())
    }

    /// Checkpoints of the audit log.
    pub fn audit_checkpoints(&self) -> PathBuf {
        self.0.join("audit/checkpoints.jsonl")
    }

    /// Writes the registry in which every service has its standard grants with its key of this directory.
    pub fn write_registry(&self) -> anyhow::Result<Registry> {
        let keys: Vec<(ServiceName, PublicKey)> = SERVICES
            .iter()
            .map(|service| Ok((*service, self.service_key(*service)?.public().clone())))
            .collect::<Result<_, KeyError>>()?;
        let document = Registry::standard_document(&keys)?;
        write_private(&self.registry(), &document)?;
        Ok(Registry::parse(&document)?)
    }
}

/// The key of that file; made when there is none. Of several processes that start at once one makes it and all have it.
pub(crate) fn read_or_generate(path: &Path) -> Result<ServiceKey, KeyError> {
    match ServiceKey::read(path) {
        Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let key = ServiceKey::generate()?;
            match key.write(path) {
                Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                    ServiceKey::read(path)
                }
                written => written.map(|()| key),
            }
        }
        other => other,
    }
}

/// Replaces a file that only its owner can read, in one step: nobody ever reads half of it.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let write = || {
        // A left-over of a start that was cut short may have other permissions.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn of_many_starts_at_once_one_makes_the_key_and_all_have_it() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("audit.key");
        let start = || {
            let path = path.clone();
            std::thread::spawn(move || read_or_generate(&path))
        };
        let starts: Vec<_> = (0..16).map(|_| start()).collect();
        let keys: Vec<ServiceKey> = starts.into_iter().map(|start| start.join().unwrap().unwrap()).collect();
        assert!(keys.iter().all(|key| key.public() == keys[0].public()));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn secrets_are_their_owners_alone_and_survive_a_second_start() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("nested/data");
        let dir = DataDir::create(&path).unwrap();
        assert_eq!((mode(dir.path()), mode(&dir.keys())), (0o700, 0o700));
        let registry = dir.write_registry().unwrap();
        for service in SERVICES {
            assert_eq!(mode(&dir.keys().join(format!("{service}.key"))), 0o600);
            assert!(registry.grants(*service).is_some());
        }
        assert!(DataDir::open(parent.path()).is_err(), "a directory without keys is none of ours");
        let key = dir.operator_issuer().unwrap();
        let again = DataDir::create(&path).unwrap();
        assert_eq!(again.operator_issuer().unwrap().public(), key.public());
        // A directory of a version that knew fewer services gets their keys at its next start.
        fs::remove_file(dir.keys().join("studio-renderer.key")).unwrap();
        assert!(again.write_registry().unwrap().grants(ServiceName::StudioRenderer).is_some());
        assert!(dir.keys().join("studio-renderer.key").exists());
        write_private(&dir.operator_token(), "one").unwrap();
        write_private(&dir.operator_token(), "two").unwrap();
        assert_eq!(fs::read_to_string(dir.operator_token()).unwrap(), "two");
        assert_eq!(mode(&dir.operator_token()), 0o600);
    }
}
