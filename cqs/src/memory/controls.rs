//! Controls of operations, and the brake.

use domain::Timestamp;

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{Act, Control},
    unit::Controls,
};

impl Controls for MemoryUnit {
    async fn control_find(&mut self, lanes: &[i64]) -> Result<Vec<(i64, Control)>, StoreError> {
        let mut lanes = lanes.to_vec();
        lanes.sort_unstable();
        lanes.dedup();
        Ok(lanes.iter().filter_map(|lane| Some((*lane, self.work.controls.get(lane)?.clone()))).collect())
    }

    async fn control_put(&mut self, lane: i64, control: &Control) -> Result<(), StoreError> {
        if let Some((stored, _)) = self.work.lanes.get_mut(&lane) {
            if control.cancelled.is_some() && !stored.gate.cancelled {
                self.work.clearing.insert(lane);
            }
            stored.gate = control.gate();
        }
        for (_, place) in self.work.places.iter_mut().filter(|((_, of), _)| *of == lane) {
            place.closed_until = None;
        }
        self.work.controls.insert(lane, control.clone());
        Ok(())
    }

    async fn control_ending(&mut self, now: Timestamp, limit: usize) -> Result<Vec<i64>, StoreError> {
        let ending = |(lane, control): (&i64, &Control)| control.ends_at().map(|at| (at, *lane));
        let mut ending: Vec<(Timestamp, i64)> = self.work.controls.iter().filter_map(ending).collect();
        ending.retain(|(at, _)| *at <= now);
        ending.sort_unstable();
        ending.truncate(limit);
        Ok(ending.into_iter().map(|(_, lane)| lane).collect())
    }

    async fn lane_clearing(&mut self) -> Result<Option<i64>, StoreError> {
        Ok(self.work.clearing.first().copied())
    }

    async fn lane_cleared(&mut self, lane: i64) -> Result<(), StoreError> {
        self.work.clearing.remove(&lane);
        Ok(())
    }

    async fn brake_find(&mut self) -> Result<Option<Act>, StoreError> {
        Ok(self.work.brake.clone())
    }

    async fn brake_put(&mut self, brake: Option<&Act>) -> Result<(), StoreError> {
        self.work.brake = brake.cloned();
        Ok(())
    }
}
