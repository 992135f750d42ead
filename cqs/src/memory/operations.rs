//! Operations.

use domain::{TenantId, Timestamp, TrackingId};

use super::MemoryUnit;
use crate::{StoreError, model::Operation, unit::Operations};

impl Operations for MemoryUnit {
    async fn operation_find(
        &mut self,
        tenant: &TenantId,
        tracking_id: &TrackingId,
    ) -> Result<Option<Operation>, StoreError> {
        let named = |operation: &&Operation| operation.tenant == *tenant && operation.tracking_id == *tracking_id;
        Ok(self.work.operations.iter().find(named).cloned())
    }

    async fn operation_of_lane(&mut self, lane: i64) -> Result<Option<Operation>, StoreError> {
        Ok(self.work.operations.iter().find(|operation| operation.lane == lane).cloned())
    }

    async fn operation_running(&mut self, limit: usize) -> Result<Vec<i64>, StoreError> {
        let running = self.work.operations.iter().filter(|operation| operation.finished_at.is_none());
        let mut lanes: Vec<i64> = running.map(|operation| operation.lane).collect();
        lanes.sort_unstable();
        lanes.truncate(limit);
        Ok(lanes)
    }

    async fn operation_insert(&mut self, operation: &Operation) -> Result<bool, StoreError> {
        if self.operation_find(&operation.tenant, &operation.tracking_id).await?.is_some() {
            return Ok(false);
        }
        self.work.last_operation += 1;
        self.work.operations.push(Operation { id: self.work.last_operation, ..operation.clone() });
        Ok(true)
    }

    async fn operation_settle(&mut self, lane: i64, finished_at: Option<Timestamp>) -> Result<(), StoreError> {
        if let Some(operation) = self.work.operations.iter_mut().find(|operation| operation.lane == lane)
            && operation.finished_at.is_some() != finished_at.is_some()
        {
            operation.finished_at = finished_at;
        }
        Ok(())
    }

    async fn operation_named(&mut self, tenant: &TenantId, names: &[TrackingId]) -> Result<Vec<Operation>, StoreError> {
        let newest_first = self.work.operations.iter().rev();
        let named =
            newest_first.filter(|operation| operation.tenant == *tenant && names.contains(&operation.tracking_id));
        Ok(named.cloned().collect())
    }

    async fn operation_page(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> Result<Vec<Operation>, StoreError> {
        let newest_first = self.work.operations.iter().rev();
        let listed = newest_first.filter(|operation| operation.id < before && tenants.contains(&operation.tenant));
        Ok(listed.take(limit).cloned().collect())
    }

    async fn operation_unfinished(
        &mut self,
        tenants: &[TenantId],
        before: i64,
        limit: usize,
    ) -> Result<Vec<Operation>, StoreError> {
        let mut listed = self.operation_page(tenants, before, usize::MAX).await?;
        listed.retain(|operation| operation.finished_at.is_none());
        listed.truncate(limit);
        Ok(listed)
    }
}
