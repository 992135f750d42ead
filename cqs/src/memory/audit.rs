//! The audit log.

use domain::TenantId;

use super::MemoryUnit;
use crate::{
    StoreError,
    audit::chain::{Anchor, ChainHash},
    model::{AuditOutcome, AuditRow, SealedRow},
    unit::{Audit, AuditFilter},
};

impl Audit for MemoryUnit {
    async fn audit_tail(&mut self) -> Result<Option<(i64, String)>, StoreError> {
        Ok(self.work.audit.last().map(|sealed| (sealed.row.id, sealed.hash.clone())))
    }

    async fn audit_anchors(&mut self) -> Result<Vec<Anchor>, StoreError> {
        Ok(self.work.anchors.clone())
    }

    async fn audit_anchor_put(&mut self, anchor: Anchor) -> Result<(), StoreError> {
        let kind = std::mem::discriminant(&anchor);
        self.work.anchors.retain(|known| std::mem::discriminant(known) != kind);
        self.work.anchors.push(anchor);
        Ok(())
    }

    async fn audit_put(&mut self, rows: &[(AuditRow, ChainHash)]) -> Result<(), StoreError> {
        let sealed = rows.iter().map(|(row, hash)| SealedRow { row: row.clone(), hash: hash.to_hex() });
        self.work.audit.extend(sealed);
        Ok(())
    }

    async fn audit_walk(&mut self, after: i64, limit: usize) -> Result<Vec<SealedRow>, StoreError> {
        Ok(self.work.audit.iter().filter(|sealed| sealed.row.id > after).take(limit).cloned().collect())
    }

    async fn audit_delete(&mut self, up_to: i64, limit: usize) -> Result<usize, StoreError> {
        let old = self.work.audit.iter().take_while(|sealed| sealed.row.id <= up_to).take(limit).count();
        self.work.audit.drain(..old);
        Ok(old)
    }

    async fn audit_page(&mut self, filter: &AuditFilter) -> Result<Vec<SealedRow>, StoreError> {
        let parts = filter.parts();
        let wanted = |sealed: &&SealedRow| {
            let row = &sealed.row;
            let tenant = row.tenant.as_ref().map_or("", TenantId::as_str);
            row.id < filter.before
                && parts.iter().any(|(of, action)| *of == tenant && action.is_none_or(|action| action == row.action))
                && (row.tenant.is_some() || row.outcome != AuditOutcome::Refused)
                && filter.tracking_id.as_ref().is_none_or(|id| id.as_str() == row.tracking_id)
                && filter.operator_subject.as_ref().is_none_or(|subject| *subject == row.operator_subject)
                && filter.outcome.is_none_or(|outcome| outcome == row.outcome)
                && filter.since.is_none_or(|since| row.at >= since)
                && filter.until.is_none_or(|until| row.at < until)
        };
        Ok(self.work.audit.iter().rev().filter(wanted).take(filter.limit).cloned().collect())
    }

    async fn audit_last(&mut self) -> Result<i64, StoreError> {
        Ok(self.work.audit.last().map_or(0, |sealed| sealed.row.id))
    }

    async fn reader_find(&mut self, reader: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.work.readers.get(reader).copied())
    }

    async fn reader_put(&mut self, reader: &str, position: i64) -> Result<(), StoreError> {
        self.work.readers.insert(reader.to_owned(), position);
        Ok(())
    }
}
