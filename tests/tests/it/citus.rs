//! The optional step that distributes the tables, as far as it can be tried without Citus: what it asks for, and that it asks
//! for nothing where the extension is missing. It has never run on a cluster.

use cluster::Database;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tests::source::workspace_root;

use crate::statements::{SHARED_TABLES, migrations};

/// What says that the extension is there, and functions that note what they are asked for.
const STAND_INS: &str = "
    SET allow_system_table_mods = on;
    INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    VALUES (99999, 'citus', 10, 'public'::regnamespace, false, '0');
    CREATE TABLE asked (number serial, how text, of text);
    CREATE FUNCTION create_reference_table(table_name regclass) RETURNS void LANGUAGE sql AS
        $$ INSERT INTO asked (how, of) VALUES ('reference', table_name::text) $$;
    CREATE FUNCTION create_distributed_table(table_name regclass, distribution_column text, colocate_with text DEFAULT 'default')
        RETURNS void LANGUAGE sql AS
        $$ INSERT INTO asked (how, of) VALUES (distribution_column || ' with ' || colocate_with, table_name::text) $$;";

/// Unique indexes of distributed tables must have the tenant.
const UNIQUE_WITHOUT_TENANT: &str = "
    SELECT i.indexrelid::regclass::text FROM asked
    JOIN pg_index i ON i.indrelid = asked.of::regclass AND i.indisunique
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'tenant'
    WHERE asked.how <> 'reference' AND a.attnum <> ALL (i.indkey::smallint[])";

async fn migrated(place: &Database) -> PgConnection {
    let mut conn = PgConnection::connect(&place.url()).await.expect("it answers");
    for migration in migrations() {
        sqlx::raw_sql(AssertSqlSafe(migration)).execute(&mut conn).await.expect("a migration");
    }
    conn
}

async fn tables(conn: &mut PgConnection) -> Vec<String> {
    let tables = "SELECT relname::text FROM pg_stat_user_tables ORDER BY relname";
    sqlx::query_scalar(tables).fetch_all(conn).await.expect("its tables")
}

fn step() -> AssertSqlSafe<String> {
    let file = workspace_root().join("migrations/postgres/optional/citus.sql");
    AssertSqlSafe(std::fs::read_to_string(file).expect("the step"))
}

#[tokio::test]
async fn the_step_does_nothing_without_the_extension_and_distributes_every_table_with_it() {
    let place = Database::new().expect("PostgreSQL is installed");
    let mut conn = migrated(&place).await;
    let all = tables(&mut conn).await;
    sqlx::raw_sql(step()).execute(&mut conn).await.expect("without the extension");
    assert_eq!(tables(&mut conn).await, all);

    conn.execute(STAND_INS).await.expect("the stand-ins");
    sqlx::raw_sql(step()).execute(&mut conn).await.expect("with the extension");
    let asked: Vec<(String, String)> =
        sqlx::query_as("SELECT of, how FROM asked ORDER BY number").fetch_all(&mut conn).await.expect("what was asked");
    let mut of: Vec<&String> = asked.iter().map(|(of, _)| of).collect();
    of.sort();
    assert_eq!(of, all.iter().collect::<Vec<_>>(), "each table once");
    for (table, how) in &asked {
        let expected = match table.as_str() {
            shared if SHARED_TABLES.contains(&shared) => "reference",
            "dto" => "tenant with default",
            _ => "tenant with dto",
        };
        assert_eq!(how, expected, "{table}");
    }
    let without: Vec<String> =
        sqlx::query_scalar(UNIQUE_WITHOUT_TENANT).fetch_all(&mut conn).await.expect("the indexes");
    assert!(without.is_empty(), "{without:?}");
}
