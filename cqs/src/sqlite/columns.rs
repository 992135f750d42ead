//! Rows as SQL gives them and as JSON takes them.

use std::{fmt::Display, str::FromStr};

use domain::{AliasName, DtoType, SplitItem, StoreId, Target, Timestamp, Urn};
use serde::{Serialize, Serializer};
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
}

/// The columns of a waiting or leased row in the order in which every statement selects them. By place and not by name:
/// rows are read by the million.
const ROW_COLUMNS: [&str; 15] = [
    "id",
    "lane",
    "store",
    "is_parent",
    "dto_type",
    "urn",
    "alias",
    "sla",
    "tracking_id",
    "attempts",
    "due_at",
    "alone",
    "lapses_alone",
    "cursor",
    "cause",
];

/// One row of a result with the columns [`ROW_COLUMNS`].
struct RowReader<'r>(Columns<'r>);

impl<'r> RowReader<'r> {
    fn broken(&self, at: usize) -> StoreError {
        self.0.broken(ROW_COLUMNS.get(at).copied().unwrap_or("id"))
    }

    fn get<T>(&self, at: usize) -> Result<T, StoreError>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.0.row.try_get(at).map_err(|_| self.broken(at))
    }

    fn parse<T: FromStr>(&self, at: usize) -> Result<T, StoreError> {
        self.get::<&str>(at)?.parse().map_err(|_| self.broken(at))
    }

    fn parse_if<T: FromStr>(&self, at: usize) -> Result<Option<T>, StoreError> {
        match self.get::<&str>(at)? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| self.broken(at)),
        }
    }

    fn read(&self) -> Result<Row, StoreError> {
        let urn: Urn = self.parse(5)?;
        let target = if self.get(3)? { Target::Parent(urn) } else { Target::Record(urn) };
        let company = match (self.get(11)?, self.get(12)?) {
            (true, lapses) => Company::Alone { lapses },
            (false, 0) => Company::Batch,
            (false, _) => Company::Returned,
        };
        Ok(Row {
            id: self.get(0)?,
            lane: self.get(1)?,
            store: self.parse_if(2)?,
            item: SplitItem { dto_type: self.parse(4)?, target, alias: self.parse_if(6)? },
            sla: Timestamp::from_ms(self.get(7)?),
            tracking_id: self.parse_if(8)?,
            attempts: self.get(9)?,
            due_at: self.get::<Option<i64>>(10)?.map(Timestamp::from_ms),
            company,
            cursor: self.get(13)?,
            cause: self.get(14)?,
        })
    }
}

/// Waiting or leased rows out of the rows of a result that has the columns [`ROW_COLUMNS`].
pub(super) fn read_rows(table: &'static str, rows: &[SqliteRow]) -> Result<Vec<Row>, StoreError> {
    rows.iter().map(|row| RowReader(Columns { table, row, key: "id" }).read()).collect()
}

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

/// The columns `alone` and `lapses_alone`.
pub(super) fn company_ints(company: Company) -> (i32, i32) {
    match company {
        Company::Batch => (0, 0),
        Company::Returned => (0, 1),
        Company::Alone { lapses } => (1, lapses),
    }
}

/// A row as JSON: the columns of `cqs_waiting` in their order without `queue`; a null `id` becomes the next one. The
/// statements that take it apart count on the order.
pub(super) fn row_json(row: &Row) -> impl Serialize {
    let (alone, lapses) = company_ints(row.company);
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
        alone,
        lapses,
        row.cursor.as_str(),
        row.cause.as_str(),
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
