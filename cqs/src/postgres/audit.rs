//! The audit log.

use domain::TenantId;

use super::PostgresUnit;
use crate::{
    StoreError,
    audit::chain::{Anchor, ChainHash},
    columns::{anchor_columns, bind_filter, limit_int, read_anchor, read_audit},
    model::{AuditRow, SealedRow},
    unit::{Audit, AuditFilter},
};

/// The lock of those who append: ends with the transaction, so ids and hashes follow one another.
const APPENDING: i64 = 0x7265_0005_0000_0000;

impl Audit for PostgresUnit<'_> {
    async fn audit_tail(&mut self) -> Result<Option<(i64, String)>, StoreError> {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(APPENDING).execute(&mut *self.conn).await?;
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
            "INSERT INTO cqs_audit_anchor (kind, id, hash) VALUES ($1, $2, $3)
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
        // One statement a row: a call has one, now and then two.
        for (row, hash) in rows {
            sqlx::query(
                "INSERT INTO cqs_audit (tenant, id, at, service, operator_subject, action, tracking_id, reason,
                    request_digest, outcome, error_code, detail, hash)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            )
            .bind(row.tenant.as_ref().map_or("", TenantId::as_str))
            .bind(row.id)
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
            .bind(hash.to_hex())
            .execute(&mut *self.conn)
            .await?;
        }
        Ok(())
    }

    async fn audit_walk(&mut self, after: i64, limit: usize) -> Result<Vec<SealedRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, at, service, operator_subject, tenant, action, tracking_id, reason, request_digest, outcome,
                error_code, detail, hash
             FROM cqs_audit WHERE id > $1 ORDER BY id LIMIT $2",
        )
        .bind(after)
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_audit).collect()
    }

    async fn audit_delete(&mut self, up_to: i64, limit: usize) -> Result<usize, StoreError> {
        let deleted = sqlx::query(
            "DELETE FROM cqs_audit WHERE id IN (SELECT id FROM cqs_audit WHERE id <= $1 ORDER BY id LIMIT $2)",
        )
        .bind(up_to)
        .bind(limit_int(limit))
        .execute(&mut *self.conn)
        .await?;
        Ok(usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX))
    }

    async fn audit_page(&mut self, filter: &AuditFilter) -> Result<Vec<SealedRow>, StoreError> {
        let (tenants, actions): (Vec<&str>, Vec<Option<&str>>) = filter.parts().into_iter().unzip();
        let query = sqlx::query(statement(filter)).bind(tenants).bind(actions);
        let rows = bind_filter(query, filter).fetch_all(&mut *self.conn).await?;
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

/// The narrowest filter has an index with the tenant before it and the id after it; the others look at its rows.
fn statement(filter: &AuditFilter) -> &'static str {
    if filter.tracking_id.is_some() {
        PAGE_OF_TRACKING_ID
    } else if filter.operator_subject.is_some() {
        PAGE_OF_OPERATOR
    } else if filter.action.is_some() {
        PAGE_OF_ACTION
    } else if filter.outcome.is_some() {
        PAGE_OF_OUTCOME
    } else {
        PAGE
    }
}

/// A page of each part by an index; `$of` is what the index has between tenant and id. Times become bounds of the id
/// first: those of the last row dated well before the one, and of the first well after the other.
macro_rules! page {
    ($of:literal) => {
        concat!(
            "SELECT a.id, a.at, a.service, a.operator_subject, a.tenant, a.action, a.tracking_id, a.reason, a.request_digest,
                a.outcome, a.error_code, a.detail, a.hash
             FROM unnest($1::text[], $2::text[]) AS part (tenant, action)
             CROSS JOIN LATERAL (
                SELECT one.* FROM cqs_audit one
                WHERE one.tenant = part.tenant AND ",
            $of,
            " one.id < least($3, (SELECT later.id FROM cqs_audit later
                    WHERE later.tenant = part.tenant AND later.at >= $9::bigint + $10::bigint
                    ORDER BY later.at, later.id LIMIT 1))
                    AND one.id > coalesce((SELECT earlier.id FROM cqs_audit earlier
                        WHERE earlier.tenant = part.tenant AND earlier.at < $8::bigint - $10::bigint
                        ORDER BY earlier.at DESC, earlier.id DESC LIMIT 1), 0)
                    AND ($5::text IS NULL OR one.tracking_id = $5) AND ($6::text IS NULL OR one.operator_subject = $6)
                    AND (part.action IS NULL OR one.action = part.action) AND ($7::text IS NULL OR one.outcome = $7)
                    AND ($8::bigint IS NULL OR one.at >= $8) AND ($9::bigint IS NULL OR one.at < $9)
                    AND (one.tenant <> '' OR one.outcome <> 'refused')
                ORDER BY one.id DESC LIMIT $4
             ) a
             ORDER BY a.id DESC LIMIT $4"
        )
    };
}

const PAGE: &str = page!("");
const PAGE_OF_TRACKING_ID: &str = page!("one.tracking_id = $5 AND ");
const PAGE_OF_OPERATOR: &str = page!("one.operator_subject = $6 AND ");
const PAGE_OF_ACTION: &str = page!("one.action = part.action AND ");
const PAGE_OF_OUTCOME: &str = page!("one.outcome = $7 AND ");
