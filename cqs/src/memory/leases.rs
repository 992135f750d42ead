//! Leases and leased rows.

use domain::Timestamp;

use super::MemoryUnit;
use crate::{
    StoreError,
    model::{Lease, Row, RowKind, SplitCounts},
    unit::{Dropped, Leases, SplitKey},
};

impl Leases for MemoryUnit {
    async fn lease_take(&mut self, lease: &Lease, rows: &[Row]) -> Result<i64, StoreError> {
        self.work.last_generation += 1;
        let generation = self.work.last_generation;
        let lease = Lease { generation, ..lease.clone() };
        self.work.leases.insert(generation, lease.clone());
        self.lease_add(&lease, rows).await?;
        Ok(generation)
    }

    async fn lease_add(&mut self, lease: &Lease, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            self.take_waiting(row.id);
            // Why it waited does not go along.
            self.work.leased.insert((lease.generation, row.id), Row { cause: String::new(), ..row.clone() });
        }
        Ok(())
    }

    async fn lease_find(&mut self, generation: i64) -> Result<Option<Lease>, StoreError> {
        Ok(self.work.leases.get(&generation).cloned())
    }

    async fn lease_rows(&mut self, generation: i64) -> Result<Vec<Row>, StoreError> {
        let range = (generation, i64::MIN)..=(generation, i64::MAX);
        Ok(self.work.leased.range(range).map(|(_, row)| row.clone()).collect())
    }

    async fn lease_rows_of(&mut self, generation: i64, ids: &[i64]) -> Result<Vec<Row>, StoreError> {
        let mut rows = self.lease_rows(generation).await?;
        rows.retain(|row| ids.contains(&row.id));
        Ok(rows)
    }

    async fn lease_handed_over(&mut self, lane: i64) -> Result<i64, StoreError> {
        let handed_over = self.work.leased.values().filter(|row| row.lane == lane && row.handed_over);
        Ok(i64::try_from(handed_over.count()).unwrap_or(i64::MAX))
    }

    async fn lease_extend(&mut self, generation: i64, expires_at: Timestamp) -> Result<(), StoreError> {
        if let Some(lease) = self.work.leases.get_mut(&generation) {
            lease.expires_at = expires_at;
        }
        Ok(())
    }

    async fn lease_release(&mut self, generation: i64, ids: &[i64]) -> Result<bool, StoreError> {
        for id in ids {
            self.work.leased.remove(&(generation, *id));
        }
        let ended = self.lease_rows(generation).await?.is_empty();
        if ended {
            self.work.leases.remove(&generation);
        }
        Ok(ended)
    }

    async fn lease_lapsed(&mut self, queue: i64, now: Timestamp, limit: usize) -> Result<Vec<Lease>, StoreError> {
        let lapsed = |lease: &&Lease| lease.queue == queue && lease.expires_at <= now;
        let mut lapsed: Vec<Lease> = self.work.leases.values().filter(lapsed).cloned().collect();
        lapsed.sort_by_key(|lease| (lease.expires_at, lease.generation));
        lapsed.truncate(limit);
        Ok(lapsed)
    }

    async fn lease_drop(&mut self, generation: i64, ids: &[i64]) -> Result<Dropped, StoreError> {
        let mut dropped = Dropped::default();
        for id in ids {
            let Some(row) = self.work.leased.remove(&(generation, *id)) else { continue };
            dropped.handed_over += i64::from(row.handed_over);
            match row.kind() {
                RowKind::Label => dropped.labels += 1,
                RowKind::Parent => dropped.parents.push(*id),
            }
        }
        Ok(dropped)
    }

    async fn lease_generation_raise(&mut self, floor: i64) -> Result<(), StoreError> {
        self.work.last_generation = self.work.last_generation.max(floor);
        Ok(())
    }

    async fn lease_next_lapse(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        let of_queue = self.work.leases.values().filter(|lease| lease.queue == queue);
        Ok(of_queue.map(|lease| lease.expires_at).min())
    }

    async fn lapse_put(&mut self, lease: &Lease, ids: &[i64], now: Timestamp) -> Result<(), StoreError> {
        self.work.lapses.insert(lease.generation, (lease.lane, ids.to_vec(), now));
        Ok(())
    }

    async fn lapse_take(&mut self, generation: i64) -> Result<Option<(i64, Vec<i64>)>, StoreError> {
        Ok(self.work.lapses.remove(&generation).map(|(lane, ids, _)| (lane, ids)))
    }

    async fn lapse_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        let old = self.work.lapses.iter().filter(|(_, (_, _, at))| *at < before);
        for generation in old.map(|(generation, _)| *generation).take(limit).collect::<Vec<_>>() {
            self.work.lapses.remove(&generation);
        }
        Ok(())
    }

    async fn lapse_pardon(&mut self, lane: i64, ids: &[i64]) -> Result<(), StoreError> {
        let waiting = self.work.waiting.values_mut().map(|(_, row)| row);
        for row in waiting.chain(self.work.leased.values_mut()) {
            if row.lane == lane && ids.contains(&row.id) {
                row.company = row.company.pardoned();
            }
        }
        Ok(())
    }

    async fn split_find(&mut self, key: SplitKey) -> Result<Option<SplitCounts>, StoreError> {
        Ok(self.work.splits.get(&key).map(|(counts, _)| *counts))
    }

    async fn split_put(&mut self, key: SplitKey, counts: SplitCounts, now: Timestamp) -> Result<(), StoreError> {
        self.work.splits.insert(key, (counts, now));
        Ok(())
    }

    async fn split_prune(&mut self, before: Timestamp, limit: usize) -> Result<(), StoreError> {
        let old: Vec<SplitKey> =
            self.work.splits.iter().filter(|(_, (_, at))| *at < before).map(|(key, _)| *key).take(limit).collect();
        for key in old {
            self.work.splits.remove(&key);
        }
        Ok(())
    }
}
