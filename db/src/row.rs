//! Rows and statements where it does not matter which engine they are of: a room whose twins read the same columns reads
//! them in one place.

use sqlx::{
    ColumnIndex, Decode, Encode, Postgres, Row as _, Sqlite, Type,
    postgres::{PgArguments, PgRow},
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

/// What can be read from a column of either engine.
pub trait ColumnValue<'r>: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres> {}

impl<'r, T> ColumnValue<'r> for T where T: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres> {}

/// What names a column of a row: its name, or its place from 0.
pub trait ColumnRef: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> {}

impl<I> ColumnRef for I where I: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> {}

/// A row of a result.
pub trait ResultRow {
    /// What stands in that column.
    ///
    /// # Errors
    ///
    /// Where there is no such column, or its value is none of that type.
    fn value<'r, T: ColumnValue<'r>>(&'r self, column: impl ColumnRef) -> sqlx::Result<T>;
}

impl ResultRow for SqliteRow {
    fn value<'r, T: ColumnValue<'r>>(&'r self, column: impl ColumnRef) -> sqlx::Result<T> {
        self.try_get(column)
    }
}

impl ResultRow for PgRow {
    fn value<'r, T: ColumnValue<'r>>(&'r self, column: impl ColumnRef) -> sqlx::Result<T> {
        self.try_get(column)
    }
}

/// What can be bound to a statement of either engine.
pub trait BoundValue<'t>: Encode<'t, Sqlite> + Type<Sqlite> + Encode<'t, Postgres> + Type<Postgres> {}

impl<'t, T> BoundValue<'t> for T where T: Encode<'t, Sqlite> + Type<Sqlite> + Encode<'t, Postgres> + Type<Postgres> {}

/// A statement that takes values one after the other.
pub trait Binds: Sized {
    /// With the next value.
    #[must_use]
    fn with<'t>(self, value: impl BoundValue<'t>) -> Self;
}

impl Binds for Query<'_, Sqlite, SqliteArguments> {
    fn with<'t>(self, value: impl BoundValue<'t>) -> Self {
        self.bind(value)
    }
}

impl Binds for Query<'_, Postgres, PgArguments> {
    fn with<'t>(self, value: impl BoundValue<'t>) -> Self {
        self.bind(value)
    }
}
