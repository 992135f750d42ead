//! The audit log.

use super::MemoryUnit;
use crate::{
    StoreError,
    model::AuditRow,
    unit::{Audit, AuditFilter},
};

impl Audit for MemoryUnit {
    async fn audit_append(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        for row in rows {
            let id = i64::try_from(self.work.audit.len()).unwrap_or(i64::MAX) + 1;
            self.work.audit.push(AuditRow { id, ..row.clone() });
        }
        Ok(())
    }

    async fn audit_page(&mut self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let wanted = |row: &&AuditRow| {
            row.id < filter.before
                && row.tenant.as_ref().is_some_and(|tenant| filter.tenants.contains(tenant))
                && filter.tracking_id.as_ref().is_none_or(|id| id.as_str() == row.tracking_id)
        };
        Ok(self.work.audit.iter().rev().filter(wanted).take(filter.limit).cloned().collect())
    }
}
