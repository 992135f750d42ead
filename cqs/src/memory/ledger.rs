//! The ledger and the dead letter.

use std::collections::BTreeMap;

use domain::Timestamp;

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{Counts, DeadLetter, DeadRow, FailureGroup, LedgerKey, RecordKey, record_key},
    unit::{Leases as _, Ledger},
};

impl Ledger for MemoryUnit {
    async fn ledger_append(&mut self, deltas: &[(LedgerKey, Counts)]) -> Result<(), StoreError> {
        self.work.deltas.extend_from_slice(deltas);
        Ok(())
    }

    async fn ledger_read(&mut self, lanes: &[i64]) -> Result<Vec<(LedgerKey, Counts)>, StoreError> {
        let mut sum: BTreeMap<LedgerKey, Counts> = BTreeMap::new();
        let folded = self.work.folded.iter().map(|(key, counts)| (*key, *counts));
        for (key, counts) in folded.chain(self.work.deltas.iter().copied()) {
            if lanes.contains(&key.lane) {
                *sum.entry(key).or_default() += counts;
            }
        }
        Ok(sum.into_iter().collect())
    }

    async fn ledger_revision(&mut self, lanes: &[i64]) -> Result<Vec<(i64, i64)>, StoreError> {
        let mut sum: BTreeMap<i64, i64> = BTreeMap::new();
        let folded = self.work.folded_changes.iter().map(|(lane, changes)| (*lane, *changes));
        for (lane, changes) in folded.chain(self.work.deltas.iter().map(|(key, _)| (key.lane, 1))) {
            if lanes.contains(&lane) {
                *sum.entry(lane).or_default() += changes;
            }
        }
        Ok(sum.into_iter().collect())
    }

    async fn ledger_fold(&mut self, limit: usize) -> Result<usize, StoreError> {
        let folded = self.work.deltas.len().min(limit);
        for (key, counts) in self.work.deltas.drain(..folded) {
            *self.work.folded.entry(key).or_default() += counts;
            *self.work.folded_changes.entry(key.lane).or_default() += 1;
        }
        Ok(folded)
    }

    async fn dead_append(&mut self, queue: i64, dead: &[DeadLetter], now: Timestamp) -> Result<(), StoreError> {
        for letter in dead {
            self.work.last_dead += 1;
            if let Some(record) = record_key(&letter.row.item) {
                self.work.undelivered.insert((queue, record), Some(self.work.last_dead));
            }
            let (position, cause) = (self.work.last_dead, letter.cause.clone());
            let dead = DeadRow { position, queue, row: letter.row.clone(), cause, at: now, retried_by: None };
            self.work.dead.insert(position, dead);
        }
        Ok(())
    }

    async fn dead_groups(&mut self, lane: i64, limit: usize) -> Result<Vec<FailureGroup>, StoreError> {
        let mut groups: BTreeMap<(i64, &str), (i64, i64, i64, String)> = BTreeMap::new();
        for dead in self.work.dead.values().filter(|dead| dead.row.lane == lane) {
            let urn = dead.row.item.target.urn().to_string();
            let group = groups.entry((dead.queue, &dead.cause)).or_insert((0, 0, 0, urn.clone()));
            group.0 += 1;
            group.1 += i64::from(dead.retried_by.is_some());
            group.2 += i64::from(dead.row.handed_over);
            group.3 = group.3.clone().min(urn);
        }
        let mut groups: Vec<FailureGroup> = groups
            .into_iter()
            .filter_map(|((queue, cause), (count, retried, handed_over, sample_urn))| {
                let queue = self.work.queues.iter().find(|found| found.id == queue)?.name.clone();
                Some(FailureGroup { queue, cause: cause.to_owned(), count, retried, handed_over, sample_urn })
            })
            .collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.queue, &a.cause).cmp(&(&b.queue, &b.cause))));
        groups.truncate(limit);
        Ok(groups)
    }

    async fn undelivered_any(&mut self, queue: i64, _: i64) -> Result<bool, StoreError> {
        Ok(self.work.undelivered.keys().any(|(marked, _)| *marked == queue))
    }

    async fn undelivered_among(&mut self, queue: i64, records: &[RecordKey]) -> Result<Vec<RecordKey>, StoreError> {
        let marked = |record: &&RecordKey| self.work.undelivered.contains_key(&(queue, (*record).clone()));
        Ok(records.iter().filter(marked).cloned().collect())
    }

    async fn undelivered_put(&mut self, queue: i64, records: &[RecordKey]) -> Result<(), StoreError> {
        for record in records {
            self.work.undelivered.entry((queue, record.clone())).or_insert(None);
        }
        Ok(())
    }

    async fn undelivered_clear_leased(&mut self, queue: i64, generation: i64, ids: &[i64]) -> Result<(), StoreError> {
        let rows = self.lease_rows_of(generation, ids).await?;
        let records: Vec<RecordKey> = rows.iter().filter_map(|row| record_key(&row.item)).collect();
        self.undelivered_clear(queue, &records).await
    }

    async fn undelivered_clear(&mut self, queue: i64, records: &[RecordKey]) -> Result<(), StoreError> {
        for record in records {
            self.work.undelivered.remove(&(queue, record.clone()));
        }
        Ok(())
    }
}
