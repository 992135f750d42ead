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
}

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
