//! Failures, their retries, and where a record is.

use domain::{QueueName, SplitItem, Urn};

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{DeadRange, DeadRow, FateState, RecordFate, RecordKey, RetryRule, Row, RowKind, record_key},
    unit::Failures,
};

impl Failures for MemoryUnit {
    async fn dead_last(&mut self) -> Result<i64, StoreError> {
        Ok(self.work.dead.keys().next_back().copied().unwrap_or_default())
    }

    async fn dead_open(&mut self, lane: i64, queue: i64, cause: Option<&str>) -> Result<i64, StoreError> {
        let open = self.work.dead.values().filter(|dead| {
            dead.row.lane == lane
                && dead.queue == queue
                && dead.retried_by.is_none()
                && cause.is_none_or(|cause| dead.cause == cause)
        });
        Ok(i64::try_from(open.count()).unwrap_or(i64::MAX))
    }

    async fn dead_page(&mut self, range: &DeadRange) -> Result<Vec<DeadRow>, StoreError> {
        let wanted = |dead: &&DeadRow| {
            dead.row.lane == range.lane
                && dead.queue == range.queue
                && dead.position <= range.up_to
                && range.cause.as_ref().is_none_or(|cause| dead.cause == *cause)
        };
        let later = self.work.dead.range(range.after.saturating_add(1)..).map(|(_, dead)| dead);
        Ok(later.filter(wanted).take(range.limit).cloned().collect())
    }

    async fn dead_retried(&mut self, positions: &[i64], lane: i64) -> Result<(), StoreError> {
        for position in positions {
            if let Some(dead) = self.work.dead.get_mut(position) {
                dead.retried_by = Some(lane);
            }
        }
        Ok(())
    }

    async fn dead_given_back(&mut self, lane: i64, queue: i64, items: &[&SplitItem]) -> Result<(), StoreError> {
        let of_items = |dead: &&mut DeadRow| {
            dead.retried_by == Some(lane) && dead.queue == queue && items.contains(&&dead.row.item)
        };
        for dead in self.work.dead.values_mut().filter(of_items) {
            dead.retried_by = None;
            if let Some(rule) = self.work.retries.get_mut(&(lane, queue)) {
                rule.handed_over -= i64::from(dead.row.handed_over);
                let (moved, given_back) = match dead.row.kind() {
                    RowKind::Label => (&mut rule.labels, &mut rule.labels_given_back),
                    RowKind::Parent => (&mut rule.parents, &mut rule.parents_given_back),
                };
                *moved -= 1;
                *given_back += 1;
            }
        }
        Ok(())
    }

    async fn retry_put(&mut self, rules: &[RetryRule]) -> Result<(), StoreError> {
        for rule in rules {
            self.work.retries.insert((rule.lane, rule.queue), rule.clone());
        }
        Ok(())
    }

    async fn retry_pending(&mut self, limit: usize) -> Result<Vec<RetryRule>, StoreError> {
        Ok(self.work.retries.values().filter(|rule| !rule.done).take(limit).cloned().collect())
    }

    async fn retry_of(&mut self, lanes: &[i64]) -> Result<Vec<RetryRule>, StoreError> {
        let named = |rule: &&RetryRule| lanes.contains(&rule.lane) || lanes.contains(&rule.parent_lane);
        Ok(self.work.retries.values().filter(named).cloned().collect())
    }

    async fn record_fates(&mut self, urns: &[Urn]) -> Result<Vec<RecordFate>, StoreError> {
        let record = |row: &Row| record_key(&row.item).filter(|key| urns.contains(&key.urn));
        let mut fates = Vec::new();
        for (queue, row) in self.work.waiting.values() {
            if let Some(key) = record(row) {
                let state = FateState::Waiting { due_at: row.due_at, cause: row.cause.clone() };
                fates.extend(self.fate(*queue, key, row, state));
            }
        }
        for ((generation, _), row) in &self.work.leased {
            if let (Some(key), Some(lease)) = (record(row), self.work.leases.get(generation)) {
                fates.extend(self.fate(lease.queue, key, row, FateState::Leased));
            }
        }
        for ((queue, key), position) in &self.work.undelivered {
            let dead = position.and_then(|position| self.work.dead.get(&position)).filter(|_| urns.contains(&key.urn));
            if let Some(dead) = dead.filter(|dead| dead.retried_by.is_none()) {
                let state = FateState::Dead { cause: dead.cause.clone(), at: dead.at };
                fates.extend(self.fate(*queue, key.clone(), &dead.row, state));
            }
        }
        Ok(fates)
    }
}

impl MemoryUnit {
    fn fate(&self, queue: i64, key: RecordKey, row: &Row, state: FateState) -> Option<RecordFate> {
        let queue: QueueName = self.work.queues.iter().find(|found| found.id == queue)?.name.clone();
        Some(RecordFate {
            queue,
            dto_type: key.dto_type,
            urn: key.urn,
            state,
            attempts: row.attempts,
            sla: row.sla,
            tracking_id: row.tracking_id.clone(),
        })
    }
}
