//! Where a statement's row belongs: which element of what was bound it answers.

pub(super) use crate::columns::{
    StoredRow, WalkedRow, aliases_from_json, aliases_to_json, broken, id, store, stored, type_of, walked,
};

/// The index that `jsonb_each` gave an element, which came from a slice.
pub(super) fn index(key: i64) -> usize {
    usize::try_from(key).unwrap_or(usize::MAX)
}
