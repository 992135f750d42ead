//! Rows as SQL gives them, and as arrays that it takes.

use std::str::FromStr;

use domain::{AliasName, DtoType, SplitItem, StoreId, Target, Timestamp, Urn};
use sqlx::{Decode, Postgres, Row as _, Type, postgres::PgRow};

use crate::{
    StoreError,
    model::{Company, Counts, LedgerKey, RecordKey, Row, RowKind},
};

/// One result row of a table, read column by column; a value that cannot be read names table, column and key.
pub(super) struct Columns<'r> {
    pub(super) table: &'static str,
    pub(super) row: &'r PgRow,
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
        T: Decode<'r, Postgres> + Type<Postgres>,
    {
        self.row.try_get(column).map_err(|_| self.broken(column))
    }

    /// The key of a queue.
    pub(super) fn key(&self, column: &'static str) -> Result<i64, StoreError> {
        self.get::<i32>(column).map(i64::from)
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
        T: Decode<'r, Postgres> + Type<Postgres>,
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
        let company = match (self.get(11)?, self.get::<i32>(12)?) {
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
pub(super) fn read_rows(table: &'static str, rows: &[PgRow]) -> Result<Vec<Row>, StoreError> {
    rows.iter().map(|row| RowReader(Columns { table, row, key: "id" }).read()).collect()
}

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
        }
        arrays
    }
}

/// The columns `alone` and `lapses_alone`.
fn company_columns(company: Company) -> (bool, i32) {
    match company {
        Company::Batch => (false, 0),
        Company::Returned => (false, 1),
        Company::Alone { lapses } => (true, lapses),
    }
}

/// Records as arrays to be bound: URNs, types.
pub(super) fn record_arrays(records: &[RecordKey]) -> (Vec<String>, Vec<&'static str>) {
    records.iter().map(|record| (record.urn.to_string(), record.dto_type.as_str())).unzip()
}

/// Records out of the rows of a result with the columns `urn` and `dto_type`.
pub(super) fn read_records(table: &'static str, rows: &[PgRow]) -> Result<Vec<RecordKey>, StoreError> {
    let record = |row| {
        let columns = Columns { table, row, key: "urn" };
        Ok(RecordKey { dto_type: columns.parse::<DtoType>("dto_type")?, urn: columns.parse("urn")? })
    };
    rows.iter().map(record).collect()
}

/// Counts with their key, out of the columns of the ledger.
pub(super) fn read_counts(row: &PgRow) -> Result<(LedgerKey, Counts), StoreError> {
    let columns = Columns { table: "cqs_ledger", row, key: "lane" };
    let kind = if columns.get("is_parent")? { RowKind::Parent } else { RowKind::Label };
    let key = LedgerKey { lane: columns.get("lane")?, queue: columns.key("queue")?, kind };
    let counts = Counts {
        enqueued: columns.get("enqueued")?,
        done: columns.get("done")?,
        unchanged: columns.get("unchanged")?,
        failed: columns.get("failed")?,
        coalesced: columns.get("coalesced")?,
        cancelled: columns.get("cancelled")?,
        waiting: columns.get("waiting")?,
        leased: columns.get("leased")?,
    };
    Ok((key, counts))
}

pub(super) fn store_text(store: Option<&StoreId>) -> &str {
    store.map_or("", StoreId::as_str)
}

pub(super) fn alias_text(alias: Option<AliasName>) -> &'static str {
    alias.map_or("", AliasName::as_str)
}

/// A queue's key as its column has it; queues are few.
pub(super) fn queue_int(queue: i64) -> i32 {
    i32::try_from(queue).unwrap_or(i32::MAX)
}

/// A count of rows as PostgreSQL takes it.
pub(super) fn limit_int(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
