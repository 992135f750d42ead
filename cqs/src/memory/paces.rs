//! Samples of how far operations were.

use domain::Timestamp;

use super::MemoryUnit;
use crate::{StoreError, model::Pace, unit::Paces};

impl Paces for MemoryUnit {
    async fn pace_last(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.work.paces.last().map(|(at, ..)| *at))
    }

    async fn pace_put(&mut self, paces: &[Pace]) -> Result<(), StoreError> {
        self.work.paces.extend(paces.iter().map(|pace| (pace.at, pace.lane, pace.queue, pace.gone)));
        Ok(())
    }

    async fn pace_find(&mut self, lanes: &[i64], since: Timestamp) -> Result<Vec<Pace>, StoreError> {
        let paces = self.work.paces.iter().filter(|(at, lane, ..)| *at >= since && lanes.contains(lane));
        Ok(paces.map(|(at, lane, queue, gone)| Pace { lane: *lane, queue: *queue, at: *at, gone: *gone }).collect())
    }

    async fn pace_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        let old: Vec<_> = self.work.paces.iter().take_while(|(at, ..)| *at < before).take(limit).copied().collect();
        for pace in old {
            self.work.paces.remove(&pace);
        }
        Ok(())
    }
}
