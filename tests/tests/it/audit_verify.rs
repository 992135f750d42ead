//! `reshelf audit verify`, as an auditor runs it, against copies of a database in which somebody did something.

use std::path::Path;

use cluster::Database;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};
use tests::{
    cli::{Ran, Shell},
    data::Shelf,
    topology::{DevOptions, START_LIMIT, Topology},
};

/// What somebody with the whole database could do, and what the check says of it.
const MANIPULATIONS: [(&str, &[&str], &str); 6] = [
    ("an edit", &["UPDATE cqs_audit SET reason = 'another' WHERE id = 2"], "entry 2 is not what was written there"),
    ("a deletion", &["DELETE FROM cqs_audit WHERE id = 2"], "entry 2 is missing"),
    (
        "a reorder",
        &[
            "UPDATE cqs_audit SET id = 100 WHERE id = 2",
            "UPDATE cqs_audit SET id = 2 WHERE id = 3",
            "UPDATE cqs_audit SET id = 3 WHERE id = 100",
        ],
        "entry 2 is not what was written there",
    ),
    ("a truncation", &["DELETE FROM cqs_audit WHERE id >= 3"], "entry 3 is missing"),
    ("everything deleted", &["DELETE FROM cqs_audit", "DELETE FROM cqs_audit_anchor"], "entry 1 is missing"),
    (
        "a forged cut",
        &[
            "INSERT INTO cqs_audit_anchor SELECT 'cut', id, hash FROM cqs_audit WHERE id = 2",
            "DELETE FROM cqs_audit WHERE id <= 2",
        ],
        "no signed cut allows that",
    ),
];

/// The log's guards against change, which whoever administers the database can take off.
const SQLITE_GUARDS: [&str; 2] = ["DROP TRIGGER cqs_audit_no_update", "DROP TRIGGER cqs_audit_no_delete"];
const POSTGRES_GUARDS: [&str; 2] =
    ["DROP TRIGGER cqs_audit_append_only ON cqs_audit", "DROP TRIGGER cqs_audit_no_delete ON cqs_audit"];

async fn tamper(database: &Path, statements: &[&'static str]) {
    let options = SqliteConnectOptions::new().filename(database);
    let mut conn = SqliteConnection::connect_with(&options).await.expect("the copy");
    for statement in SQLITE_GUARDS.iter().chain(statements) {
        sqlx::query(*statement).execute(&mut conn).await.expect(statement);
    }
    conn.close().await.expect("written");
}

async fn tamper_postgres(database: &Database, statements: &[&'static str]) {
    let mut conn = PgConnection::connect(&database.url()).await.expect("the copy");
    for statement in POSTGRES_GUARDS.iter().chain(statements) {
        sqlx::query(*statement).execute(&mut conn).await.expect(statement);
    }
    conn.close().await.expect("written");
}

async fn verify_here(shell: &Shell, data: &str) -> Ran {
    shell.run(&["audit", "verify", "--data-dir", data, "-o", "json"]).await
}

/// An operator whose four refreshes stand in the audit log of a running product.
async fn four_refreshes(topology: &Topology) -> Shell {
    Shelf::write(&topology.doors, app::demo::TENANT, &[("alpha", 2)]).await;
    let shell = Shell::new(&topology.operator(&[app::demo::TENANT]), topology.folder());
    for id in ["a", "b", "c", "d"] {
        let refresh = ["trigger", "model-refresh", "--store", "store-1", "--model", "alpha", "--reason", "a test"];
        // Over, so that nothing more is written about them while the product ends.
        shell.run(&[&refresh[..], &["--tracking-id", id, "--wait"]].concat()).await.ended(0);
    }
    shell
}

/// Checks the log in that database against these checkpoints.
async fn verify(shell: &Shell, database: &str, (checkpoints, key): (&str, &str)) -> Ran {
    let line =
        ["audit", "verify", "--database", database, "--checkpoints", checkpoints, "--public-key", key, "-o", "json"];
    shell.run(&line).await
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_what_was_done_to_a_copy_of_the_audit_log() {
    let mut topology = Topology::dev(DevOptions { demo: false, ..DevOptions::default() }).await;
    let shell = four_refreshes(&topology).await;
    let data = topology.data.path().display().to_string();
    // While it runs: whole, though not all of it is signed yet.
    let running = verify_here(&shell, &data).await.ended(0).json();
    assert_eq!((&running["whole"], &running["broken"]), (&Value::Bool(true), &Value::Null), "{running}");
    assert!(running["entries"].as_i64() >= Some(4), "{running}");

    assert_eq!(topology.programs().first_mut().expect("dev").stop(START_LIMIT).await, Some(0));
    let stopped = verify_here(&shell, &data).await.ended(0).json();
    assert_eq!(stopped["signed_to"], stopped["last_entry"], "an orderly end signs all there is: {stopped}");

    let key = topology.data.audit_key().expect("the key");
    let checkpoints = topology.data.audit_checkpoints().display().to_string();
    let copy = topology.folder().join("copy.db");
    let database = format!("sqlite://{}", copy.display());
    let signed = (checkpoints.as_str(), key.public().as_str());
    for (name, statements, found) in MANIPULATIONS {
        std::fs::copy(topology.data.database(), &copy).expect("a copy");
        verify(&shell, &database, signed).await.ended(0);
        tamper(&copy, statements).await;
        let ran = verify(&shell, &database, signed).await.ended(1);
        assert!(ran.json()["whole"] == false && ran.err.contains(found), "{name}: {ran:?}");
    }

    // Signed by somebody else; a line of the file changed.
    std::fs::copy(topology.data.database(), &copy).expect("a copy");
    let other = topology.data.operator_issuer().expect("another key");
    let ran = verify(&shell, &database, (&checkpoints, other.public().as_str())).await.ended(1);
    assert!(ran.err.contains("line 1: is not signed by the platform's key"), "{ran:?}");
    let text = std::fs::read_to_string(&checkpoints).expect("checkpoints");
    std::fs::write(&checkpoints, text.replacen("\"id\":", "\"id\":1", 1)).expect("written");
    let ran = verify(&shell, &database, signed).await.ended(1);
    assert!(ran.err.contains("line 1: "), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_what_was_done_to_an_audit_log_in_postgres() {
    let postgres = Database::new().expect("a database");
    let options = DevOptions { demo: false, database: Some(postgres.url()), ..DevOptions::default() };
    let mut topology = Topology::dev(options).await;
    let shell = four_refreshes(&topology).await;
    let key = topology.data.audit_key().expect("the key");
    let checkpoints = topology.data.audit_checkpoints().display().to_string();
    let signed = (checkpoints.as_str(), key.public().as_str());
    let running = verify(&shell, &postgres.url(), signed).await.ended(0).json();
    assert_eq!((&running["whole"], &running["broken"]), (&Value::Bool(true), &Value::Null), "{running}");

    assert_eq!(topology.programs().first_mut().expect("dev").stop(START_LIMIT).await, Some(0));
    let stopped = verify(&shell, &postgres.url(), signed).await.ended(0).json();
    assert_eq!(stopped["signed_to"], stopped["last_entry"], "an orderly end signs all there is: {stopped}");
    assert!(stopped["entries"].as_i64() >= Some(4), "{stopped}");
    for (name, statements, found) in MANIPULATIONS {
        let copy = postgres.copy().expect("a copy");
        tamper_postgres(&copy, statements).await;
        let ran = verify(&shell, &copy.url(), signed).await.ended(1);
        assert!(ran.json()["whole"] == false && ran.err.contains(found), "{name}: {ran:?}");
    }
}
