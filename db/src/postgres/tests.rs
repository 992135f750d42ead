//! The database through its public surface, on a private server.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use cluster::{Cluster, Database};
use domain::ErrorCode;
use futures::poll;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::watch,
};

use super::*;

async fn open(url: &str) -> PostgresDb {
    PostgresDb::open(OpenOptions::new(url.parse().unwrap())).await.unwrap()
}

async fn sql(db: &PostgresDb, text: &'static str) -> Result<(), DbError> {
    db.write(move |conn, _| {
        Box::pin(async move {
            sqlx::query(text).execute(conn).await?;
            Ok(())
        })
    })
    .await
}

async fn insert(db: &PostgresDb, number: i64) -> Result<(), DbError> {
    db.write(move |conn, _| {
        Box::pin(async move {
            sqlx::query("INSERT INTO x VALUES ($1)").bind(number).execute(conn).await?;
            Ok(())
        })
    })
    .await
}

async fn numbers(db: &PostgresDb) -> Vec<i64> {
    db.read(|conn, _| {
        Box::pin(
            async move { Ok::<_, DbError>(sqlx::query_scalar("SELECT a FROM x ORDER BY a").fetch_all(conn).await?) },
        )
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn what_is_written_is_read_and_reads_do_not_write() {
    let place = Database::new().unwrap();
    let db = open(&place.url()).await;
    sql(&db, "CREATE TABLE x (a bigint PRIMARY KEY)").await.unwrap();
    insert(&db, 1).await.unwrap();
    assert_eq!(numbers(&db).await, [1]);
    let wrote: Result<(), DbError> = db
        .read(|conn, _| {
            Box::pin(async move {
                sqlx::query("INSERT INTO x VALUES (2)").execute(conn).await?;
                Ok(())
            })
        })
        .await;
    assert!(wrote.is_err());
    db.close().await;
    assert!(matches!(insert(&db, 3).await, Err(DbError::Closed)));
}

#[tokio::test]
async fn a_failing_or_panicking_unit_changes_nothing_and_leaves_its_connection_clean() {
    let place = Database::new().unwrap();
    let db = open(&place.url()).await;
    sql(&db, "CREATE TABLE x (a bigint PRIMARY KEY)").await.unwrap();
    let refused: Result<(), DbError> = db
        .write(|conn, _| {
            Box::pin(async move {
                sqlx::query("INSERT INTO x VALUES (1)").execute(conn).await?;
                Err(DbError::Constraint("no".to_owned()))
            })
        })
        .await;
    assert!(matches!(refused, Err(DbError::Constraint(_))));
    let panicked: Result<(), DbError> = db.write(|_, _| Box::pin(async { panic!("a fault") })).await;
    assert!(matches!(panicked, Err(DbError::Panicked)));
    insert(&db, 2).await.unwrap();
    assert_eq!(numbers(&db).await, [2]);
}

#[tokio::test]
async fn a_unit_that_meets_another_one_runs_again() {
    let place = Database::new().unwrap();
    let db = open(&place.url()).await;
    sql(&db, "CREATE TABLE x (a bigint PRIMARY KEY)").await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    db.write(move |conn, _| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            let number = if first { "INSERT INTO x VALUES (1), (1)" } else { "INSERT INTO x VALUES (1)" };
            sqlx::query(number).execute(conn).await?;
            Ok::<_, DbError>(())
        })
    })
    .await
    .unwrap();
    assert_eq!((runs.load(Ordering::SeqCst), numbers(&db).await), (2, vec![1]));
    // One that never passes is told in the end, as something that may be tried again later.
    let error = insert(&db, 1).await.unwrap_err();
    assert!(matches!(error, DbError::Conflict(_)), "{error}");
    assert_eq!(error.code(), ErrorCode::Unavailable);
}

#[tokio::test]
async fn any_number_may_migrate_at_once_and_again() {
    let place = Database::new().unwrap();
    let url = place.url();
    let opened = futures::future::join_all((0..4).map(|_| open(&url))).await;
    sql(&opened[0], "CREATE TABLE x (a bigint)").await.unwrap();
    // Beside one that serves.
    open(&url).await;
    let applied: i64 = opened[1]
        .read(|conn, _| {
            Box::pin(async move {
                Ok::<_, DbError>(sqlx::query_scalar("SELECT count(*) FROM reshelf_schema").fetch_one(conn).await?)
            })
        })
        .await
        .unwrap();
    assert!(applied >= 2);

    sql(&opened[0], "UPDATE reshelf_schema SET version = 9000 WHERE version = 2").await.unwrap();
    let refused = PostgresDb::open(OpenOptions::new(url.parse().unwrap())).await.unwrap_err();
    assert!(matches!(refused, OpenError::NewerSchema { found: 9000, .. }), "{refused}");
    sql(&opened[0], "DELETE FROM reshelf_schema WHERE version = 9000").await.unwrap();
    let refuse = OpenOptions { schema: SchemaChange::Refuse, ..OpenOptions::new(url.parse().unwrap()) };
    assert!(matches!(PostgresDb::open(refuse).await.unwrap_err(), OpenError::OlderSchema { .. }));
    sql(&opened[0], "UPDATE reshelf_schema SET digest = ''").await.unwrap();
    let refused = PostgresDb::open(OpenOptions::new(url.parse().unwrap())).await.unwrap_err();
    assert!(matches!(refused, OpenError::OtherSchema { version: 1 }), "{refused}");
}

#[tokio::test]
async fn a_database_that_may_lose_writes_is_refused() {
    let place = Database::new().unwrap();
    let db = open(&place.url()).await;
    let alter = format!("ALTER DATABASE {} SET synchronous_commit = off", place.name());
    db.write(move |conn, _| {
        let alter = sqlx::AssertSqlSafe(alter.clone());
        Box::pin(async move {
            sqlx::query(alter).execute(conn).await?;
            Ok::<_, DbError>(())
        })
    })
    .await
    .unwrap();
    let refused = PostgresDb::open(OpenOptions::new(place.url().parse().unwrap())).await.unwrap_err();
    assert!(refused.to_string().contains("synchronous_commit is off"), "{refused}");
}

#[tokio::test]
async fn what_was_acknowledged_survives_an_immediate_stop_and_units_go_on_after_it() {
    let cluster = Cluster::start().unwrap();
    let db = open(&cluster.database("x").unwrap()).await;
    sql(&db, "CREATE TABLE x (a bigint PRIMARY KEY)").await.unwrap();
    for number in 0..20 {
        insert(&db, number).await.unwrap();
    }
    cluster.stop_immediately().unwrap();
    let error = insert(&db, 20).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable, "{error}");
    cluster.start_again().unwrap();
    // On connections of which every one is dead.
    insert(&db, 21).await.unwrap();
    assert_eq!(numbers(&db).await, (0..20).chain([21]).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_bell_is_heard_by_other_processes() {
    let place = Database::new().unwrap();
    let (one, two) = (open(&place.url()).await, open(&place.url()).await);
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let listening = tokio::spawn(async move {
        two.bell("test").listen(move |text| heard.send(text.map(str::to_owned)).unwrap()).await;
    });
    let rung = loop {
        one.bell("test").ring(&["a".to_owned(), "b".to_owned()]).await.unwrap();
        // The first ones may come before anybody listens.
        if let Ok(text) = tokio::time::timeout(std::time::Duration::from_millis(50), hears.recv()).await {
            break text;
        }
    };
    assert_eq!(rung.unwrap().as_deref(), Some("a"));
    assert_eq!(hears.recv().await.unwrap().as_deref(), Some("b"));
    listening.abort();
}

/// Stands between the product and the server, and holds back every byte while the gate is shut.
struct Stall {
    folder: TempDir,
    shut: watch::Sender<bool>,
}

impl Stall {
    fn before(socket: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (shut, gate) = watch::channel(false);
        let socket = socket.to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server, gate.clone()));
                tokio::spawn(pass(from_server, to_client, gate.clone()));
            }
        });
        Self { folder, shut }
    }

    fn url(&self, database: &Database) -> String {
        format!("postgres://postgres@localhost/{}?host={}", database.name(), self.folder.path().display())
    }
}

async fn pass(
    mut from: tokio::net::unix::OwnedReadHalf,
    mut to: tokio::net::unix::OwnedWriteHalf,
    mut gate: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if gate.wait_for(|shut| !shut).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// The defect: a future cancelled while BEGIN is under way leaves its pooled connection inside a transaction, and the next
/// borrower's acknowledged write vanishes with it. Here the server stalls, the caller goes away at every point where it
/// could be waiting, and every write acknowledged afterwards must be there for everybody.
#[tokio::test]
async fn cancelled_at_every_await_with_a_stalled_server_no_acknowledged_write_is_lost() {
    let place = Database::new().unwrap();
    let direct = open(&place.url()).await;
    sql(&direct, "CREATE TABLE x (a bigint PRIMARY KEY)").await.unwrap();
    let stall = Stall::before(&place.socket());
    let db = open(&stall.url(&place)).await;
    let mut acknowledged = Vec::new();
    for waits in 0_u32..24 {
        // Runs until the caller has waited so often; where the gate shuts differs from round to round.
        let open_for = waits % 6;
        let cancelled = 1_000 + i64::from(waits);
        let mut write = Box::pin(insert(&db, cancelled));
        let mut ended = false;
        for wait in 0..=waits {
            stall.shut.send_replace(wait >= open_for);
            ended = ended || poll!(write.as_mut()).is_ready();
            if ended {
                acknowledged.push(cancelled);
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(write);
        stall.shut.send_replace(false);
        for number in 0..3 {
            let number = i64::from(waits) * 3 + number;
            insert(&db, number).await.unwrap();
            acknowledged.push(number);
        }
        // A read that is cancelled the same way leaves no snapshot open.
        stall.shut.send_replace(true);
        let mut read = Box::pin(numbers(&db));
        assert!(poll!(read.as_mut()).is_pending());
        drop(read);
        stall.shut.send_replace(false);
    }
    let there = numbers(&direct).await;
    let lost: Vec<_> = acknowledged.iter().filter(|number| !there.contains(number)).collect();
    assert!(lost.is_empty(), "acknowledged, but not there: {lost:?}");
    db.close().await;
    let inside: i64 = direct
        .read(|conn, _| {
            Box::pin(async move {
                Ok::<_, DbError>(
                    sqlx::query_scalar(
                        "SELECT count(*) FROM pg_stat_activity
                         WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
                    )
                    .fetch_one(conn)
                    .await?,
                )
            })
        })
        .await
        .unwrap();
    assert_eq!(inside, 0, "connections left inside a transaction");
}
