//! Operations.

use domain::{TenantId, Timestamp, TrackingId};
use sqlx::postgres::PgRow;

use super::{
    PostgresUnit,
    columns::{Columns, limit_int},
};
use crate::{StoreError, model::Operation, unit::Operations};

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
        let inserted = sqlx::query(
            "INSERT INTO cqs_operation (tenant, tracking_id, lane, queue, trigger_name, scope, reason, operator_subject,
                accepted_at, sla, sla_chosen, items_digest, items_enqueued, finished_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
             ON CONFLICT (tenant, tracking_id) DO NOTHING",
        )
        .bind(operation.tenant.as_str())
        .bind(operation.tracking_id.as_str())
        .bind(operation.lane)
        .bind(operation.queue.as_str())
        .bind(&operation.trigger)
        .bind(operation.scope.as_ref().map(ToString::to_string).unwrap_or_default())
        .bind(operation.reason.as_str())
        .bind(operation.operator_subject.as_ref().map_or("", |subject| subject.as_str()))
        .bind(operation.accepted_at.as_ms())
        .bind(operation.sla.as_ms())
        .bind(operation.sla_chosen.map(Timestamp::as_ms))
        .bind(&operation.items_digest)
        .bind(operation.items_enqueued)
        .bind(operation.finished_at.map(Timestamp::as_ms))
        .execute(&mut *self.conn)
        .await?;
        Ok(inserted.rows_affected() > 0)
    }

    async fn operation_settle(&mut self, lane: i64, finished_at: Option<Timestamp>) -> Result<(), StoreError> {
        let tenant = self.tenant_of_stored(lane).await?;
        sqlx::query(
            "UPDATE cqs_operation SET finished_at = $3
             WHERE tenant = $1 AND lane = $2 AND (finished_at IS NULL) <> ($3 IS NULL)",
        )
        .bind(tenant.as_str())
        .bind(lane)
        .bind(finished_at.map(Timestamp::as_ms))
        .execute(&mut *self.conn)
        .await?;
        Ok(())
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
}

fn read_operation(row: &PgRow) -> Result<Operation, StoreError> {
    let columns = Columns { table: "cqs_operation", row, key: "id" };
    Ok(Operation {
        id: columns.get("id")?,
        tenant: columns.parse("tenant")?,
        tracking_id: columns.parse("tracking_id")?,
        lane: columns.get("lane")?,
        queue: columns.parse("queue")?,
        trigger: columns.get("trigger_name")?,
        scope: columns.parse_if("scope")?,
        reason: columns.parse("reason")?,
        operator_subject: columns.parse_if("operator_subject")?,
        accepted_at: columns.time("accepted_at")?,
        sla: columns.time("sla")?,
        sla_chosen: columns.time_if("sla_chosen")?,
        items_digest: columns.get("items_digest")?,
        items_enqueued: columns.get("items_enqueued")?,
        finished_at: columns.time_if("finished_at")?,
    })
}
