//! Waiting rows.

use domain::{SplitItem, Timestamp};

use super::{MemoryUnit, ReadyKey};
use crate::{
    StoreError,
    model::{HeadKey, RecordKey, Row, RowKind, coalesce_key, record_key},
    unit::{ReadyRange, Rows},
};

impl Rows for MemoryUnit {
    async fn row_same(&mut self, queue: i64, lane: i64, items: &[&SplitItem]) -> Result<Vec<Row>, StoreError> {
        let mut ids: Vec<i64> =
            items.iter().filter_map(|item| self.work.keys.get(&(queue, lane, coalesce_key(item))).copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids.iter().filter_map(|id| self.work.waiting.get(id)).map(|(_, row)| row.clone()).collect())
    }

    async fn row_insert(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            let mut row = row.clone();
            if row.id == 0 {
                self.work.last_row += 1;
                row.id = self.work.last_row;
            }
            self.put_waiting(queue, row);
        }
        Ok(())
    }

    async fn row_update(&mut self, queue: i64, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            self.take_waiting(row.id);
            self.put_waiting(queue, row.clone());
        }
        Ok(())
    }

    async fn row_ready(&mut self, range: ReadyRange<'_>) -> Result<Vec<Row>, StoreError> {
        let ids = self.ready_keys(range.head, range.kind).take(range.limit).map(|key| key.5);
        Ok(ids.filter_map(|id| self.work.waiting.get(&id)).map(|(_, row)| row.clone()).collect())
    }

    async fn row_due(&mut self, queue: i64, now: Timestamp, limit: usize) -> Result<Vec<Row>, StoreError> {
        let mut due: Vec<Row> =
            self.delayed(queue).filter(|row| row.due_at.is_some_and(|due_at| due_at <= now)).cloned().collect();
        due.sort_by_key(|row| (row.due_at, row.id));
        due.truncate(limit);
        Ok(due)
    }

    async fn row_next_due(&mut self, queue: i64) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.delayed(queue).filter_map(|row| row.due_at).min())
    }

    async fn row_of_lane(&mut self, queue: i64, lane: i64, limit: usize) -> Result<Vec<Row>, StoreError> {
        let rows = self.work.waiting.values().filter(|(of, row)| (*of, row.lane) == (queue, lane));
        let mut rows: Vec<Row> = rows.map(|(_, row)| row.clone()).collect();
        rows.sort_by_key(|row| match row.due_at {
            None => (None, row.store.clone(), row.kind(), row.sla, row.id),
            due_at => (due_at, None, RowKind::Label, Timestamp::default(), row.id),
        });
        rows.truncate(limit);
        Ok(rows)
    }

    async fn row_remove(&mut self, _: i64, _: i64, ids: &[i64]) -> Result<(), StoreError> {
        for id in ids {
            self.take_waiting(*id);
        }
        Ok(())
    }

    async fn row_elsewhere(
        &mut self,
        queue: i64,
        lane: i64,
        records: &[RecordKey],
    ) -> Result<Vec<RecordKey>, StoreError> {
        let elsewhere: std::collections::BTreeSet<RecordKey> = self
            .work
            .waiting
            .values()
            .filter(|(of, row)| *of == queue && row.lane != lane)
            .filter_map(|(_, row)| record_key(&row.item))
            .collect();
        Ok(records.iter().filter(|record| elsewhere.contains(record)).cloned().collect())
    }
}

impl MemoryUnit {
    fn delayed(&self, queue: i64) -> impl Iterator<Item = &Row> {
        self.work.waiting.values().filter(move |(of, row)| *of == queue && row.due_at.is_some()).map(|(_, row)| row)
    }

    /// Ready rows of a head in order.
    pub(super) fn ready_keys<'a>(&'a self, head: &HeadKey, kind: RowKind) -> impl Iterator<Item = &'a ReadyKey> {
        let bound = |sla: i64, id: i64| (head.queue, head.lane, head.store.clone(), kind, Timestamp::from_ms(sla), id);
        self.work.ready.range(bound(i64::MIN, i64::MIN)..=bound(i64::MAX, i64::MAX))
    }

    fn put_waiting(&mut self, queue: i64, row: Row) {
        if row.due_at.is_none() {
            self.work.ready.insert(ready_key(queue, &row));
        }
        self.work.keys.insert((queue, row.lane, coalesce_key(&row.item)), row.id);
        self.work.waiting.insert(row.id, (queue, row));
    }

    pub(super) fn take_waiting(&mut self, id: i64) {
        if let Some((queue, row)) = self.work.waiting.remove(&id) {
            self.work.ready.remove(&ready_key(queue, &row));
            self.work.keys.remove(&(queue, row.lane, coalesce_key(&row.item)));
        }
    }
}

fn ready_key(queue: i64, row: &Row) -> ReadyKey {
    (queue, row.lane, row.store.clone(), row.kind(), row.sla, row.id)
}
