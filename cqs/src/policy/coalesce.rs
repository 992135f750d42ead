//! Coalescing inside one lane: what merges with what, and how.

use std::collections::{HashMap, HashSet};

use domain::LaneKind;

use crate::model::{CoalesceKey, Company, Row, coalesce_key, coalesce_key_ref};

/// How a row comes to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A new change: what waits already becomes due at once, its attempts start again, an unfinished split starts over.
    Fresh,
    /// Back from a lease: a row that came to wait meanwhile is the newer change and keeps its own state.
    Back,
}

/// What to write.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Rows to insert.
    pub(crate) inserts: Vec<Row>,
    /// Stored rows to overwrite: as they were, as they become.
    pub(crate) updates: Vec<(Row, Row)>,
    /// How many of the incoming rows merged.
    pub(crate) merged: i64,
    /// Of them parents.
    pub(crate) merged_parents: i64,
}

/// Plans the arrival of `incoming` among the `waiting` rows of the same lane and queue that have one of their keys.
pub(crate) fn plan(waiting: Vec<Row>, incoming: Vec<Row>, lane: LaneKind, arrival: Arrival) -> Plan {
    enum Slot {
        Insert(usize),
        Update(usize),
    }
    let mut plan = Plan::default();
    if waiting.is_empty() {
        let mut keys = HashSet::with_capacity(incoming.len());
        if incoming.iter().all(|row| keys.insert(coalesce_key_ref(&row.item))) {
            // Nothing merges, as with nearly every split.
            plan.inserts = incoming;
            return plan;
        }
    }
    let mut slots: HashMap<CoalesceKey, Slot> = HashMap::with_capacity(waiting.len() + incoming.len());
    let mut updates: Vec<(Row, Row)> = Vec::with_capacity(waiting.len());
    for row in waiting {
        slots.insert(coalesce_key(&row.item), Slot::Update(updates.len()));
        updates.push((row.clone(), row));
    }
    for row in incoming {
        let key = coalesce_key(&row.item);
        let into = match slots.get(&key) {
            None => {
                slots.insert(key, Slot::Insert(plan.inserts.len()));
                plan.inserts.push(row);
                continue;
            }
            Some(Slot::Insert(index)) => plan.inserts.get_mut(*index),
            Some(Slot::Update(index)) => updates.get_mut(*index).map(|(_, after)| after),
        };
        if let Some(into) = into {
            merge(into, &row, lane, arrival);
            plan.merged += 1;
            plan.merged_parents += i64::from(row.item.target.is_parent());
        }
    }
    plan.updates = updates.into_iter().filter(|(before, after)| before != after).collect();
    plan
}

/// Earliest SLA wins. An ordinary row keeps the newest tracking id; in other lanes all rows have the lane's.
fn merge(into: &mut Row, from: &Row, lane: LaneKind, arrival: Arrival) {
    into.sla = into.sla.min(from.sla);
    match arrival {
        Arrival::Fresh => {
            if lane == LaneKind::Ordinary {
                into.tracking_id.clone_from(&from.tracking_id);
            }
            into.attempts = 0;
            into.due_at = None;
            into.cursor.clear();
            into.cause.clear();
            into.handed_over = false;
        }
        Arrival::Back => {
            into.due_at = match (into.due_at, from.due_at) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (None, _) | (_, None) => None,
            };
            into.company = into.company.max(from.company);
        }
    }
    debug_assert!(Company::Batch < Company::Alone { lapses: 0 }, "max keeps the more careful of two");
}
