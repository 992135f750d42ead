//! What makes the audit log provable: a hash chain in the database, signed checkpoints of it beside the database, and the
//! check of one against the other.
//!
//! Reading order: [`chain`] (what a hash covers, pure), [`checkpoint`] (the file of signed checkpoints), [`verify`].
//!
//! Invariants
//! - An entry's hash covers the entry and the hash before it; ids have no gaps. So nothing before the last entry can be
//!   changed, taken out, put in or moved without another hash there.
//! - A checkpoint names an entry and its hash, is signed, and lies where the database's role cannot write. So nobody with
//!   the database alone can take entries off the end, or make all hashes anew, beyond the last checkpoint.
//! - Entries are deleted only up to a signed cut; the chain goes on from there.
//!
//! Deliberately not here: the key itself and where it lies (`app`), the statements (the twins).

pub mod chain;
pub mod checkpoint;
mod sealer;
pub mod verify;

pub use sealer::AuditSealer;
