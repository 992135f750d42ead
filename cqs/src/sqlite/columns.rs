//! Rows as SQL gives them and as JSON takes them.

use std::str::FromStr;

use domain::{AliasName, DtoType, SplitItem, StoreId, Target, Timestamp, Urn};
use serde_json::{Value, json};
use sqlx::{Decode, Row as _, Sqlite, Type, sqlite::SqliteRow};

use crate::{
    StoreError,
    model::{Company, RecordKey, Row, RowKind},
};

/// One result row of a table, read column by column; a value that cannot be read names table, column and key.
pub(super) struct Columns<'r> {
    pub(super) table: &'static str,
    pub(super) row: &'r SqliteRow,
    /// The column that names the row in an error.
    pub(super) key: &'static str,
}

impl<'r> Columns<'r> {
    pub(super) fn broken(&self, column: &'static str) -> StoreError {
        let id = self
            .row
            .try_get::<i64, _>(self.key)
            .map(|id| id.to_string())
            .or_else(|_| self.row.try_get::<String, _>(self.key))
            .unwrap_or_default();
        StoreError::BrokenRow { table: self.table, column, id }
    }

    /// The value as the engine has it.
    pub(super) fn get<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.row.try_get(column).map_err(|_| self.broken(column))
    }

    pub(super) fn time(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        self.get(column).map(Timestamp::from_ms)
    }

    pub(super) fn time_if(&self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_ms))
    }

    /// A text parsed into its type.
    pub(super) fn parse<T: FromStr>(&self, column: &'static str) -> Result<T, StoreError> {
        self.get::<&str>(column)?.parse().map_err(|_| self.broken(column))
    }

    /// A text parsed into its type; '' is none.
    pub(super) fn parse_if<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        match self.get::<&str>(column)? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| self.broken(column)),
        }
    }

    fn company(&self) -> Result<Company, StoreError> {
        if self.get("alone")? { Ok(Company::Alone { lapses: self.get("lapses_alone")? }) } else { Ok(Company::Batch) }
    }

    fn item(&self) -> Result<SplitItem, StoreError> {
        let urn: Urn = self.parse("urn")?;
        let target = if self.get("is_parent")? { Target::Parent(urn) } else { Target::Record(urn) };
        Ok(SplitItem { dto_type: self.parse("dto_type")?, target, alias: self.parse_if("alias")? })
    }

    /// A waiting or leased row.
    pub(super) fn row(&self) -> Result<Row, StoreError> {
        Ok(Row {
            id: self.get("id")?,
            lane: self.get("lane")?,
            store: self.parse_if("store")?,
            item: self.item()?,
            sla: self.time("sla")?,
            tracking_id: self.parse_if("tracking_id")?,
            attempts: self.get("attempts")?,
            due_at: self.time_if("due_at")?,
            company: self.company()?,
            cursor: self.get("cursor")?,
        })
    }
}

/// Waiting or leased rows out of the rows of a result.
pub(super) fn read_rows(table: &'static str, rows: &[SqliteRow]) -> Result<Vec<Row>, StoreError> {
    rows.iter().map(|row| Columns { table, row, key: "id" }.row()).collect()
}

/// A row as JSON: the columns of `cqs_waiting` in their order without `queue`; a null `id` becomes the next one. The
/// statements that take it apart count on the order.
pub(super) fn row_json(row: &Row) -> Value {
    let (alone, lapses) = match row.company {
        Company::Batch => (0, 0),
        Company::Alone { lapses } => (1, lapses),
    };
    json!([
        (row.id != 0).then_some(row.id),
        row.lane,
        store_text(row.store.as_ref()),
        kind_int(row.kind()),
        row.item.dto_type.as_str(),
        row.item.target.urn().to_string(),
        alias_text(row.item.alias),
        row.sla.as_ms(),
        row.tracking_id.as_ref().map_or("", |id| id.as_str()),
        row.attempts,
        row.due_at.map(Timestamp::as_ms),
        alone,
        lapses,
        row.cursor,
    ])
}

/// Bound to `json_each`.
pub(super) fn json_text<T: serde::Serialize>(values: &T) -> Result<String, StoreError> {
    Ok(serde_json::to_string(values)?)
}

/// Rows bound to `json_each`.
pub(super) fn rows_json(rows: &[Row]) -> Result<String, StoreError> {
    json_text(&rows.iter().map(row_json).collect::<Vec<_>>())
}

/// Records bound to `json_each`: URN, then type.
pub(super) fn records_json(records: &[RecordKey]) -> Result<String, StoreError> {
    json_text(&records.iter().map(|record| (record.urn.to_string(), record.dto_type.as_str())).collect::<Vec<_>>())
}

/// Records out of the rows of a result with the columns `urn` and `dto_type`.
pub(super) fn read_records(table: &'static str, rows: &[SqliteRow]) -> Result<Vec<RecordKey>, StoreError> {
    let record = |row| {
        let columns = Columns { table, row, key: "urn" };
        Ok(RecordKey { dto_type: columns.parse::<DtoType>("dto_type")?, urn: columns.parse("urn")? })
    };
    rows.iter().map(record).collect()
}

pub(super) fn store_text(store: Option<&StoreId>) -> &str {
    store.map_or("", StoreId::as_str)
}

pub(super) fn alias_text(alias: Option<AliasName>) -> &'static str {
    alias.map_or("", AliasName::as_str)
}

pub(super) fn kind_int(kind: RowKind) -> i64 {
    i64::from(kind == RowKind::Parent)
}

/// A count of rows as SQLite takes it.
pub(super) fn limit_int(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
