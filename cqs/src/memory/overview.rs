//! How all of it stands.

use domain::LaneKind;

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{Load, OperationTally, Row},
    unit::Overviews,
};

impl Overviews for MemoryUnit {
    async fn load_list(&mut self, _: i64) -> Result<Vec<Load>, StoreError> {
        let mut loads = Vec::new();
        for queue in &self.work.queues {
            for kind in [LaneKind::Operation, LaneKind::Ordinary, LaneKind::Split] {
                loads.push(self.load(queue.id, kind));
            }
        }
        Ok(loads)
    }

    async fn failed_list(&mut self, limit: i64) -> Result<Vec<(i64, i64)>, StoreError> {
        let left = self.work.dead.values().filter(|dead| dead.retried_by.is_none());
        let queues: Vec<i64> = left.take(usize::try_from(limit).unwrap_or(0)).map(|dead| dead.queue).collect();
        let failed = |queue: i64| (queue, count(queues.iter().filter(|of| **of == queue)));
        Ok(self.work.queues.iter().map(|queue| failed(queue.id)).collect())
    }

    async fn operation_tally(&mut self) -> Result<OperationTally, StoreError> {
        let mut tally = OperationTally::default();
        for operation in self.work.operations.iter().filter(|operation| operation.finished_at.is_none()) {
            let Some(control) = self.work.controls.get(&operation.lane) else { continue };
            let counted = match control {
                _ if control.cancelled.is_some() => &mut tally.cancelling,
                _ if control.awaits_approval() => &mut tally.awaiting_approval,
                _ if control.held.is_some() => &mut tally.held,
                _ if control.paused.is_some() => &mut tally.paused,
                _ => &mut tally.running,
            };
            *counted += 1;
        }
        Ok(tally)
    }
}

impl MemoryUnit {
    fn load(&self, queue: i64, kind: LaneKind) -> Load {
        let gate =
            |lane: i64| self.work.lanes.get(&lane).filter(|(lane, _)| lane.kind == kind).map(|(lane, _)| lane.gate);
        let here = |cancelled: bool| {
            let here = move |(of, row): &&(i64, Row)| {
                *of == queue && gate(row.lane).is_some_and(|gate| gate.cancelled == cancelled)
            };
            self.work.waiting.values().filter(here).map(|(_, row)| row)
        };
        let waiting = || here(false);
        let leases = self.work.leases.values().filter(|lease| lease.queue == queue && gate(lease.lane).is_some());
        let leased = leases
            .flat_map(|lease| self.work.leased.range((lease.generation, i64::MIN)..=(lease.generation, i64::MAX)));
        let claimable = waiting().filter(|row| row.due_at.is_none() && gate(row.lane).is_some_and(|gate| !gate.closed));
        Load {
            queue,
            kind,
            ready: count(waiting().filter(|row| row.due_at.is_none())),
            delayed: count(waiting().filter(|row| row.due_at.is_some())),
            cancelled: count(here(true)),
            leased: count(leased),
            first_sla: claimable.map(|row| row.sla).min(),
        }
    }
}

fn count<T>(of: impl Iterator<Item = T>) -> i64 {
    i64::try_from(of.count()).unwrap_or(i64::MAX)
}
