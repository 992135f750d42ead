//! Bounds of DTOflow beyond `domain::limits`, each with its reason.

use domain::{ErrorCode, Refusal};

use crate::store::StoreError;

/// Payload bytes of one answer: fits a message between systems (64 MiB) with everything around them.
pub(crate) const READ_BYTES_MAX: usize = 48 * 1024 * 1024;
/// Inputs of one change: what a label is computed from, with room.
pub(crate) const INPUTS_MAX: usize = 16;
/// Entries of one page.
pub(crate) const PAGE_MAX: usize = 4_096;
/// Entries of one page when the caller does not say.
pub(crate) const PAGE_DEFAULT: usize = 1_000;
/// Entries of a page of a label's history: all that a label keeps.
pub(crate) const HISTORY_PAGE_MAX: usize = 200;
/// Entries of a page of a label's history when the caller does not say.
pub(crate) const HISTORY_PAGE_DEFAULT: usize = 50;
/// Parents of one look-up by alias.
pub(crate) const PARENTS_MAX: usize = 4_096;

/// The refusal of a read whose payloads do not fit one answer.
pub(crate) fn read_too_large() -> StoreError {
    let message = format!("their payloads together exceed {READ_BYTES_MAX} bytes; read fewer at once");
    Refusal::new(ErrorCode::PayloadTooLarge, message).at("keys").into()
}
