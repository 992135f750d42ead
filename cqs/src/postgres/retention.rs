//! What is forgotten after its time.

use db::postgres::Prune;
use domain::Timestamp;

use super::PostgresUnit;
use crate::{StoreError, columns::limit_int, unit::Retention};

impl Retention for PostgresUnit<'_> {
    async fn operation_expired(&mut self, before: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT lane FROM cqs_operation o
             WHERE finished_at IS NOT NULL AND finished_at < $1
                AND NOT EXISTS (
                    SELECT 1 FROM cqs_retry r WHERE r.tenant = o.tenant AND r.parent_lane = o.lane AND NOT r.done)
             ORDER BY finished_at, lane LIMIT $2",
        )
        .bind(before.as_ms())
        .bind(limit_int(limit))
        .fetch_all(&mut *self.conn)
        .await?)
    }

    async fn operation_forget(&mut self, lane: i64, limit: usize) -> Result<bool, StoreError> {
        // Another process may have forgotten it meanwhile, with its tenant's last trace even.
        let Some(tenant) = self.tenant_of(lane).await? else { return Ok(true) };
        for statement in [
            "DELETE FROM cqs_dead WHERE tenant = $1 AND id IN (
                SELECT id FROM cqs_dead WHERE tenant = $1 AND lane = $2 ORDER BY queue, id LIMIT $3)",
            "DELETE FROM cqs_dead_group WHERE tenant = $1 AND (lane, queue, cause) IN (
                SELECT lane, queue, cause FROM cqs_dead_group WHERE tenant = $1 AND lane = $2 LIMIT $3)",
        ] {
            let forgotten = sqlx::query(statement)
                .bind(tenant.as_str())
                .bind(lane)
                .bind(limit_int(limit))
                .execute(&mut *self.conn)
                .await?;
            if usize::try_from(forgotten.rows_affected()) == Ok(limit) {
                return Ok(false);
            }
        }
        for statement in [
            "DELETE FROM cqs_ledger WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_ledger_delta WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_retry WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_control WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_pace WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_head WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_place WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_operation WHERE tenant = $1 AND lane = $2",
            "DELETE FROM cqs_lane WHERE tenant = $1 AND lane = $2",
        ] {
            sqlx::query(statement).bind(tenant.as_str()).bind(lane).execute(&mut *self.conn).await?;
        }
        Ok(true)
    }

    async fn dead_prune(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(DEAD_OVER.run(self.conn, before, limit_int(limit)).await?)
    }
}

const DEAD_OVER: Prune = Prune {
    find: "SELECT tenant, id FROM cqs_dead WHERE NOT of_operation AND at < $1 ORDER BY at, id LIMIT $2",
    forget: "DELETE FROM cqs_dead WHERE tenant = $1 AND id = ANY($2) AND NOT of_operation AND at < $3",
};
