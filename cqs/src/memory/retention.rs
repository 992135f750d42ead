//! What is forgotten after its time.

use domain::Timestamp;

use super::MemoryUnit;
use crate::{StoreError, unit::Retention};

impl Retention for MemoryUnit {
    async fn operation_expired(&mut self, before: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
        let taken_from = |lane: i64| self.work.retries.values().any(|rule| rule.parent_lane == lane && !rule.done);
        let mut expired: Vec<(Timestamp, i64)> = self
            .work
            .operations
            .iter()
            .filter_map(|operation| Some((operation.finished_at?, operation.lane)))
            .filter(|(finished_at, lane)| *finished_at < before && !taken_from(*lane))
            .collect();
        expired.sort_unstable();
        Ok(expired.into_iter().map(|(_, lane)| lane).take(limit).collect())
    }

    async fn operation_forget(&mut self, lane: i64, limit: usize) -> Result<bool, StoreError> {
        let failures: Vec<i64> = self
            .work
            .dead
            .values()
            .filter(|dead| dead.row.lane == lane)
            .map(|dead| dead.position)
            .take(limit)
            .collect();
        for position in &failures {
            self.work.dead.remove(position);
        }
        if failures.len() == limit {
            return Ok(false);
        }
        self.work.folded.retain(|key, _| key.lane != lane);
        self.work.deltas.retain(|(key, _)| key.lane != lane);
        self.work.retries.retain(|(of, _), _| *of != lane);
        self.work.folded_changes.remove(&lane);
        self.work.controls.remove(&lane);
        self.work.paces.retain(|pace| pace.1 != lane);
        self.work.places.retain(|(_, of), _| *of != lane);
        self.work.operations.retain(|operation| operation.lane != lane);
        self.work.lanes.remove(&lane);
        Ok(true)
    }

    async fn dead_prune(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let of_operation = |lane: i64| self.work.operations.iter().any(|operation| operation.lane == lane);
        let mut old: Vec<(Timestamp, i64)> = self
            .work
            .dead
            .values()
            .filter(|dead| dead.at < before && !of_operation(dead.row.lane))
            .map(|dead| (dead.at, dead.position))
            .collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, position) in &old {
            self.work.dead.remove(position);
        }
        Ok(old.len())
    }
}
