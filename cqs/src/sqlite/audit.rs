//! The audit log.

use domain::TenantId;
use serde_json::json;

use super::{SqliteUnit, json::json_text};
use crate::{
    StoreError,
    audit::chain::{Anchor, ChainHash},
    columns::{anchor_columns, bind_filter, limit_int, read_anchor, read_audit},
    model::{AuditRow, SealedRow},
    unit::{Audit, AuditFilter},
};

impl Audit for SqliteUnit<'_> {
    async fn audit_tail(&mut self) -> Result<Option<(i64, String)>, StoreError> {
        Ok(sqlx::query_as("SELECT id, hash FROM cqs_audit ORDER BY id DESC LIMIT 1")
            .fetch_optional(&mut *self.conn)
            .await?)
    }

    async fn audit_anchors(&mut self) -> Result<Vec<Anchor>, StoreError> {
        let rows =
            sqlx::query("SELECT kind, id, hash FROM cqs_audit_anchor ORDER BY kind").fetch_all(&mut *self.conn).await?;
        rows.iter().map(read_anchor).collect()
    }

    async fn audit_anchor_put(&mut self, anchor: Anchor) -> Result<(), StoreError> {
        let (kind, head) = anchor_columns(anchor);
        sqlx::query(
            "INSERT INTO cqs_audit_anchor (kind, id, hash) VALUES (?1, ?2, ?3)
             ON CONFLICT (kind) DO UPDATE SET id = excluded.id, hash = excluded.hash",
        )
        .bind(kind)
        .bind(head.id)
        .bind(head.hash.to_hex())
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn audit_put(&mut self, rows: &[(AuditRow, ChainHash)]) -> Result<(), StoreError> {
        let rows = rows.iter().map(|(row, hash)| {
            json!([
                row.id,
                row.at.as_ms(),
                row.service.as_str(),
                row.operator_subject,
                row.tenant.as_ref().map_or("", TenantId::as_str),
                row.action,
                row.tracking_id,
                row.reason,
                row.request_digest,
                row.outcome.as_str(),
                row.error_code,
                row.detail,
                hash.to_hex(),
            ])
        });
        sqlx::query(
            "INSERT INTO cqs_audit (id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest,
                outcome, error_code, detail, hash)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12
             FROM jsonb_each(?1)",
        )
        .bind(json_text(&rows.collect::<Vec<_>>())?)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn audit_walk(&mut self, after: i64, limit: usize) -> Result<Vec<SealedRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome,
                error_code, detail, hash
             FROM cqs_audit WHERE id > ?1 ORDER BY id LIMIT ?2",
        )
        .bind(after)
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_audit).collect()
    }

    async fn audit_last(&mut self) -> Result<i64, StoreError> {
        let last: Option<i64> = sqlx::query_scalar("SELECT id FROM cqs_audit ORDER BY id DESC LIMIT 1")
            .fetch_optional(&mut *self.conn)
            .await?;
        Ok(last.unwrap_or(0))
    }

    async fn reader_find(&mut self, reader: &str) -> Result<Option<i64>, StoreError> {
        Ok(sqlx::query_scalar("SELECT position FROM cqs_audit_reader WHERE reader = ?1")
            .bind(reader)
            .fetch_optional(&mut *self.conn)
            .await?)
    }

    async fn reader_put(&mut self, reader: &str, position: i64) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO cqs_audit_reader (reader, position) VALUES (?1, ?2)
             ON CONFLICT (reader) DO UPDATE SET position = excluded.position",
        )
        .bind(reader)
        .bind(position)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn audit_delete(&mut self, up_to: i64, limit: usize) -> Result<usize, StoreError> {
        let deleted = sqlx::query(
            "DELETE FROM cqs_audit WHERE id IN (SELECT id FROM cqs_audit WHERE id <= ?1 ORDER BY id LIMIT ?2)",
        )
        .bind(up_to)
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX))
    }

    async fn audit_page(&mut self, filter: &AuditFilter) -> Result<Vec<SealedRow>, StoreError> {
        let mut found = Vec::new();
        // One part at a time, so that each is read in the order of its index and no further than the page.
        for (tenant, action) in filter.parts() {
            let query = sqlx::query(statement(filter, action)).bind(tenant).bind(action);
            let rows = bind_filter(query, filter).fetch_all(&mut *self.conn).await?;
            for row in &rows {
                found.push(read_audit(row)?);
            }
        }
        found.sort_unstable_by_key(|sealed| std::cmp::Reverse(sealed.row.id));
        found.truncate(filter.limit);
        Ok(found)
    }
}

/// The narrowest filter has an index with the tenant before it and the id after it; the others look at its rows.
fn statement(filter: &AuditFilter, action: Option<&str>) -> &'static str {
    if filter.tracking_id.is_some() {
        PAGE_OF_TRACKING_ID
    } else if filter.operator_subject.is_some() {
        PAGE_OF_OPERATOR
    } else if action.is_some() {
        PAGE_OF_ACTION
    } else if filter.outcome.is_some() {
        PAGE_OF_OUTCOME
    } else {
        PAGE
    }
}

/// A page of one tenant by an index; `$of` is what the index has between tenant and id. Times become bounds of the id
/// first: those of the last row dated well before the one, and of the first well after the other.
macro_rules! page {
    ($index:literal, $of:literal) => {
        concat!(
            "SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code,
                detail, hash
             FROM cqs_audit INDEXED BY ",
            $index,
            " WHERE tenant = ?1 AND ",
            $of,
            " id < min(?3, coalesce((SELECT id FROM cqs_audit INDEXED BY cqs_audit_time
                    WHERE tenant = ?1 AND at >= ?9 + ?10 ORDER BY at, id LIMIT 1), ?3))
                AND id > coalesce((SELECT id FROM cqs_audit INDEXED BY cqs_audit_time
                    WHERE tenant = ?1 AND at < ?8 - ?10 ORDER BY at DESC, id DESC LIMIT 1), 0)
                AND (?5 IS NULL OR tracking_id = ?5) AND (?6 IS NULL OR operator_subject = ?6)
                AND (?2 IS NULL OR action = ?2) AND (?7 IS NULL OR outcome = ?7) AND (?8 IS NULL OR at >= ?8)
                AND (?9 IS NULL OR at < ?9) AND (tenant <> '' OR outcome <> 'refused')
             ORDER BY id DESC LIMIT ?4"
        )
    };
}

const PAGE: &str = page!("cqs_audit_list", "");
const PAGE_OF_TRACKING_ID: &str = page!("cqs_audit_tracking", "tracking_id = ?5 AND ");
const PAGE_OF_OPERATOR: &str = page!("cqs_audit_actor", "operator_subject = ?6 AND ");
const PAGE_OF_ACTION: &str = page!("cqs_audit_action", "action = ?2 AND ");
const PAGE_OF_OUTCOME: &str = page!("cqs_audit_outcome", "outcome = ?7 AND ");
