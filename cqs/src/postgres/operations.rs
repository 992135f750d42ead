//! Operations.

use domain::{TenantId, Timestamp, TrackingId};

use super::PostgresUnit;
use crate::{
    StoreError,
    columns::{bind_operation, limit_int, read_operation},
    model::Operation,
    unit::Operations,
};

impl Operations for PostgresUnit<'_> {
    async fn operation_find(
        &mut self,
        tenant: &TenantId,
        tracking_id: &TrackingId,
    ) -> Result<Option<Operation>, StoreError> {
        let found = sqlx::query(
            "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla,
                sla_chosen, items_digest, items_enqueued, finished_at
             FROM cqs_operation WHERE tenant = $1 AND tracking_id = $2",
        )
        .bind(tenant.as_str())
        .bind(tracking_id.as_str())
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_operation).transpose()
    }

    async fn operation_of_lane(&mut self, lane: i64) -> Result<Option<Operation>, StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        let found = sqlx::query(
            "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla,
                sla_chosen, items_digest, items_enqueued, finished_at
             FROM cqs_operation WHERE tenant = $1 AND lane = $2",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .fetch_optional(&mut *self.conn)
        .await?;
        found.as_ref().map(read_operation).transpose()
    }

    async fn operation_running(&mut self, limit: usize) -> Result<Vec<i64>, StoreError> {
        Ok(sqlx::query_scalar("SELECT lane FROM cqs_operation WHERE finished_at IS NULL ORDER BY lane LIMIT $1")
            .bind(limit_int(limit))
            .fetch_all(&mut *self.conn)
            .await?)
    }

    async fn operation_insert(&mut self, operation: &Operation) -> Result<bool, StoreError> {
        let insert = sqlx::query(
            "INSERT INTO cqs_operation (tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject,
                accepted_at, sla, sla_chosen, items_digest, items_enqueued, finished_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
             ON CONFLICT (tenant, tracking_id) DO NOTHING",
        );
        let inserted = bind_operation(insert, operation).execute(&mut *self.conn).await?;
        Ok(inserted.rows_affected() > 0)
    }

    async fn operation_settle(&mut self, lane: i64, finished_at: Option<Timestamp>) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query(
            "UPDATE cqs_operation SET finished_at = $3
             WHERE tenant = $1 AND lane = $2 AND (finished_at IS NULL) <> ($3::bigint IS NULL)",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .bind(finished_at.map(Timestamp::as_ms))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
    }

    async fn operation_named(&mut self, tenant: &TenantId, names: &[TrackingId]) -> Result<Vec<Operation>, StoreError> {
        let names: Vec<&str> = names.iter().map(TrackingId::as_str).collect();
        let rows = sqlx::query(
            "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla,
                sla_chosen, items_digest, items_enqueued, finished_at
             FROM cqs_operation WHERE tenant = $1 AND tracking_id = ANY($2)
             ORDER BY id DESC",
        )
        .bind(tenant.as_str())
        .bind(names)
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_operation).collect()
    }

    async fn operation_page(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> Result<Vec<Operation>, StoreError> {
        let tenants: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
        let rows = sqlx::query(
            "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla,
                sla_chosen, items_digest, items_enqueued, finished_at
             FROM cqs_operation WHERE tenant = ANY($1) AND id < $2
             ORDER BY id DESC LIMIT $3",
        )
        .bind(tenants)
        .bind(before)
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_operation).collect()
    }

    async fn operation_unfinished(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> Result<Vec<Operation>, StoreError> {
        let tenants: Vec<&str> = tenants.iter().map(TenantId::as_str).collect();
        let rows = sqlx::query(
            "SELECT id, tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject, accepted_at, sla,
                sla_chosen, items_digest, items_enqueued, finished_at
             FROM cqs_operation WHERE finished_at IS NULL AND tenant = ANY($1) AND id < $2
             ORDER BY id DESC LIMIT $3",
        )
        .bind(tenants)
        .bind(before)
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?;
        rows.iter().map(read_operation).collect()
    }
}
