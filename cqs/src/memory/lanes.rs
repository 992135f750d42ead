//! Lanes and their heads.
//!
//! Differs by necessity: heads are derived from the ready rows and the leases whenever they are asked for; changes told
//! are not looked at.

use domain::{LaneKind, StoreId, TenantId, Timestamp, limits};

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{Head, HeadChange, HeadKey, Lane, LaneClass, NewLane, RowKind},
    unit::{Held, Lanes},
};

impl Lanes for MemoryUnit {
    async fn lane_find(&mut self, lane: i64) -> Result<Option<Lane>, StoreError> {
        Ok(self.work.lanes.get(&lane).map(|(lane, _)| lane.clone()))
    }

    async fn lane_ordinary(&mut self, tenant: &TenantId, now: Timestamp) -> Result<Lane, StoreError> {
        let found =
            self.work.lanes.values().find(|(lane, _)| lane.kind == LaneKind::Ordinary && lane.tenant == *tenant);
        if let Some((lane, _)) = found {
            return Ok(lane.clone());
        }
        let new = NewLane { tenant: tenant.clone(), kind: LaneKind::Ordinary, tracking_id: None };
        self.lane_open(new, now).await
    }

    async fn lane_open(&mut self, lane: NewLane, now: Timestamp) -> Result<Lane, StoreError> {
        self.work.last_lane += 1;
        let id = self.work.last_lane;
        let lane = Lane { id, tenant: lane.tenant, kind: lane.kind, tracking_id: lane.tracking_id };
        self.work.lanes.insert(id, (lane.clone(), now));
        Ok(lane)
    }

    async fn lane_is_idle(&mut self, lane: i64) -> Result<bool, StoreError> {
        Ok(self.is_idle(lane))
    }

    async fn lane_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        let old: Vec<i64> = self
            .work
            .lanes
            .iter()
            .filter(|(id, (lane, opened))| lane.kind == LaneKind::Split && *opened < before && self.is_idle(**id))
            .map(|(id, _)| *id)
            .take(limit)
            .collect();
        for lane in old {
            self.work.lanes.remove(&lane);
        }
        Ok(())
    }

    async fn lane_lock(&mut self, _: i64, _: i64) -> Result<(), StoreError> {
        // The whole state is locked.
        Ok(())
    }

    async fn head_change(&mut self, _: &[(HeadKey, LaneClass, HeadChange)]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn head_hold(&mut self, _: i64, _: &StoreId, _: Held) -> Result<(), StoreError> {
        Ok(())
    }

    async fn head_first(&mut self, queue: i64, class: LaneClass) -> Result<Option<Head>, StoreError> {
        let heads = self.heads(queue).into_iter().filter(|(of, _)| *of == class).map(|(_, head)| head);
        Ok(heads.min_by_key(|head| (head.claim_sla, head.lane, head.store.clone())))
    }

    async fn head_in_turn(&mut self, queue: i64, after: i64) -> Result<Option<Head>, StoreError> {
        let heads = self.heads(queue).into_iter().filter(|(of, head)| *of == LaneClass::Bulk && head.lane > after);
        Ok(heads.map(|(_, head)| head).min_by_key(|head| (head.lane, head.claim_sla, head.store.clone())))
    }
}

impl MemoryUnit {
    fn is_idle(&self, lane: i64) -> bool {
        !self.work.waiting.values().any(|(_, row)| row.lane == lane)
            && !self.work.leases.values().any(|lease| lease.lane == lane)
    }

    /// Every claimable head of a queue.
    fn heads(&self, queue: i64) -> Vec<(LaneClass, Head)> {
        let mut keys: Vec<(i64, Option<StoreId>)> = Vec::new();
        for (_, lane, store, ..) in self.work.ready.iter().filter(|key| key.0 == queue) {
            if keys.last().is_none_or(|last| last.0 != *lane || last.1 != *store) {
                keys.push((*lane, store.clone()));
            }
        }
        keys.into_iter().filter_map(|(lane, store)| self.head(HeadKey { queue, lane, store })).collect()
    }

    fn head(&self, key: HeadKey) -> Option<(LaneClass, Head)> {
        let holds = |lease: &crate::model::Lease| lease.queue == key.queue && lease.store == key.store;
        if key.store.is_some() && self.work.leases.values().any(holds) {
            return None;
        }
        let first = |kind| self.ready_keys(&key, kind).next().map(|key| key.4);
        let label_sla = first(RowKind::Label);
        let parent_sla = first(RowKind::Parent).filter(|_| self.is_open(&key));
        let claim_sla = match (label_sla, parent_sla) {
            (Some(label), Some(parent)) => label.min(parent),
            (label, parent) => label.or(parent)?,
        };
        let class = LaneClass::from(self.work.lanes.get(&key.lane)?.0.kind);
        Some((class, Head { lane: key.lane, store: key.store, claim_sla, label_sla, parent_sla }))
    }

    /// Whether a parent of the lane may be claimed in the queue now.
    fn is_open(&self, key: &HeadKey) -> bool {
        let of_lane = |lease: &&crate::model::Lease| lease.queue == key.queue && lease.lane == key.lane;
        let leased_parent = self.work.leases.values().filter(of_lane).any(|lease| {
            let rows = self.work.leased.range((lease.generation, i64::MIN)..=(lease.generation, i64::MAX));
            rows.into_iter().any(|(_, row)| row.kind() == RowKind::Parent)
        });
        let ready_labels = self
            .work
            .ready
            .iter()
            .filter(|ready| ready.0 == key.queue && ready.1 == key.lane && ready.3 == RowKind::Label)
            .count();
        !leased_parent && i64::try_from(ready_labels).is_ok_and(|ready| ready < limits::LANE_READY_MAX)
    }
}
