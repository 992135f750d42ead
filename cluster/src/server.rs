//! One server: made, started, stopped, restarted.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::watch::{self, Users};

/// Where Debian puts the programs of a major version.
const DEBIAN_PROGRAMS: &str = "/usr/lib/postgresql";
/// In memory, where it exists: tests sync as the product does, and nothing of theirs has to survive the machine.
const MEMORY: &str = "/dev/shm";
/// Whom the server runs as when the tests run as root, which `initdb` refuses.
const UNPRIVILEGED: &str = "postgres";
/// Settings of every server. Several test processes have pools of their own; the log is bounded because it lies in memory.
const SETTINGS: &str = "
listen_addresses = ''
max_connections = 300
shared_buffers = 128MB
wal_level = minimal
max_wal_senders = 0
max_wal_size = 512MB
log_min_messages = fatal
";

/// A server of one's own, for tests that restart or kill it. Ends when dropped, or with its process.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) place: Place,
    // In this order: the lock is given back before the folder goes, so that the watcher does not look for it.
    _users: Users,
    _folder: TempDir,
}

impl Cluster {
    /// Makes and starts a server.
    ///
    /// # Errors
    /// Without PostgreSQL's programs, or where they fail.
    pub fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("reshelf-pg-").tempdir_in(memory())?;
        let place = Place::make(folder.path())?;
        let users = Users::join(folder.path())?;
        place.start()?;
        watch::stop_when_unused(&place)?;
        Ok(Self { place, _users: users, _folder: folder })
    }

    /// Makes an empty database; its URL.
    pub fn database(&self, name: &str) -> io::Result<String> {
        self.place.create(name)?;
        Ok(self.place.url(name))
    }

    /// Ends the server as a power cut would: no checkpoint, no goodbye. What was acknowledged is in its log.
    pub fn stop_immediately(&self) -> io::Result<()> {
        self.place.control(&["stop", "-m", "immediate"])
    }

    /// Starts it again; it recovers from its log first.
    pub fn start_again(&self) -> io::Result<()> {
        self.place.start()
    }

    /// The socket of the server, for a proxy between it and the product.
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // At the end of a test there is nobody to tell.
        let _ = self.stop_immediately();
    }
}

/// The folder of a server and whom it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    programs: PathBuf,
    /// The user to become, when the tests are root.
    user: Option<&'static str>,
}

impl Place {
    /// The server in `folder`, made or not.
    pub(crate) fn at(folder: &Path) -> io::Result<Self> {
        let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        Ok(Self { folder: folder.to_owned(), programs: programs()?, user: root.then_some(UNPRIVILEGED) })
    }

    /// Makes a server's files in `folder`.
    pub(crate) fn make(folder: &Path) -> io::Result<Self> {
        let place = Self::at(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        if let Some(user) = place.user {
            checked(Command::new("chown").arg(user).arg(folder))?;
        }
        let data = place.data();
        checked(
            place
                .as_user(&place.programs.join("initdb"))
                .args(["--no-sync", "--no-instructions", "--auth=trust", "--username=postgres", "--encoding=UTF8"])
                // The collation that makes most mistakes visible that is there on every machine.
                .args(["--locale=C.UTF-8", "-D"])
                .arg(&data),
        )?;
        let settings = format!("{SETTINGS}unix_socket_directories = '{}'\n", folder.display());
        let file = folder.join("postgresql.conf");
        fs::write(&file, settings)?;
        checked(place.as_user(Path::new("cp")).arg(&file).arg(data.join("postgresql.conf")))?;
        Ok(place)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts the server and waits until it answers.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.control(&["start", "-w", "-t", "60", "-l", "/dev/null"])
    }

    /// `pg_ctl` with these arguments.
    pub(crate) fn control(&self, arguments: &[&str]) -> io::Result<()> {
        checked(self.as_user(&self.programs.join("pg_ctl")).args(arguments).arg("-s").arg("-D").arg(self.data()))
    }

    /// The command of `sh` that ends the server and takes its folder away.
    pub(crate) fn farewell(&self) -> String {
        let become_user = self.user.map_or_else(String::new, |user| format!("runuser -u {user} -- "));
        let (programs, folder) = (self.programs.display(), self.folder.display());
        format!("{become_user}{programs}/pg_ctl stop -m immediate -s -D {folder}/data; rm -rf {folder}")
    }

    pub(crate) fn create(&self, database: &str) -> io::Result<()> {
        self.psql("postgres", &format!("CREATE DATABASE {database}"))
    }

    pub(crate) fn copy(&self, from: &str, to: &str) -> io::Result<()> {
        self.psql("postgres", &format!("CREATE DATABASE {to} TEMPLATE {from}"))
    }

    pub(crate) fn forget(&self, database: &str) -> io::Result<()> {
        self.psql("postgres", &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"))
    }

    fn psql(&self, database: &str, statement: &str) -> io::Result<()> {
        checked(
            Command::new(self.programs.join("psql"))
                .args(["-X", "-q", "-U", "postgres", "-d", database, "-c", statement, "-h"])
                .arg(&self.folder),
        )
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.folder.display())
    }

    fn as_user(&self, program: &Path) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        // Root's folder may not be entered by the user.
        command.current_dir("/");
        command
    }
}

/// The folder of Debian's newest programs, or whatever the path has.
fn programs() -> io::Result<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN_PROGRAMS)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .filter(|(_, programs)| programs.join("initdb").is_file())
        .collect();
    versions.sort();
    let of_path = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).find(|folder| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file())
    });
    versions.pop().map(|(_, programs)| programs).or(of_path).ok_or_else(|| {
        io::Error::other("PostgreSQL's server programs are missing: install Debian's package `postgresql`")
    })
}

/// Where servers lie.
pub(crate) fn memory() -> PathBuf {
    let memory = Path::new(MEMORY);
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn checked(command: &mut Command) -> io::Result<()> {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output()?;
    if status.success() {
        return Ok(());
    }
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Err(io::Error::other(format!("{command:?} ended with {status}: {said}")))
}
