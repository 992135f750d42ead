//! Rows that wait, are leased or failed, and names of records.

use std::str::FromStr;

use db::row::{ColumnValue, ResultRow};
use domain::{DtoType, SplitItem, Target, Timestamp, Urn};

use super::{Columns, parsed_if};
use crate::{
    StoreError,
    model::{Company, RecordKey, Row},
};

/// The columns of a waiting or leased row in the order in which every statement selects them. By place and not by name:
/// rows are read by the million.
const ROW_COLUMNS: [&str; 16] = [
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
    "handed_over",
];

/// One row of a result with the columns [`ROW_COLUMNS`].
struct RowReader<'r, R>(Columns<'r, R>);

impl<'r, R: ResultRow> RowReader<'r, R> {
    fn broken(&self, at: usize) -> StoreError {
        self.0.broken(ROW_COLUMNS.get(at).copied().unwrap_or("id"))
    }

    fn get<T: ColumnValue<'r>>(&self, at: usize) -> Result<T, StoreError> {
        self.0.row.value(at).map_err(|_| self.broken(at))
    }

    fn parse<T: FromStr>(&self, at: usize) -> Result<T, StoreError> {
        self.get::<&str>(at)?.parse().map_err(|_| self.broken(at))
    }

    fn parse_if<T: FromStr>(&self, at: usize) -> Result<Option<T>, StoreError> {
        parsed_if(self.get(at)?).map_err(|_| self.broken(at))
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
            handed_over: self.get(15)?,
        })
    }
}

/// Waiting or leased rows out of the rows of a result that has the columns [`ROW_COLUMNS`].
pub(crate) fn read_rows<R: ResultRow>(table: &'static str, rows: &[R]) -> Result<Vec<Row>, StoreError> {
    rows.iter().map(|row| RowReader(Columns { table, row, key: "id" }).read()).collect()
}

/// The columns `alone` and `lapses_alone`.
pub(crate) fn company_columns(company: Company) -> (bool, i32) {
    match company {
        Company::Batch => (false, 0),
        Company::Returned => (false, 1),
        Company::Alone { lapses } => (true, lapses),
    }
}

/// Records out of the rows of a result with the columns `urn` and `dto_type`.
pub(crate) fn read_records<R: ResultRow>(table: &'static str, rows: &[R]) -> Result<Vec<RecordKey>, StoreError> {
    let record = |row| {
        let columns = Columns { table, row, key: "urn" };
        Ok(RecordKey { dto_type: columns.parse::<DtoType>("dto_type")?, urn: columns.parse("urn")? })
    };
    rows.iter().map(record).collect()
}
