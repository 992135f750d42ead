//! Tenants' numbers, which the ids of lanes and leases carry in their low bits: a caller that knows only such an id still
//! reaches the tenant's rows by the tenant.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use domain::TenantId;

use super::PostgresUnit;
use crate::StoreError;

/// Bits of an id that hold the tenant's number; the schema bounds the number to them.
const NUMBER_BITS: u32 = 20;

/// Numbers that were read before: a number is a tenant's for ever.
#[derive(Debug, Clone, Default)]
pub struct Tenants(Arc<RwLock<HashMap<i32, TenantId>>>);

/// The number in the id of a lane or a lease.
fn number_of(id: i64) -> i32 {
    i32::try_from(id & ((1 << NUMBER_BITS) - 1)).unwrap_or_default()
}

/// The id with that number of its sequence and that tenant's number.
pub(super) fn id_with(sequence: i64, number: i32) -> i64 {
    (sequence << NUMBER_BITS) | i64::from(number)
}

impl PostgresUnit<'_> {
    /// The tenant of a lane or a lease; none for an id that nobody was ever given.
    pub(super) async fn tenant_of(&mut self, id: i64) -> Result<Option<TenantId>, StoreError> {
        let number = number_of(id);
        if let Some(tenant) = self.queues.tenants.0.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return Ok(Some(tenant.clone()));
        }
        let found: Option<String> = sqlx::query_scalar("SELECT tenant FROM cqs_tenant WHERE number = $1")
            .bind(number)
            .fetch_optional(&mut *self.conn)
            .await?;
        let Some(found) = found else { return Ok(None) };
        let tenant: TenantId = found.parse().map_err(|_| StoreError::BrokenRow {
            table: "cqs_tenant",
            column: "tenant",
            id: number.to_string(),
        })?;
        let mut known = self.queues.tenants.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(number, tenant.clone());
        Ok(Some(tenant))
    }

    /// As [`Self::tenant_of`], for an id that rows name.
    pub(super) async fn tenant_of_stored(&mut self, id: i64) -> Result<TenantId, StoreError> {
        let broken = StoreError::BrokenRow { table: "cqs_tenant", column: "number", id: number_of(id).to_string() };
        self.tenant_of(id).await?.ok_or(broken)
    }

    /// Lanes by their tenants.
    pub(super) async fn by_tenant(&mut self, lanes: &[i64]) -> Result<BTreeMap<TenantId, Vec<i64>>, StoreError> {
        let mut by_tenant: BTreeMap<TenantId, Vec<i64>> = BTreeMap::new();
        for lane in lanes {
            by_tenant.entry(self.tenant_of_stored(*lane).await?).or_default().push(*lane);
        }
        Ok(by_tenant)
    }

    /// The tenant's number, given at its first lane.
    pub(super) async fn tenant_number(&mut self, tenant: &TenantId) -> Result<i32, StoreError> {
        // Inserted first: whoever inserts the same tenant waits for the other one's end, and finds its number then.
        sqlx::query("INSERT INTO cqs_tenant (tenant) VALUES ($1) ON CONFLICT (tenant) DO NOTHING")
            .bind(tenant.as_str())
            .execute(&mut *self.conn)
            .await?;
        Ok(sqlx::query_scalar("SELECT number FROM cqs_tenant WHERE tenant = $1")
            .bind(tenant.as_str())
            .fetch_one(&mut *self.conn)
            .await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_the_tenant_and_grows_with_the_sequence() {
        for number in [1, 77, 1_048_575] {
            for sequence in [1, 1_800_000_000_000, 8_000_000_000_000] {
                let id = id_with(sequence, number);
                assert_eq!(number_of(id), number);
                assert!(id_with(sequence + 1, 1) > id);
            }
        }
    }
}
