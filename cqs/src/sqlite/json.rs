//! Values as JSON, which statements take apart by `jsonb_each`.

use std::fmt::Display;

use domain::{Timestamp, Urn};
use serde::{Serialize, Serializer};

use crate::{
    StoreError,
    columns::{alias_text, company_columns, store_text},
    model::{RecordKey, Row, RowKind},
};

/// A value written as its text, without a string of its own.
struct AsText<'a, T>(&'a T);

impl<T: Display> Serialize for AsText<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

/// URNs bound to `jsonb_each`: flat, so that each is the `value` itself.
pub(super) fn urns_json<'a>(urns: impl Iterator<Item = &'a Urn>) -> Result<String, StoreError> {
    json_text(&urns.map(AsText).collect::<Vec<_>>())
}

/// A row as JSON: the columns of `cqs_waiting` in their order without `queue`; a null `id` becomes the next one. The
/// statements that take it apart count on the order.
pub(super) fn row_json(row: &Row) -> impl Serialize {
    let (alone, lapses) = company_columns(row.company);
    (
        (row.id != 0).then_some(row.id),
        row.lane,
        store_text(row.store.as_ref()),
        kind_int(row.kind()),
        row.item.dto_type.as_str(),
        AsText(row.item.target.urn()),
        alias_text(row.item.alias),
        row.sla.as_ms(),
        row.tracking_id.as_ref().map_or("", |id| id.as_str()),
        row.attempts,
        row.due_at.map(Timestamp::as_ms),
        i64::from(alone),
        lapses,
        row.cursor.as_str(),
        row.cause.as_str(),
        i64::from(row.handed_over),
    )
}

/// Bound to `jsonb_each`.
pub(super) fn json_text<T: Serialize>(values: &T) -> Result<String, StoreError> {
    Ok(serde_json::to_string(values)?)
}

/// Rows bound to `jsonb_each`.
pub(super) fn rows_json(rows: &[Row]) -> Result<String, StoreError> {
    json_text(&rows.iter().map(row_json).collect::<Vec<_>>())
}

/// Records bound to `jsonb_each`: URN, then type.
pub(super) fn records_json(records: &[RecordKey]) -> Result<String, StoreError> {
    json_text(&records.iter().map(|record| (AsText(&record.urn), record.dto_type.as_str())).collect::<Vec<_>>())
}

pub(super) fn kind_int(kind: RowKind) -> i64 {
    i64::from(kind == RowKind::Parent)
}
