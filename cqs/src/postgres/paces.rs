//! Samples of how far operations were.

use std::collections::BTreeMap;

use db::postgres::Prune;
use domain::{TenantId, Timestamp};

use super::{PostgresUnit, arrays::queue_int};
use crate::{
    StoreError,
    columns::{limit_int, read_pace},
    model::Pace,
    unit::Paces,
};

impl Paces for PostgresUnit<'_> {
    async fn pace_last(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let last: Option<i64> = sqlx::query_scalar("SELECT max(at) FROM cqs_pace").fetch_one(&mut *self.conn).await?;
        Ok(last.map(Timestamp::from_ms))
    }

    async fn pace_put(&mut self, paces: &[Pace]) -> Result<(), StoreError> {
        let mut by_tenant: BTreeMap<TenantId, Vec<&Pace>> = BTreeMap::new();
        for pace in paces {
            by_tenant.entry(self.tenant_of_stored(pace.lane).await?).or_default().push(pace);
        }
        for (tenant, paces) in by_tenant {
            sqlx::query(
                "INSERT INTO cqs_pace (tenant, lane, queue, at, gone)
                 SELECT $1, p.lane, p.queue, p.at, p.gone
                 FROM unnest($2::bigint[], $3::integer[], $4::bigint[], $5::bigint[]) AS p (lane, queue, at, gone)
                 ORDER BY p.lane, p.queue ON CONFLICT DO NOTHING",
            )
            .bind(tenant.as_str())
            .bind(paces.iter().map(|pace| pace.lane).collect::<Vec<_>>())
            .bind(paces.iter().map(|pace| queue_int(pace.queue)).collect::<Vec<_>>())
            .bind(paces.iter().map(|pace| pace.at.as_ms()).collect::<Vec<_>>())
            .bind(paces.iter().map(|pace| pace.gone).collect::<Vec<_>>())
            .execute(&mut *self.conn)
            .await?;
        }
        Ok(())
    }

    async fn pace_find(&mut self, lanes: &[i64], since: Timestamp) -> Result<Vec<Pace>, StoreError> {
        let mut found = Vec::new();
        for (tenant, lanes) in self.by_tenant(lanes).await? {
            let rows = sqlx::query(
                "SELECT lane, queue, at, gone FROM cqs_pace WHERE tenant = $1 AND lane = ANY($2) AND at >= $3",
            )
            .bind(tenant.as_str())
            .bind(lanes)
            .bind(since.as_ms())
            .fetch_all(&mut *self.conn)
            .await?;
            for row in &rows {
                found.push(read_pace(row)?);
            }
        }
        found.sort_unstable_by_key(|pace| (pace.at, pace.lane, pace.queue));
        Ok(found)
    }

    async fn pace_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        PACES_OVER.run(self.conn, before, limit_int(limit)).await?;
        Ok(())
    }
}

const PACES_OVER: Prune = Prune {
    find: "SELECT tenant, lane FROM cqs_pace WHERE at < $1 ORDER BY at LIMIT $2",
    forget: "DELETE FROM cqs_pace WHERE tenant = $1 AND lane = ANY($2) AND at < $3",
};
