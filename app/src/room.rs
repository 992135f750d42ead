//! Whether the disk of a database has room: by its free space, and by making a file of that size there, which a quota
//! refuses where the disk as a whole is not full.
//!
//! Invariants
//! - Nothing stays: the file loses its name before it gets its size.
//! - A look costs no more than one such file a second, however often it is asked for.

use std::{
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long an answer serves: a flood of looks at `/readyz` does not become one of files.
const FRESH: Duration = Duration::from_secs(1);

/// Looks at the disk of one file.
pub(crate) struct Room {
    /// The file that must be able to grow.
    path: PathBuf,
    bytes: u64,
    last: Mutex<Option<(Instant, bool)>>,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Room {
    /// Looks for `bytes` of room beside `path`.
    pub(crate) fn beside(path: &Path, bytes: u64) -> Self {
        Self { path: path.to_path_buf(), bytes, last: Mutex::default() }
    }

    /// Whether it is there. A disk that cannot be looked at has none.
    pub(crate) fn is_there(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, there)) = *last
            && at.elapsed() < FRESH
        {
            return there;
        }
        let there = self.look().unwrap_or_else(|error| {
            tracing::warn!(%error, path = %self.path.display(), "the disk of the database has no room");
            false
        });
        *last = Some((Instant::now(), there));
        there
    }

    fn look(&self) -> io::Result<bool> {
        if fs4::available_space(&self.path)? < self.bytes {
            return Ok(false);
        }
        let probe = self.path.with_extension("room");
        let file = File::create(&probe)?;
        fs::remove_file(&probe)?;
        match fs4::fs_std::FileExt::allocate(&file, self.bytes) {
            Ok(()) => Ok(true),
            // Not every file system can promise room; there the free space has to do.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(true),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const MIB: u64 = 1024 * 1024;
    /// Says that the test runs under a bound of the operating system, and where.
    const BOUNDED: &str = "RESHELF_TEST_ROOM";

    #[test]
    fn free_space_is_room_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reshelf.db");
        fs::write(&file, "x").unwrap();
        assert!(Room::beside(&file, MIB).is_there());
        assert!(!Room::beside(&file, u64::MAX).is_there());
        assert!(!Room::beside(&folder.path().join("absent/reshelf.db"), 1).is_there());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// A bound on the size of files stands in for a quota: both refuse a file that the disk would hold. It holds for a
    /// whole process, so the test runs itself again in one.
    #[test]
    fn a_disk_with_a_quota_has_the_quotas_room() {
        if let Some(file) = std::env::var_os(BOUNDED) {
            let file = PathBuf::from(file);
            assert!(Room::beside(&file, MIB / 2).is_there());
            assert!(!Room::beside(&file, 16 * MIB).is_there());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reshelf.db");
        fs::write(&file, "x").unwrap();
        assert!(Room::beside(&file, 16 * MIB).is_there(), "the disk itself has room");
        let name = concat!(module_path!(), "::a_disk_with_a_quota_has_the_quotas_room");
        let name = name.split_once("::").unwrap().1;
        // Blocks of 1,024 bytes; the signal that ends a process at the bound is ignored.
        let again = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" --exact --nocapture \"$1\"";
        let ran = Command::new("bash")
            .args(["-c", again])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(BOUNDED, &file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
}
