//! The migrations of `migrations/postgres/`, embedded. A landed file is never edited; a new one gets a line here. Their
//! names are those of `migrations/sqlite/`.
//!
//! Any number of processes may migrate at once, beside others that serve: one lock lets them in one by one, each
//! migration commits whole, and those that are there already are only compared. A migration adds; what an older build
//! reads or writes it leaves as it is, so that older servers go on during an upgrade.

use sqlx::{
    Connection as _, PgConnection, SqlSafeStr as _,
    migrate::{Migration, MigrationType},
};

use super::OpenError;
use crate::sqlite::SchemaChange;

/// The lock of migrations: "reshelf" in hexadecimal, so that it is nobody else's.
const LOCK: i64 = 0x72_6573_6865_6c66;

/// Version, name and text of each migration, oldest first.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "cqs", include_str!("../../../migrations/postgres/0001_cqs.sql")),
    (2, "dtoflow", include_str!("../../../migrations/postgres/0002_dtoflow.sql")),
    (3, "control", include_str!("../../../migrations/postgres/0003_control.sql")),
    (4, "failures", include_str!("../../../migrations/postgres/0004_failures.sql")),
    (6, "readers", include_str!("../../../migrations/postgres/0006_readers.sql")),
    (7, "lapses", include_str!("../../../migrations/postgres/0007_lapses.sql")),
    (8, "lookups", include_str!("../../../migrations/postgres/0008_lookups.sql")),
    (9, "history", include_str!("../../../migrations/postgres/0009_history.sql")),
    (10, "guards", include_str!("../../../migrations/postgres/0010_guards.sql")),
    (11, "handed_over", include_str!("../../../migrations/postgres/0011_handed_over.sql")),
    (12, "confirmed_by", include_str!("../../../migrations/postgres/0012_confirmed_by.sql")),
    (13, "given_back", include_str!("../../../migrations/postgres/0013_given_back.sql")),
];

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS reshelf_schema (
        version    bigint PRIMARY KEY,
        name       text NOT NULL,
        digest     bytea NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )";

fn latest() -> i64 {
    MIGRATIONS.iter().map(|(version, _, _)| *version).max().unwrap_or_default()
}

/// Brings the schema up to date, or says why not.
pub(super) async fn migrate(conn: &mut PgConnection, schema: SchemaChange) -> Result<(), OpenError> {
    // Without the lock first: whoever finds everything done waits for nobody, and needs no right to make tables.
    if applied(conn, schema).await?.is_empty() {
        return Ok(());
    }
    let mut transaction = conn.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await?;
    sqlx::query(TABLE).execute(&mut *transaction).await?;
    for (version, name, sql, digest) in applied(&mut transaction, schema).await? {
        sqlx::raw_sql(sql).execute(&mut *transaction).await?;
        sqlx::query("INSERT INTO reshelf_schema (version, name, digest) VALUES ($1, $2, $3)")
            .bind(version)
            .bind(name)
            .bind(digest)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

type Missing = (i64, &'static str, &'static str, Vec<u8>);

/// What is missing, after what is there was found to be ours.
async fn applied(conn: &mut PgConnection, schema: SchemaChange) -> Result<Vec<Missing>, OpenError> {
    let there: bool =
        sqlx::query_scalar("SELECT to_regclass('reshelf_schema') IS NOT NULL").fetch_one(&mut *conn).await?;
    let found: Vec<(i64, Vec<u8>)> = if there {
        sqlx::query_as("SELECT version, digest FROM reshelf_schema ORDER BY version").fetch_all(conn).await?
    } else {
        Vec::new()
    };
    let newest = found.last().map_or(0, |(version, _)| *version);
    if newest > latest() {
        return Err(OpenError::NewerSchema { found: newest, known: latest() });
    }
    let mut missing = Vec::new();
    for (version, name, sql) in MIGRATIONS {
        let digest = digest(*version, name, sql);
        match found.iter().find(|(applied, _)| applied == version) {
            Some((_, theirs)) if *theirs == digest => {}
            Some(_) => return Err(OpenError::OtherSchema { version: *version }),
            None => missing.push((*version, *name, *sql, digest)),
        }
    }
    if !missing.is_empty() && schema == SchemaChange::Refuse {
        return Err(OpenError::OlderSchema { found: newest, known: latest() });
    }
    Ok(missing)
}

fn digest(version: i64, name: &'static str, sql: &'static str) -> Vec<u8> {
    Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false).checksum.to_vec()
}
