//! What a step did to heads and ledger, collected and written once at its end.

use std::collections::{BTreeMap, BTreeSet};

use domain::{LaneKind, ServiceName, StoreId, Timestamp};

use crate::{
    StoreError,
    announce::Woken,
    model::{Counts, Exclusive, HeadChange, HeadKey, Lane, LedgerKey, Queue, Row, RowKind},
    unit::{Dropped, Unit},
};

use super::control::{finished, hold_if_over_budget};

/// Where rows move: a lane in a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The queue.
    pub(crate) queue: &'a Queue,
    /// The lane.
    pub(crate) lane: &'a Lane,
}

impl Place<'_> {
    /// The head under which a row lies here.
    pub(crate) fn head(&self, row: &Row) -> HeadKey {
        HeadKey { queue: self.queue.id, lane: self.lane.id, store: row.store.clone() }
    }
}

/// Collected changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    heads: BTreeMap<HeadKey, (LaneKind, HeadChange)>,
    ledger: BTreeMap<LedgerKey, Counts>,
    /// Lanes with a failure budget in which something failed, with the service that told.
    failing: BTreeMap<i64, Option<ServiceName>>,
    woken: Woken,
}

impl Changes {
    fn head(&mut self, place: Place<'_>, row: &Row) -> &mut HeadChange {
        &mut self.heads.entry(place.head(row)).or_insert((place.lane.kind, HeadChange::default())).1
    }

    fn waits_by(&mut self, place: Place<'_>, row: &Row, by: i64) {
        let head = self.head(place, row);
        match (row.due_at, row.kind()) {
            (Some(_), _) => head.delayed += by,
            (None, RowKind::Label) => head.ready_labels += by,
            (None, RowKind::Parent) => head.ready_parents += by,
        }
    }

    /// A row waits now.
    pub(crate) fn waits(&mut self, place: Place<'_>, row: &Row) {
        self.waits_by(place, row, 1);
        if row.due_at.is_none() {
            self.wake(place.queue);
        }
    }

    /// A row waits no more as it did.
    pub(crate) fn waited(&mut self, place: Place<'_>, row: &Row) {
        self.waits_by(place, row, -1);
    }

    /// A row that waited is leased now.
    pub(crate) fn claimed(&mut self, place: Place<'_>, row: &Row) {
        self.waited(place, row);
        match row.kind() {
            RowKind::Label => self.head(place, row).leased_labels += 1,
            RowKind::Parent => self.head(place, row).leased_parents += 1,
        }
        self.count(place, row.kind(), Counts { waiting: -1, leased: 1, ..Counts::default() });
    }

    /// A row is leased no more. What its lease kept back may be claimable now.
    pub(crate) fn released(&mut self, place: Place<'_>, row: &Row) {
        match row.kind() {
            RowKind::Label => self.head(place, row).leased_labels -= 1,
            RowKind::Parent => self.head(place, row).leased_parents -= 1,
        }
        self.frees(place, row.kind() == RowKind::Parent);
    }

    /// Rows of a lease under the head of `store` were dropped; `each` is what one of them counts.
    pub(crate) fn dropped(&mut self, (place, store): (Place<'_>, Option<StoreId>), (rows, each): (&Dropped, Counts)) {
        let key = HeadKey { queue: place.queue.id, lane: place.lane.id, store };
        let head = self.heads.entry(key).or_insert((place.lane.kind, HeadChange::default()));
        let parents = i64::try_from(rows.parents.len()).unwrap_or_default();
        head.1.leased_parents -= parents;
        head.1.leased_labels -= rows.labels;
        self.frees(place, parents > 0);
        for (kind, rows) in [(RowKind::Label, rows.labels), (RowKind::Parent, parents)] {
            self.count(place, kind, each.times(rows));
        }
        if rows.handed_over > 0 {
            self.count(place, RowKind::Label, Counts { handed_over: -rows.handed_over, ..Counts::default() });
        }
    }

    /// A row counts as handed over, or no more, if it is.
    pub(crate) fn handed_over(&mut self, place: Place<'_>, row: &Row, by: i64) {
        if row.handed_over {
            self.count(place, row.kind(), Counts { handed_over: by, ..Counts::default() });
        }
    }

    /// The end of a lease makes more claimable: parents behind a parent, the rows of a store, what an in-flight limit
    /// kept back.
    fn frees(&mut self, place: Place<'_>, parent: bool) {
        let limited = place.lane.gate.limits.max_in_flight.is_some();
        if parent || limited || place.queue.exclusive == Exclusive::ByStore {
            self.wake(place.queue);
        }
    }

    /// Counts, where the lane is an operation's; other lanes have no ledger.
    pub(crate) fn count(&mut self, place: Place<'_>, kind: RowKind, counts: Counts) {
        if counts.failed > 0 && kind == RowKind::Label && place.lane.gate.stops {
            self.failing.insert(place.lane.id, ServiceName::of_queue(&place.queue.name));
        }
        if place.lane.kind == LaneKind::Operation {
            *self.ledger.entry(LedgerKey { lane: place.lane.id, queue: place.queue.id, kind }).or_default() += counts;
        }
    }

    /// Something became claimable in the queue.
    pub(crate) fn wake(&mut self, queue: &Queue) {
        if !self.woken.0.contains(&queue.name) {
            self.woken.0.insert(queue.name.clone());
        }
    }

    /// Writes heads and ledger, and notes which operations finished or opened again.
    pub(crate) async fn write<U: Unit>(self, unit: &mut U, now: Timestamp) -> Result<Woken, StoreError> {
        let heads: Vec<_> = self.heads.into_iter().map(|(key, (class, change))| (key, class, change)).collect();
        if !heads.is_empty() {
            unit.head_change(&heads, now).await?;
        }
        let ledger: Vec<_> = self.ledger.into_iter().filter(|(_, counts)| *counts != Counts::default()).collect();
        if !ledger.is_empty() {
            unit.ledger_append(&ledger).await?;
        }
        // Only a lane whose number of open rows changed can have finished or opened again.
        let moved: BTreeSet<i64> =
            ledger.iter().filter(|(_, counts)| counts.open() != 0).map(|(key, _)| key.lane).collect();
        for lane in moved {
            let finished_at = unit.lane_is_idle(lane).await?.then_some(now);
            if finished_at.is_some() {
                finished(unit, lane, now).await?;
            }
            unit.operation_settle(lane, finished_at).await?;
        }
        for (lane, service) in self.failing {
            hold_if_over_budget(unit, (lane, service), now).await?;
        }
        Ok(self.woken)
    }
}
