//! A PostgreSQL database looked at through the same tables as a SQLite file: everything is copied, in one snapshot, into a
//! SQLite database in memory that has the schema of `migrations/sqlite`. So one checker serves both engines.
//!
//! Not copied: heads and places, which are counts on one engine and marks on the other.

use std::collections::BTreeMap;

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, Row as _, SqliteConnection,
    postgres::PgConnectOptions, sqlite::SqliteConnectOptions,
};

use crate::{source::workspace_root, tables::Tables};

/// Tables that mean something else on each engine.
const OWN: [&str; 2] = ["cqs_head", "cqs_place"];

/// Rows that wait or are leased, by queue, without a copy of everything: asked again and again.
pub(crate) async fn rows_by_queue(url: &str) -> BTreeMap<String, i64> {
    let mut from = url.parse::<PgConnectOptions>().expect("a URL").connect().await.expect("the database");
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT q.name, count(*) FROM (
            SELECT queue FROM cqs_waiting
            UNION ALL SELECT l.queue FROM cqs_leased r JOIN cqs_lease l ON l.generation = r.lease) item
         JOIN cqs_queue q ON q.queue = item.queue GROUP BY q.name",
    )
    .fetch_all(&mut from)
    .await
    .expect("the queues' tables");
    from.close().await.expect("the connection closes");
    rows.into_iter().collect()
}

impl Tables {
    /// A copy of the database at `url`, as it is now.
    pub async fn of_postgres(url: &str) -> Self {
        let mut from = url.parse::<PgConnectOptions>().expect("a URL").connect().await.expect("the database");
        let mut to = SqliteConnectOptions::new().in_memory(true).connect().await.expect("memory");
        migrate(&mut to).await;
        sqlx::query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut from).await.expect("a snapshot");
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'cqs\\_%' ESCAPE '\\' OR name LIKE 'dto%')",
        )
        .fetch_all(&mut to)
        .await
        .expect("the schema");
        for table in tables.iter().filter(|table| !OWN.contains(&table.as_str())) {
            copy(&mut from, &mut to, table).await;
        }
        let given: i64 = sqlx::query_scalar("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM cqs_row_id")
            .fetch_one(&mut from)
            .await
            .expect("the row ids given");
        for statement in [
            "DELETE FROM sqlite_sequence WHERE name = 'cqs_waiting' AND ?1 >= 0",
            "INSERT INTO sqlite_sequence (name, seq) VALUES ('cqs_waiting', ?1)",
        ] {
            sqlx::query(statement).bind(given).execute(&mut to).await.expect("the sequence");
        }
        from.close().await.expect("the connection closes");
        Self::in_memory(to)
    }
}

/// Gives an empty database the schema of `migrations/sqlite`.
pub(crate) async fn migrate(to: &mut SqliteConnection) {
    let folder = workspace_root().join("migrations/sqlite");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the migrations").map(|entry| entry.expect("a migration").path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a migration");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *to).await.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Copies the columns that both have.
async fn copy(from: &mut PgConnection, to: &mut SqliteConnection, table: &str) {
    let theirs: Vec<(String, String)> = sqlx::query_as(
        "SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_name = $1",
    )
    .bind(table)
    .fetch_all(&mut *from)
    .await
    .expect("the columns");
    assert!(!theirs.is_empty(), "PostgreSQL has no table {table}");
    let ours: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info(?1)")
        .bind(table)
        .fetch_all(&mut *to)
        .await
        .expect("the columns");
    let columns: Vec<&(String, String)> = theirs.iter().filter(|(name, _)| ours.contains(name)).collect();
    let missing: Vec<&String> = ours.iter().filter(|name| !theirs.iter().any(|(other, _)| other == *name)).collect();
    assert!(missing.is_empty(), "{table} lacks {missing:?} on PostgreSQL");
    let picked: Vec<String> = columns
        .iter()
        .map(|(name, kind)| match kind.as_str() {
            "boolean" => format!("\"{name}\"::int::text"),
            "bytea" => format!("encode(\"{name}\", 'hex')"),
            _ => format!("\"{name}\"::text"),
        })
        .collect();
    let put: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, (_, kind))| if kind == "bytea" { format!("unhex(?{})", at + 1) } else { format!("?{}", at + 1) })
        .collect();
    let names: Vec<String> = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let select = format!("SELECT {} FROM \"{table}\"", picked.join(", "));
    let insert = format!("INSERT INTO \"{table}\" ({}) VALUES ({})", names.join(", "), put.join(", "));
    let rows =
        sqlx::query(AssertSqlSafe(select)).fetch_all(from).await.unwrap_or_else(|error| panic!("{table}: {error}"));
    for row in rows {
        let mut query = sqlx::query(AssertSqlSafe(insert.clone()));
        for at in 0..columns.len() {
            query = query.bind(row.get::<Option<String>, _>(at));
        }
        query.execute(&mut *to).await.unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}
