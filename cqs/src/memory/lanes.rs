//! Lanes and their heads.
//!
//! Differs by necessity: heads and places are derived from the ready rows and the leases whenever they are asked for;
//! of the changes told only the keys are looked at.

use std::collections::BTreeSet;

use domain::{LaneKind, StoreId, TenantId, Timestamp, limits};

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{Gate, Head, HeadChange, HeadKey, Lane, NewLane, PlaceReport, RowKind},
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
        let NewLane { tenant, kind, tracking_id } = lane;
        let lane = Lane { id, tenant, kind, tracking_id, gate: Gate::default() };
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

    async fn head_change(
        &mut self,
        changes: &[(HeadKey, LaneKind, HeadChange)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for (key, ..) in changes {
            let waits = self.work.waiting.values().any(|(queue, row)| (*queue, row.lane) == (key.queue, key.lane));
            let place = self.work.places.entry((key.queue, key.lane)).or_default();
            place.waiting_since = if waits { place.waiting_since.or(Some(now)) } else { None };
        }
        Ok(())
    }

    async fn head_hold(&mut self, _: i64, _: &StoreId, _: Held) -> Result<(), StoreError> {
        Ok(())
    }

    async fn head_first(&mut self, queue: i64, kind: LaneKind) -> Result<Option<Head>, StoreError> {
        let heads = self.heads(queue).into_iter().filter(|(of, _)| *of == kind).map(|(_, head)| head);
        Ok(heads.min_by_key(|head| (head.claim_sla, head.lane, head.store.clone())))
    }

    async fn head_in_turn(&mut self, queue: i64, kind: LaneKind, after: i64) -> Result<Option<Head>, StoreError> {
        let heads = self.heads(queue).into_iter().filter(|(of, head)| *of == kind && head.lane > after);
        Ok(heads.map(|(_, head)| head).min_by_key(|head| (head.lane, head.claim_sla, head.store.clone())))
    }

    async fn head_held(&mut self, head: &HeadKey) -> Result<Option<Head>, StoreError> {
        Ok(self.unheld(head.clone()).map(|(_, head)| head))
    }

    async fn head_elsewhere(&mut self, queue: i64, store: &StoreId, lane: i64) -> Result<bool, StoreError> {
        let of_store = |key: &&super::ReadyKey| key.0 == queue && key.1 != lane && key.2.as_ref() == Some(store);
        let lanes: BTreeSet<i64> = self.work.ready.iter().filter(of_store).map(|key| key.1).collect();
        let key = |lane| HeadKey { queue, lane, store: Some(store.clone()) };
        Ok(lanes.into_iter().any(|lane| self.unheld(key(lane)).is_some()))
    }

    async fn place_close(&mut self, queue: i64, lane: i64, until: Timestamp) -> Result<(), StoreError> {
        self.work.places.entry((queue, lane)).or_default().closed_until = Some(until);
        Ok(())
    }

    async fn place_open(&mut self, queue: i64, now: Timestamp) -> Result<(), StoreError> {
        for (_, place) in self.work.places.iter_mut().filter(|((of, _), _)| *of == queue) {
            place.closed_until = place.closed_until.filter(|until| *until > now);
        }
        Ok(())
    }

    async fn place_next_open(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let places = self.work.places.iter().filter(|((of, _), _)| *of == queue);
        Ok(places.filter_map(|(_, place)| place.closed_until).min())
    }

    async fn place_list(&mut self, lane: i64) -> Result<Vec<PlaceReport>, StoreError> {
        let queues: Vec<i64> = self.work.queues.iter().map(|queue| queue.id).collect();
        let place = |queue: i64| {
            let place = self.work.places.get(&(queue, lane)).copied().unwrap_or_default();
            let rows = || self.work.waiting.values().filter(|(of, row)| (*of, row.lane) == (queue, lane));
            let count = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
            let leases = self.work.leases.values().filter(|lease| (lease.queue, lease.lane) == (queue, lane));
            PlaceReport {
                queue,
                ready: count(rows().filter(|(_, row)| row.due_at.is_none()).count()),
                delayed: count(rows().filter(|(_, row)| row.due_at.is_some()).count()),
                leased_labels: self.leased_labels(queue, lane),
                closed_until: place.closed_until,
                waiting_since: place.waiting_since,
                next_due: rows().filter_map(|(_, row)| row.due_at).min(),
                leased_until: leases.map(|lease| lease.expires_at).max(),
            }
        };
        let there = |place: &PlaceReport| {
            place.ready + place.delayed > 0 || place.leased_until.is_some() || place.closed_until.is_some()
        };
        Ok(queues.into_iter().map(place).filter(there).collect())
    }
}

impl MemoryUnit {
    /// Labels of a lane that are leased in a queue.
    fn leased_labels(&self, queue: i64, lane: i64) -> i64 {
        let leases = self.work.leases.values().filter(|lease| (lease.queue, lease.lane) == (queue, lane));
        let labels = leases.flat_map(|lease| {
            let rows = self.work.leased.range((lease.generation, i64::MIN)..=(lease.generation, i64::MAX));
            rows.filter(|(_, row)| row.kind() == RowKind::Label)
        });
        i64::try_from(labels.count()).unwrap_or(i64::MAX)
    }

    fn is_idle(&self, lane: i64) -> bool {
        let cancelled = self.work.lanes.get(&lane).is_some_and(|(lane, _)| lane.gate.cancelled);
        let filling = self.work.retries.values().any(|rule| rule.lane == lane && !rule.done);
        (cancelled || (!filling && !self.work.waiting.values().any(|(_, row)| row.lane == lane)))
            && !self.work.leases.values().any(|lease| lease.lane == lane)
    }

    /// Every claimable head of a queue.
    fn heads(&self, queue: i64) -> Vec<(LaneKind, Head)> {
        let mut keys: Vec<(i64, Option<StoreId>)> = Vec::new();
        for (_, lane, store, ..) in self.work.ready.iter().filter(|key| key.0 == queue) {
            if keys.last().is_none_or(|last| last.0 != *lane || last.1 != *store) {
                keys.push((*lane, store.clone()));
            }
        }
        keys.into_iter().filter_map(|(lane, store)| self.head(HeadKey { queue, lane, store })).collect()
    }

    fn head(&self, key: HeadKey) -> Option<(LaneKind, Head)> {
        let holds = |lease: &crate::model::Lease| lease.queue == key.queue && lease.store == key.store;
        if key.store.is_some() && self.work.leases.values().any(holds) {
            return None;
        }
        self.unheld(key)
    }

    /// The head as if no lease held its store.
    fn unheld(&self, key: HeadKey) -> Option<(LaneKind, Head)> {
        let lane = &self.work.lanes.get(&key.lane)?.0;
        let leased_labels = self.leased_labels(key.queue, key.lane);
        let full = lane.gate.limits.max_in_flight.is_some_and(|most| leased_labels >= most);
        let place = self.work.places.get(&(key.queue, key.lane)).copied().unwrap_or_default();
        if lane.gate.closed || full || place.closed_until.is_some() {
            return None;
        }
        let first = |kind| self.ready_keys(&key, kind).next().map(|key| key.4);
        let label_sla = first(RowKind::Label);
        let parent_sla = first(RowKind::Parent).filter(|_| self.is_open(&key));
        let claim_sla = match (label_sla, parent_sla) {
            (Some(label), Some(parent)) => label.min(parent),
            (label, parent) => label.or(parent)?,
        };
        Some((lane.kind, Head { lane: key.lane, store: key.store, claim_sla, label_sla, parent_sla, leased_labels }))
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
