//! The audit log.

use domain::TenantId;
use sqlx::postgres::PgRow;

use super::{
    PostgresUnit,
    columns::{Columns, limit_int},
};
use crate::{
    StoreError,
    model::{AuditOutcome, AuditRow},
    unit::{Audit, AuditFilter},
};

impl Audit for PostgresUnit<'_> {
    async fn audit_append(&mut self, rows: &[AuditRow]) -> Result<(), StoreError> {
        // One statement a row: a call has one, now and then two.
        for row in rows {
            sqlx::query(
                "INSERT INTO cqs_audit (tenant, at, service, operator_subject, action, tracking_id, reason, request_digest,
                    outcome, error_code, detail)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            )
            .bind(row.tenant.as_ref().map_or("", TenantId::as_str))
            .bind(row.at.as_ms())
            .bind(row.service.as_str())
            .bind(&row.operator_subject)
            .bind(&row.action)
            .bind(&row.tracking_id)
            .bind(&row.reason)
            .bind(&row.request_digest)
            .bind(row.outcome.as_str())
            .bind(&row.error_code)
            .bind(&row.detail)
            .execute(&mut *self.conn)
            .await?;
        }
        Ok(())
    }

    async fn audit_page(&mut self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError> {
        let tenants: Vec<&str> = filter.tenants.iter().map(TenantId::as_str).collect();
        // Two statements, so that each finds its index.
        let statement = if filter.tracking_id.is_some() { PAGE_OF_TRACKING_ID } else { PAGE };
        let rows = sqlx::query(statement)
            .bind(tenants)
            .bind(filter.before)
            .bind(limit_int(filter.limit))
            .bind(filter.tracking_id.as_ref().map_or("", |id| id.as_str()))
            .fetch_all(&mut *self.conn)
            .await?;
        rows.iter().map(read_audit).collect()
    }

    async fn audit_after(&mut self, after: i64, limit: usize) -> Result<Vec<AuditRow>, StoreError> {
        let rows =
            sqlx::query(AFTER).bind(after).bind(limit_int(limit)).bind(SETTLED_MS).fetch_all(&mut *self.conn).await?;
        rows.iter().map(read_audit).collect()
    }

    async fn audit_last(&mut self) -> Result<i64, StoreError> {
        let last: Option<i64> = sqlx::query_scalar("SELECT max(id) FROM cqs_audit").fetch_one(&mut *self.conn).await?;
        Ok(last.unwrap_or(0))
    }

    async fn reader_find(&mut self, reader: &str) -> Result<Option<i64>, StoreError> {
        Ok(sqlx::query_scalar("SELECT position FROM cqs_audit_reader WHERE reader = $1")
            .bind(reader)
            .fetch_optional(&mut *self.conn)
            .await?)
    }

    async fn reader_put(&mut self, reader: &str, position: i64) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO cqs_audit_reader AS known (reader, position) VALUES ($1, $2)
             ON CONFLICT (reader) DO UPDATE SET position = greatest(known.position, excluded.position)",
        )
        .bind(reader)
        .bind(position)
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }
}

/// Differs by necessity: units of work commit beside each other, so a row may appear after one with a larger id. A
/// reader sees rows of this age and older, in milliseconds: a unit of work that writes one lasts milliseconds.
const SETTLED_MS: i64 = 5_000;

const AFTER: &str = "
SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail
FROM cqs_audit
WHERE id > $1
  AND id < coalesce((SELECT min(id) FROM cqs_audit
        WHERE id > $1 AND at > extract(epoch FROM clock_timestamp()) * 1000 - $3), 9223372036854775807)
ORDER BY id LIMIT $2";

const PAGE: &str = "
SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail
FROM cqs_audit
WHERE tenant = ANY($1) AND id < $2 AND $4 = ''
ORDER BY id DESC LIMIT $3";

const PAGE_OF_TRACKING_ID: &str = "
SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome, error_code, detail
FROM cqs_audit
WHERE tenant = ANY($1) AND tracking_id = $4 AND id < $2
ORDER BY id DESC LIMIT $3";

fn read_audit(row: &PgRow) -> Result<AuditRow, StoreError> {
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
