//! The lock file: one process per database.

use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use super::OpenError;

/// The exclusive lock on `{database}.lock`, held as long as this lives. The operating system gives it back when the
/// process dies, however it dies; the empty file stays.
#[derive(Debug)]
pub(super) struct LockFile {
    // Only held: closing the file gives the lock back.
    _file: File,
}

impl LockFile {
    /// Takes the lock of the database at `path` (resolved, so that two spellings are one database).
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        let name = name_for(path);
        let io = |cause| OpenError::Io { path: name.clone(), cause };
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&name).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(cause)) => Err(io(cause)),
        }
    }
}

/// Whether another process has the database at `path` (resolved) open. Makes no file, and holds the lock for the moment of
/// asking at most.
pub(super) fn is_held(path: &Path) -> bool {
    File::open(name_for(path)).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn name_for(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// `path` with its folder (and the file itself, where it exists) resolved.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, OpenError> {
    let io = |cause| OpenError::Io { path: path.to_owned(), cause };
    if path.exists() {
        return path.canonicalize().map_err(io);
    }
    let name = path.file_name().ok_or_else(|| io(std::io::Error::from(std::io::ErrorKind::InvalidInput)))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok(folder.canonicalize().map_err(io)?.join(name))
}
