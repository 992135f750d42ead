//! Checks the log against its chain, and the chain against its checkpoints.

use super::{
    chain::{Anchor, ChainHash, ChainHead},
    checkpoint::{Checkpoint, Kind},
};
use crate::{CqsStore, StoreError, model::SealedRow};

/// Entries read at once.
const PAGE: usize = 1_000;

/// What was found wrong first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An entry is not what was written, or not where it was written.
    #[error("entry {id} is not what was written there: it, or the order of entries, was changed")]
    Entry {
        /// Its id.
        id: i64,
    },
    /// Entries are missing.
    #[error("entry {id} is missing")]
    Missing {
        /// The first of them.
        id: i64,
    },
    /// An entry that the chain does not have stands among older ones.
    #[error("entry {id} is none of the chain")]
    Foreign {
        /// Its id.
        id: i64,
    },
    /// The chain is another one than the one that was signed.
    #[error("entry {id} has another hash than its signed checkpoint: the log was written anew")]
    Checkpoint {
        /// The entry.
        id: i64,
    },
    /// The log begins later than a signed cut allows.
    #[error("the log begins after entry {id}, and no signed cut allows that")]
    Cut {
        /// The last entry before it begins.
        id: i64,
    },
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Entries looked at.
    pub entries: u64,
    /// The last entry and its hash.
    pub head: ChainHead,
    /// Entry up to which signed checkpoints hold; later ones could be taken off the end unnoticed.
    pub sealed_to: i64,
    /// What is wrong first; none: nothing is.
    pub broken: Option<Broken>,
}

/// Reads the whole log and checks it against `checkpoints`, as [`super::checkpoint::read`] gave them.
pub async fn verify(store: &dyn CqsStore, checkpoints: &[Checkpoint]) -> Result<Verified, StoreError> {
    let anchor = store.audit_anchor().await?;
    let mut walk = Walk::new(anchor, checkpoints);
    let mut after = 0;
    while walk.broken.is_none() {
        let page = store.audit_walk(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.row.id;
        for sealed in &page {
            walk.step(sealed);
        }
    }
    Ok(walk.end())
}

struct Walk<'a> {
    checkpoints: &'a [Checkpoint],
    /// Entry and hash of each, by entry.
    signed: Vec<(i64, ChainHash)>,
    /// The entries up to here have no hash of their own.
    genesis: ChainHead,
    head: ChainHead,
    entries: u64,
    broken: Option<Broken>,
}

impl<'a> Walk<'a> {
    fn new(anchors: Vec<Anchor>, checkpoints: &'a [Checkpoint]) -> Self {
        let mut genesis = ChainHead::empty();
        let mut cut = None;
        for anchor in anchors {
            match anchor {
                Anchor::Genesis(head) => genesis = head,
                Anchor::Cut(head) => cut = Some(head),
            }
        }
        let mut signed: Vec<(i64, ChainHash)> = checkpoints.iter().map(|line| (line.head.id, line.head.hash)).collect();
        signed.sort_by_key(|(id, _)| *id);
        let mut walk = Self { checkpoints, signed, genesis, head: ChainHead::empty(), entries: 0, broken: None };
        if let Some(cut) = cut {
            if !checkpoints.iter().any(|line| line.kind == Kind::Cut && line.head == cut) {
                walk.break_at(Broken::Cut { id: cut.id });
            }
            walk.head = cut;
        }
        // The genesis is not only the database's word, once it was signed.
        let signed = checkpoints.iter().find(|line| line.kind == Kind::Genesis);
        if let Some(line) = signed.filter(|line| line.head != genesis) {
            walk.break_at(Broken::Checkpoint { id: line.head.id });
        }
        walk
    }

    fn break_at(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
    }

    fn step(&mut self, sealed: &SealedRow) {
        let id = sealed.row.id;
        if id <= self.head.id {
            // Left by a deletion that a crash cut short: a signed cut stands for it already.
            return;
        }
        if self.broken.is_some() {
            return;
        }
        let hash = self.head.hash.then(&sealed.row);
        if id <= self.genesis.id {
            // Ids from before the chain may have gaps; the genesis holds what is there together.
            if !sealed.hash.is_empty() {
                self.break_at(Broken::Foreign { id });
            }
            self.advance(id, hash);
            return;
        }
        self.close_genesis();
        if id != self.head.id + 1 {
            self.break_at(Broken::Missing { id: self.head.id + 1 });
        } else if sealed.hash.is_empty() {
            self.break_at(Broken::Foreign { id });
        } else if ChainHash::from_hex(&sealed.hash) != Some(self.head.hash.then(&sealed.row)) {
            self.break_at(Broken::Entry { id });
        }
        let hash = self.head.hash.then(&sealed.row);
        self.advance(id, hash);
    }

    /// Entries from before the chain must end in the genesis.
    fn close_genesis(&mut self) {
        if self.head.id <= self.genesis.id && self.genesis.id > 0 && self.head != self.genesis {
            self.break_at(Broken::Entry { id: self.genesis.id });
            self.head = self.genesis;
        }
    }

    fn advance(&mut self, id: i64, hash: ChainHash) {
        if self.broken.is_some() {
            return;
        }
        self.head = ChainHead { id, hash };
        self.entries += 1;
        if id > self.genesis.id {
            let from = self.signed.partition_point(|(signed, _)| *signed < id);
            let mut here = self.signed.iter().skip(from).take_while(|(signed, _)| *signed == id);
            if here.any(|(_, signed)| *signed != hash) {
                self.break_at(Broken::Checkpoint { id });
            }
        }
    }

    fn end(mut self) -> Verified {
        if self.broken.is_none() {
            self.close_genesis();
        }
        let sealed_to = self.checkpoints.iter().map(|line| line.head.id).max().unwrap_or_default();
        if sealed_to > self.head.id {
            let id = self.head.id + 1;
            self.break_at(Broken::Missing { id });
        }
        Verified { entries: self.entries, head: self.head, sealed_to, broken: self.broken }
    }
}
