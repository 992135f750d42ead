//! Where a statement's row belongs: which element of what was bound it answers.

pub(super) use crate::columns::{
    StoredRow, WalkedRow, aliases_from_json, aliases_to_json, broken, id, store, stored, type_of, walked,
};

/// The index of an element of an array, whose ordinality begins at 1.
pub(super) fn index(key: i64) -> usize {
    usize::try_from(key - 1).unwrap_or(usize::MAX)
}
