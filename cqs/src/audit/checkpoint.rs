//! The file of signed checkpoints: one JSON object a line, appended and synced, never changed.
//!
//! A line has a number from 1, what it says (`checkpoint`, `genesis` or `cut`), an entry's id and hash, a time, the SHA-256
//! of the line before it (64 zeros for the first), and the Ed25519 signature (base64url) over these six joined by line
//! breaks after `reshelf-audit-checkpoint-1`. So lines can be neither changed nor taken out of the midst.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use daemon::identity::{PublicKey, ServiceKey};
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::chain::{ChainHash, ChainHead};

/// Domain of the signature.
const DOMAIN: &str = "reshelf-audit-checkpoint-1";
/// The digest before the first line.
const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What a line says of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The chain reached it.
    Checkpoint,
    /// Entries up to it are from before the chain, and this is the hash that holds them together.
    Genesis,
    /// Entries up to it may be deleted: their time is over.
    Cut,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Genesis => "genesis",
            Self::Cut => "cut",
        }
    }
}

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    number: u64,
    kind: Kind,
    id: i64,
    hash: String,
    at_ms: i64,
    before: String,
    signature: String,
}

/// A checkpoint whose signature and place are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// What it says.
    pub kind: Kind,
    /// The entry and the hash of the chain there.
    pub head: ChainHead,
    /// When it was signed.
    pub at: Timestamp,
}

/// Why the file is not to be trusted or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("{path}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process appends to the file.
    #[error("{path} is in use by another process")]
    InUse {
        /// Which.
        path: String,
    },
    /// A line is not what was written.
    #[error("{path}, line {line}: {what}")]
    Broken {
        /// Which file.
        path: String,
        /// Which line, from 1.
        line: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// The file, open for appending.
#[derive(Debug)]
pub struct Checkpoints {
    path: PathBuf,
    key: ServiceKey,
    file: File,
    lines: u64,
    last: String,
}

fn signed(line: &Line) -> String {
    let Line { number, id, hash, at_ms, before, .. } = line;
    format!("{DOMAIN}\n{number}\n{}\n{id}\n{hash}\n{at_ms}\n{before}", line.kind.as_str())
}

impl Checkpoints {
    /// Opens the file of that path, made with its folder when absent, checks every line, and gives them.
    ///
    /// A last line that was cut short by a crash was never told to anybody and is taken off. The file is this one's alone
    /// until it is dropped.
    pub fn open(path: &Path, key: ServiceKey) -> Result<(Self, Vec<Checkpoint>), CheckpointError> {
        let failed = |source| CheckpointError::File { path: path.display().to_string(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let file = OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(CheckpointError::InUse { path: path.display().to_string() }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Ok(()) => {}
        }
        let text = fs::read(path).map_err(failed)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        let (found, last) = read(path, key.public())?;
        let lines = found.len() as u64;
        Ok((Self { path: path.to_owned(), key, file, lines, last }, found))
    }

    /// Appends a line and syncs it.
    pub fn append(&mut self, kind: Kind, head: ChainHead, at: Timestamp) -> Result<(), CheckpointError> {
        let failed = |source| CheckpointError::File { path: self.path.display().to_string(), source };
        let mut line = Line {
            number: self.lines + 1,
            kind,
            id: head.id,
            hash: head.hash.to_hex(),
            at_ms: at.as_ms(),
            before: self.last.clone(),
            signature: String::new(),
        };
        line.signature = self.key.sign(signed(&line).as_bytes()).map_err(|error| failed(io::Error::other(error)))?;
        let mut text = serde_json::to_string(&line).map_err(|error| failed(io::Error::other(error)))?;
        let digest = domain::hex(Sha256::digest(&text));
        text.push('\n');
        self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.lines = line.number;
        self.last = digest;
        Ok(())
    }
}

/// Every line of the file, each checked, with the digest of the last.
pub fn read(path: &Path, key: &PublicKey) -> Result<(Vec<Checkpoint>, String), CheckpointError> {
    let name = || path.display().to_string();
    let failed = |source| CheckpointError::File { path: name(), source };
    let mut found = Vec::new();
    let mut before = NOTHING.to_owned();
    for (number, text) in (1_u64..).zip(BufReader::new(File::open(path).map_err(failed)?).lines()) {
        let text = text.map_err(failed)?;
        let broken = |what| CheckpointError::Broken { path: name(), line: number, what };
        let line: Line = serde_json::from_str(&text).map_err(|_| broken("is no checkpoint"))?;
        if line.number != number {
            return Err(broken("has another number: a line is missing or was moved"));
        }
        if line.before != before {
            return Err(broken("does not follow the line before it"));
        }
        if !key.verifies(signed(&line).as_bytes(), &line.signature) {
            return Err(broken("is not signed by the platform's key"));
        }
        let hash = ChainHash::from_hex(&line.hash).ok_or_else(|| broken("has no hash"))?;
        let head = ChainHead { id: line.id, hash };
        found.push(Checkpoint { kind: line.kind, head, at: Timestamp::from_ms(line.at_ms) });
        before = domain::hex(Sha256::digest(&text));
    }
    Ok((found, before))
}
