//! The database: opening it, checking it, migrating it, and the one way to run a unit of work.
//!
//! In reading order: [`DatabaseUrl`] says which engine and where; [`sqlite`] and [`postgres`] open these engines;
//! [`DbError`] is what a unit of work can fail with, [`Faults`] keeps what repeats out of the log; [`row`] reads and binds alike on both.
//!
//! Invariants
//! - A write is acknowledged only after its COMMIT was synced.
//! - A unit of work takes effect whole or not at all, and a caller that goes away never cuts one in half.
//! - Nobody serves from a database that failed its self-check.
//!
//! Deliberately not here: statements. Tables and SQL belong to the rooms that own them (`cqs`, `dtoflow`), the
//! migrations to `migrations/`.

mod error;
mod faults;
pub mod postgres;
pub mod row;
pub mod sqlite;
mod url;

pub use error::DbError;
pub use faults::Faults;
pub use url::{DatabaseUrl, DatabaseUrlError, PostgresUrl};
