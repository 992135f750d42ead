//! Values as arrays, which statements take apart by `unnest`.

use domain::Timestamp;

use crate::{
    columns::{alias_text, company_columns, store_text},
    model::{RecordKey, Row, RowKind},
};

/// Rows as arrays to be bound: one a column.
#[derive(Default)]
pub(super) struct RowArrays<'a> {
    pub(super) ids: Vec<i64>,
    pub(super) lanes: Vec<i64>,
    pub(super) stores: Vec<&'a str>,
    pub(super) are_parents: Vec<bool>,
    pub(super) dto_types: Vec<&'static str>,
    pub(super) urns: Vec<String>,
    pub(super) aliases: Vec<&'static str>,
    pub(super) slas: Vec<i64>,
    pub(super) tracking_ids: Vec<&'a str>,
    pub(super) attempts: Vec<i32>,
    pub(super) due_ats: Vec<Option<i64>>,
    pub(super) alones: Vec<bool>,
    pub(super) lapses: Vec<i32>,
    pub(super) cursors: Vec<&'a str>,
    pub(super) causes: Vec<&'a str>,
    pub(super) handed_over: Vec<bool>,
}

impl<'a> RowArrays<'a> {
    pub(super) fn of(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut arrays = Self::default();
        for row in rows {
            let (alone, lapses) = company_columns(row.company);
            arrays.ids.push(row.id);
            arrays.lanes.push(row.lane);
            arrays.stores.push(store_text(row.store.as_ref()));
            arrays.are_parents.push(row.kind() == RowKind::Parent);
            arrays.dto_types.push(row.item.dto_type.as_str());
            arrays.urns.push(row.item.target.urn().to_string());
            arrays.aliases.push(alias_text(row.item.alias));
            arrays.slas.push(row.sla.as_ms());
            arrays.tracking_ids.push(row.tracking_id.as_ref().map_or("", |id| id.as_str()));
            arrays.attempts.push(row.attempts);
            arrays.due_ats.push(row.due_at.map(Timestamp::as_ms));
            arrays.alones.push(alone);
            arrays.lapses.push(lapses);
            arrays.cursors.push(&row.cursor);
            arrays.causes.push(&row.cause);
            arrays.handed_over.push(row.handed_over);
        }
        arrays
    }
}

/// Records as arrays to be bound: URNs, types.
pub(super) fn record_arrays(records: &[RecordKey]) -> (Vec<String>, Vec<&'static str>) {
    records.iter().map(|record| (record.urn.to_string(), record.dto_type.as_str())).unzip()
}

/// A queue's key as its column has it; queues are few.
pub(super) fn queue_int(queue: i64) -> i32 {
    i32::try_from(queue).unwrap_or(i32::MAX)
}
