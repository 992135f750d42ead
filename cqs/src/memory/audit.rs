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

    async fn audit_after(&mut self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        Ok(self.work.audit.iter().filter(|row| row.id > after).take(limit).cloned().collect())
    }

    async fn audit_last(&mut self) -> Result<i64, StoreError> {
        Ok(self.work.audit.last().map_or(0, |row| row.id))
    }

    async fn reader_find(&mut self, reader: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.work.readers.get(reader).copied())
    }

    async fn reader_put(&mut self, reader: &str, position: i64) -> Result<(), StoreError> {
        self.work.readers.insert(reader.to_owned(), position);
        Ok(())
    }
}
