//! What the SQL twins read from their tables, and bind, in the same way: columns have the same names and meanings in both
//! engines, so each table's rows are read in one place. [`Columns`] first; then a file a table or a few.
//!
//! Invariant: a value that cannot be read names its table, its column and the row's key.
//!
//! Deliberately not here: statements, and how many rows are bound at once (`sqlite::json`, `postgres::arrays`).

mod audit;
mod control;
mod failure;
mod lane;
mod ledger;
mod operation;
mod overview;
mod queue;
mod row;

pub(crate) use audit::{anchor_columns, bind_filter, read_anchor, read_audit};
pub(crate) use control::{bind_brake, bind_control, read_brake, read_control};
pub(crate) use failure::{read_dead, read_fate, read_group, read_rule};
pub(crate) use lane::{read_lane, read_lease, read_place};
pub(crate) use ledger::{read_counts, read_pace};
pub(crate) use operation::{bind_operation, read_operation};
pub(crate) use overview::{read_failed, read_load, read_tally};
pub(crate) use queue::{bind_queue, read_queue};
pub(crate) use row::{company_columns, read_records, read_rows};

use std::str::FromStr;

use db::row::{ColumnValue, ResultRow};
use domain::{AliasName, OperatorSubject, StoreId, Timestamp};

use crate::StoreError;

/// One row of a result, read column by column.
pub(crate) struct Columns<'r, R> {
    pub(crate) table: &'static str,
    pub(crate) row: &'r R,
    /// The column that names the row in an error.
    pub(crate) key: &'static str,
}

impl<'r, R: ResultRow> Columns<'r, R> {
    pub(crate) fn broken(&self, column: &'static str) -> StoreError {
        let id = self
            .row
            .value::<i64>(self.key)
            .map(|id| id.to_string())
            .or_else(|_| self.row.value::<String>(self.key))
            .unwrap_or_default();
        StoreError::BrokenRow { table: self.table, column, id }
    }

    /// The value as the engine has it.
    pub(crate) fn get<T: ColumnValue<'r>>(&self, column: &'static str) -> Result<T, StoreError> {
        self.row.value(column).map_err(|_| self.broken(column))
    }

    /// The key of a queue: queues are few, and PostgreSQL's column is as wide as that.
    pub(crate) fn queue(&self, column: &'static str) -> Result<i64, StoreError> {
        self.get::<i32>(column).map(i64::from)
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        self.get(column).map(Timestamp::from_ms)
    }

    pub(crate) fn time_if(&self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp::from_ms))
    }

    /// A text parsed into its type.
    pub(crate) fn parse<T: FromStr>(&self, column: &'static str) -> Result<T, StoreError> {
        self.get::<&str>(column)?.parse().map_err(|_| self.broken(column))
    }

    /// A text parsed into its type; '' is none.
    pub(crate) fn parse_if<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, StoreError> {
        parsed_if(self.get(column)?).map_err(|_| self.broken(column))
    }
}

/// '' is none.
fn parsed_if<T: FromStr>(text: &str) -> Result<Option<T>, T::Err> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

pub(crate) fn store_text(store: Option<&StoreId>) -> &str {
    store.map_or("", StoreId::as_str)
}

pub(crate) fn alias_text(alias: Option<AliasName>) -> &'static str {
    alias.map_or("", AliasName::as_str)
}

fn subject_text(subject: Option<&OperatorSubject>) -> &str {
    subject.map_or("", |subject| subject.as_str())
}

fn ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_ms)
}

/// A count of rows as a statement takes it.
pub(crate) fn limit_int(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
