//! The chain of hashes.
//!
//! # Canonical encoding
//! The hash of an entry is SHA-256 over, one after the other: the text `reshelf-audit-1` and a zero byte; the 32 bytes of
//! the hash before it; its id and its time in milliseconds since 1970 UTC, 8 bytes each, most significant first; then, each
//! as its length in bytes (4 bytes, most significant first) and its UTF-8: service name, operator subject, tenant, action,
//! tracking id, reason, request digest, outcome, error code, detail. Absent texts have length 0. Before the first entry
//! the hash is SHA-256 of `reshelf-audit-genesis-1`.
//!
//! Entries from before the chain have no hash of their own: the *genesis* is the hash that their chain would have ended
//! with, taken once and kept.

use sha2::{Digest as _, Sha256};

use crate::model::AuditRow;

/// Domain of the hash.
const ENTRY: &[u8] = b"reshelf-audit-1\0";
/// What the hash before the first entry is of.
const GENESIS: &[u8] = b"reshelf-audit-genesis-1";

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChainHash([u8; 32]);

impl std::fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl ChainHash {
    /// The hash before the first entry.
    pub fn first() -> Self {
        Self(Sha256::digest(GENESIS).into())
    }

    /// From 64 lower-case hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(bytes.chunks_exact(2)) {
            let digit = |at: usize| match pair.get(at).copied()? {
                digit @ b'0'..=b'9' => Some(digit - b'0'),
                digit @ b'a'..=b'f' => Some(digit - b'a' + 10),
                _ => None,
            };
            *byte = digit(0)? * 16 + digit(1)?;
        }
        Some(Self(hash))
    }

    /// 64 lower-case hex digits.
    pub fn to_hex(self) -> String {
        domain::hex(self.0)
    }

    /// The hash of the entry that comes after this one.
    #[must_use]
    pub fn then(self, row: &AuditRow) -> Self {
        let mut sha = Sha256::new();
        sha.update(ENTRY);
        sha.update(self.0);
        sha.update(row.id.to_be_bytes());
        sha.update(row.at.as_ms().to_be_bytes());
        let texts = [
            row.service.as_str(),
            &row.operator_subject,
            row.tenant.as_ref().map_or("", domain::TenantId::as_str),
            &row.action,
            &row.tracking_id,
            &row.reason,
            &row.request_digest,
            row.outcome.as_str(),
            &row.error_code,
            &row.detail,
        ];
        for text in texts {
            // Every text of a row is bounded far below 4 GiB.
            sha.update(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
            sha.update(text);
        }
        Self(sha.finalize().into())
    }
}

/// The end of the chain: its last entry and that one's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// Id of the last entry; 0 while there is none.
    pub id: i64,
    /// Its hash.
    pub hash: ChainHash,
}

impl ChainHead {
    /// Of an empty log.
    pub fn empty() -> Self {
        Self { id: 0, hash: ChainHash::first() }
    }

    /// The rows as they come after this end: numbered on, each with its hash.
    pub(crate) fn seal(mut self, rows: &[AuditRow]) -> Vec<(AuditRow, ChainHash)> {
        rows.iter()
            .map(|row| {
                let row = AuditRow { id: self.id + 1, ..row.clone() };
                self = Self { id: row.id, hash: self.hash.then(&row) };
                (row, self.hash)
            })
            .collect()
    }
}

/// Where a chain begins: what its first entry follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The first entry of all, or the entries from before the chain, up to this one.
    Genesis(ChainHead),
    /// Entries that were deleted after their time, up to this one.
    Cut(ChainHead),
}
