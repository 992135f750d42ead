//! The audit log.

use domain::TenantId;
use serde_json::json;
use sqlx::sqlite::SqliteRow;

use super::{
    SqliteUnit,
    columns::{Columns, json_text, limit_int},
};
use crate::{
    StoreError,
    model::{AuditOutcome, AuditRow},
    unit::{Audit, AuditFilter},
};

impl Audit for SqliteUnit<'_> {
    async fn audit_append(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        let rows = rows.iter().map(|row| {
            json!([
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
            ])
        });
        sqlx::query(
            "INSERT INTO cqs_audit (at, service, operator_subject, tenant, action, tracking_id, reason, request_digest,
                outcome, error_code, detail)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7, value ->> 8, value ->> 9, value ->> 10
             FROM jsonb_each(?1)",
        )
        .bind(json_text(&rows.collect::<Vec<_>>())?)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn audit_page(&mut self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let tenants: Vec<&str> = filter.tenants.iter().map(TenantId::as_str).collect();
        // Two statements, so that each finds its index.
        let statement = if filter.tracking_id.is_some() { PAGE_OF_TRACKING_ID } else { PAGE };
        let rows = sqlx::query(statement)
            .bind(json_text(&tenants)?)
            .bind(filter.before)
            .bind(limit_int(filter.limit))
            .bind(filter.tracking_id.as_ref().map_or("", |id| id.as_str()))
            .fetch_all(&mut *self.conn)
            .await?;
        rows.iter().map(read_audit).collect()
    }

    async fn audit_after(&mut self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        let rows = sqlx::query(AFTER).bind(after).bind(limit_int(limit)).fetch_all(&mut *self.conn).await?;
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
}

const AFTER: &str = "
SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail
FROM cqs_audit
WHERE id > ?1
ORDER BY id LIMIT ?2";

const PAGE: &str = "
SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail
FROM cqs_audit
WHERE tenant IN (SELECT value FROM jsonb_each(?1)) AND id < ?2 AND ?4 = ''
ORDER BY id DESC LIMIT ?3";

const PAGE_OF_TRACKING_ID: &str = "
SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail
FROM cqs_audit
WHERE tenant IN (SELECT value FROM jsonb_each(?1)) AND tracking_id = ?4 AND id < ?2
ORDER BY id DESC LIMIT ?3";

fn read_audit(row: &SqliteRow) -> Result<AuditRow, StoreError> {
    let columns = Columns { table: "cqs_audit", row, key: "id" };
    let outcome = match columns.get("outcome")? {
        "accepted" => AuditOutcome::Accepted,
        "replayed" => AuditOutcome::Replayed,
        "refused" => AuditOutcome::Refused,
        _ => return Err(columns.broken("outcome")),
    };
    Ok(AuditRow {
        id: columns.get("id")?,
        at: columns.time("at")?,
        service: columns.parse("service")?,
        operator_subject: columns.get("operator_subject")?,
        tenant: columns.parse_if("tenant")?,
        action: columns.get("action")?,
        tracking_id: columns.get("tracking_id")?,
        reason: columns.get("reason")?,
        request_digest: columns.get("request_digest")?,
        outcome,
        error_code: columns.get("error_code")?,
        detail: columns.get("detail")?,
    })
}
