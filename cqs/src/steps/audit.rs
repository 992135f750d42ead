//! The audit log is appended to and read.

use crate::{
    StoreError,
    model::AuditRow,
    store::FollowAsk,
    unit::{AuditFilter, Unit},
};

/// Appends rows.
pub(crate) async fn append_audit<U: Unit>(unit: &mut U, rows: &[AuditRow]) -> Result<(), StoreError> {
    unit.audit_append(rows).await
}

/// A part of the log, newest first.
pub(crate) async fn audit<U: Unit>(unit: &mut U, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
    unit.audit_page(filter).await
}

/// What a reader has not seen yet, oldest first, once it is written down how far it has come. A reader that is new
/// begins at the end.
pub(crate) async fn follow<U: Unit>(unit: &mut U, ask: &FollowAsk) -> Result<Vec<AuditRow>, StoreError> {
    let known = unit.reader_find(&ask.reader).await?;
    let from = match known {
        None => unit.audit_last().await?,
        Some(position) => position.max(ask.done),
    };
    if known != Some(from) {
        unit.reader_put(&ask.reader, from).await?;
    }
    unit.audit_after(from, ask.limit).await
}
