//! The migrations of `migrations/sqlite/`, embedded. A landed file is never edited; a new one gets a line here.

use sqlx::{
    SqlSafeStr as _, SqliteConnection,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

use super::{OpenError, SchemaChange};
use crate::DbError;

/// Marks the file as ours in SQLite's header: "RESH".
const APPLICATION_ID: i64 = 0x5245_5348;

/// Version, name and text of each migration, oldest first.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "cqs", include_str!("../../../migrations/sqlite/0001_cqs.sql")),
    (2, "dtoflow", include_str!("../../../migrations/sqlite/0002_dtoflow.sql")),
    (3, "control", include_str!("../../../migrations/sqlite/0003_control.sql")),
    (4, "failures", include_str!("../../../migrations/sqlite/0004_failures.sql")),
    (6, "readers", include_str!("../../../migrations/sqlite/0006_readers.sql")),
    (7, "lapses", include_str!("../../../migrations/sqlite/0007_lapses.sql")),
    (8, "lookups", include_str!("../../../migrations/sqlite/0008_lookups.sql")),
    (9, "history", include_str!("../../../migrations/sqlite/0009_history.sql")),
    (10, "guards", include_str!("../../../migrations/sqlite/0010_guards.sql")),
    (11, "handed_over", include_str!("../../../migrations/sqlite/0011_handed_over.sql")),
    (12, "confirmed_by", include_str!("../../../migrations/sqlite/0012_confirmed_by.sql")),
    (13, "given_back", include_str!("../../../migrations/sqlite/0013_given_back.sql")),
];

/// The newest schema this build knows.
pub(super) fn latest() -> i64 {
    MIGRATIONS.iter().map(|(version, _, _)| *version).max().unwrap_or_default()
}

/// Brings the schema up to date, or says why not.
pub(super) async fn migrate(conn: &mut SqliteConnection, schema: SchemaChange) -> Result<(), OpenError> {
    let found = schema_found(conn).await?;
    if found > latest() {
        return Err(OpenError::NewerSchema { found, known: latest() });
    }
    if found < latest() && schema == SchemaChange::Refuse {
        return Err(OpenError::OlderSchema { found, known: latest() });
    }
    migrator().run(&mut *conn).await.map_err(|error| match error {
        MigrateError::VersionMissing(found) => OpenError::NewerSchema { found, known: latest() },
        MigrateError::VersionMismatch(version) => OpenError::OtherSchema { version },
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => OpenError::Database(DbError::from(sqlx::Error::Migrate(Box::new(other)))),
    })?;
    // Pragmas take no bound values; both are numbers of ours.
    let mark = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {}", latest());
    sqlx::raw_sql(sqlx::AssertSqlSafe(mark)).execute(conn).await?;
    Ok(())
}

/// The schema the file has: 0 for a new file; refuses another program's.
pub(super) async fn schema_found(conn: &mut SqliteConnection) -> Result<i64, OpenError> {
    let application: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *conn).await?;
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *conn).await?;
    let ours: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_one(&mut *conn)
        .await?;
    // Without the mark: a new file, or ours from before its first migration was finished.
    if application != APPLICATION_ID && (application != 0 || (tables > 0 && ours == 0)) {
        return Err(OpenError::NotOurs);
    }
    Ok(sqlx::query_scalar("PRAGMA user_version").fetch_one(conn).await?)
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, name, sql)| {
            Migration::new(*version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}
