//! The audit log is appended to and read.

use crate::{
    StoreError,
    model::AuditRow,
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
