//! The database through its public surface.

use domain::ErrorCode;
use futures::poll;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use super::*;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("test.db")
    }

    async fn open(&self) -> SqliteDb {
        SqliteDb::open(OpenOptions::new(self.file())).await.unwrap()
    }

    /// With commits that take in all that waits, however long that takes: no test depends on the time.
    async fn open_gathering(&self) -> SqliteDb {
        open::open(OpenOptions::new(self.file()), std::time::Duration::MAX).await.unwrap()
    }

    /// A connection of a foreign tool.
    async fn raw(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.file()).create_if_missing(true).connect().await.unwrap()
    }

    async fn raw_sql(&self, sql: &'static str) {
        let mut conn = self.raw().await;
        sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    }

    async fn refusal(&self, schema: SchemaChange) -> OpenError {
        SqliteDb::open(OpenOptions { schema, ..OpenOptions::new(self.file()) }).await.expect_err("must be refused")
    }
}

async fn sql(db: &SqliteDb, text: &'static str) -> Result<(), DbError> {
    db.write(move |conn| {
        Box::pin(async move {
            sqlx::query(text).execute(conn).await?;
            Ok(())
        })
    })
    .await
}

async fn count(db: &SqliteDb) -> i64 {
    db.read(|conn| {
        Box::pin(async move { Ok::<i64, DbError>(sqlx::query_scalar("SELECT count(*) FROM x").fetch_one(conn).await?) })
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn what_is_written_is_there_after_a_restart() {
    let place = Place::new();
    let db = place.open().await;
    sql(&db, "CREATE TABLE x (a)").await.unwrap();
    sql(&db, "INSERT INTO x VALUES (1)").await.unwrap();
    db.close().await.unwrap();
    assert!(matches!(sql(&db, "INSERT INTO x VALUES (2)").await, Err(DbError::Closed)));
    let db = place.open().await;
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_failing_unit_leaves_its_neighbours_alone() {
    let place = Place::new();
    let db = place.open_gathering().await;
    sql(&db, "CREATE TABLE x (a UNIQUE)").await.unwrap();
    let mut first = Box::pin(sql(&db, "INSERT INTO x VALUES (1)"));
    let mut doubled = Box::pin(sql(&db, "INSERT INTO x VALUES (2), (1)"));
    let mut second = Box::pin(sql(&db, "INSERT INTO x VALUES (3)"));
    // Queued before the writer's task runs, so they share a transaction.
    assert!(poll!(&mut first).is_pending() && poll!(&mut doubled).is_pending() && poll!(&mut second).is_pending());
    let (first, doubled, second) = futures::join!(first, doubled, second);
    first.unwrap();
    second.unwrap();
    assert!(matches!(doubled, Err(DbError::Constraint(_))));
    assert_eq!(count(&db).await, 2, "1 and 3; nothing of the failed unit");
}

#[tokio::test]
async fn a_failing_commit_acknowledges_nobody() {
    let place = Place::new();
    let db = place.open_gathering().await;
    sql(&db, "CREATE TABLE p (id PRIMARY KEY)").await.unwrap();
    sql(&db, "CREATE TABLE x (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)").await.unwrap();
    let mut good = Box::pin(sql(&db, "INSERT INTO x VALUES (NULL)"));
    let mut dangling = Box::pin(sql(&db, "INSERT INTO x VALUES (7)"));
    assert!(poll!(&mut good).is_pending() && poll!(&mut dangling).is_pending());
    let (good, dangling) = futures::join!(good, dangling);
    assert!(good.is_err() && dangling.is_err(), "one COMMIT for both, and it failed");
    assert_eq!(count(&db).await, 0);
    sql(&db, "INSERT INTO x VALUES (NULL)").await.unwrap();
    assert_eq!(count(&db).await, 1, "the writer lives on");
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_cut_its_unit_in_half() {
    let place = Place::new();
    let db = place.open().await;
    sql(&db, "CREATE TABLE x (a)").await.unwrap();
    {
        let mut abandoned = Box::pin(db.write(|conn| {
            Box::pin(async move {
                sqlx::query("INSERT INTO x VALUES (1)").execute(&mut *conn).await?;
                sqlx::query("INSERT INTO x VALUES (2)").execute(&mut *conn).await?;
                Ok::<(), DbError>(())
            })
        }));
        assert!(poll!(&mut abandoned).is_pending());
    }
    sql(&db, "INSERT INTO x VALUES (3)").await.unwrap();
    assert_eq!(count(&db).await, 3);
}

fn defect() -> Result<(), DbError> {
    panic!("a defect in a unit of work")
}

#[tokio::test]
async fn a_panic_fails_its_unit_only() {
    let place = Place::new();
    let db = place.open().await;
    sql(&db, "CREATE TABLE x (a)").await.unwrap();
    let end: Result<(), DbError> = db
        .write(|conn| {
            Box::pin(async move {
                sqlx::query("INSERT INTO x VALUES (1)").execute(conn).await?;
                defect()
            })
        })
        .await;
    assert!(matches!(end, Err(DbError::Panicked)));
    let end: Result<(), DbError> = db.read(|_| Box::pin(async { defect() })).await;
    assert!(matches!(end, Err(DbError::Panicked)));
    sql(&db, "INSERT INTO x VALUES (2)").await.unwrap();
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_full_disk_is_told_and_ends_when_space_is_freed() {
    const FILL: &str = "INSERT INTO x VALUES (randomblob(100000))";
    let place = Place::new();
    let db = SqliteDb::open(OpenOptions { pages_max: Some(200), ..OpenOptions::new(place.file()) }).await.unwrap();
    sql(&db, "CREATE TABLE x (a)").await.unwrap();
    let mut kept = 0;
    let full = loop {
        match sql(&db, FILL).await {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, DbError::DiskFull), "{full}");
    assert_eq!(full.code(), ErrorCode::StorageFull);
    assert_eq!(count(&db).await, kept, "reads go on, and nothing of the failed write is there");
    assert!(matches!(sql(&db, FILL).await, Err(DbError::DiskFull)), "told again, not masked");
    sql(&db, "DELETE FROM x WHERE rowid <= 2").await.unwrap();
    sql(&db, FILL).await.unwrap();
    assert_eq!(count(&db).await, kept - 1);
}

#[tokio::test]
async fn nothing_that_sqlite_rolled_back_by_itself_is_acknowledged() {
    // A single-row insert that meets a full disk makes SQLite end the whole transaction, savepoints and all.
    const FILL: &str = "INSERT INTO x VALUES (randomblob(300000))";
    let place = Place::new();
    let options = OpenOptions { pages_max: Some(100), ..OpenOptions::new(place.file()) };
    let db = open::open(options, std::time::Duration::MAX).await.unwrap();
    sql(&db, "CREATE TABLE x (a)").await.unwrap();
    let mut before = Box::pin(sql(&db, "INSERT INTO x VALUES (1)"));
    let mut filling = Box::pin(sql(&db, FILL));
    let mut after = Box::pin(sql(&db, "INSERT INTO x VALUES (2)"));
    assert!(poll!(&mut before).is_pending() && poll!(&mut filling).is_pending() && poll!(&mut after).is_pending());
    let (before, filling, after) = futures::join!(before, filling, after);
    assert!(matches!(filling, Err(DbError::DiskFull)), "its own cause is not masked");
    let lost = before.expect_err("went with the transaction");
    assert!(matches!(lost, DbError::RolledBack));
    assert_eq!(lost.code(), ErrorCode::Unavailable);
    after.expect("begins a transaction of its own");
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn readers_cannot_write_and_see_one_snapshot() {
    let place = Place::new();
    let db = place.open().await;
    sql(&db, "CREATE TABLE x (a)").await.unwrap();
    let end: Result<(), DbError> = db
        .read(|conn| {
            Box::pin(async move {
                sqlx::query("INSERT INTO x VALUES (1)").execute(conn).await?;
                Ok(())
            })
        })
        .await;
    assert!(end.is_err());
    let writing = db.clone();
    let (before, after) = db
        .read(|conn| {
            Box::pin(async move {
                let before: i64 = sqlx::query_scalar("SELECT count(*) FROM x").fetch_one(&mut *conn).await?;
                sql(&writing, "INSERT INTO x VALUES (1)").await?;
                let after: i64 = sqlx::query_scalar("SELECT count(*) FROM x").fetch_one(&mut *conn).await?;
                Ok::<_, DbError>((before, after))
            })
        })
        .await
        .unwrap();
    assert_eq!((before, after), (0, 0));
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_second_open_is_told_who_holds_it() {
    let place = Place::new();
    let db = place.open().await;
    let error = place.refusal(SchemaChange::Migrate).await;
    assert!(matches!(&error, OpenError::Locked { path } if path == db.path()), "{error}");
    std::os::unix::fs::symlink(place.file(), place.folder.path().join("other.db")).unwrap();
    let other = SqliteDb::open(OpenOptions::new(place.folder.path().join("other.db"))).await;
    assert!(matches!(other, Err(OpenError::Locked { .. })), "another spelling of the same file");
    db.close().await.unwrap();
    place.open().await;
}

#[tokio::test]
async fn other_schemas_and_other_files_are_refused_with_the_fix() {
    let place = Place::new();
    let older = place.refusal(SchemaChange::Refuse).await;
    assert!(matches!(older, OpenError::OlderSchema { found: 0, .. }), "{older}");
    place.open().await.close().await.unwrap();
    SqliteDb::open(OpenOptions { schema: SchemaChange::Refuse, ..OpenOptions::new(place.file()) })
        .await
        .unwrap()
        .close()
        .await
        .unwrap();

    place.raw_sql("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 2").await;
    assert!(matches!(place.refusal(SchemaChange::Migrate).await, OpenError::OtherSchema { version: 2 }));
    place.raw_sql("INSERT INTO _sqlx_migrations VALUES (9999, 'later', 0, 1, x'00', 0)").await;
    assert!(matches!(place.refusal(SchemaChange::Migrate).await, OpenError::NewerSchema { found: 9999, .. }));
    place.raw_sql("PRAGMA user_version = 9998").await;
    let newer = place.refusal(SchemaChange::Migrate).await;
    assert!(matches!(newer, OpenError::NewerSchema { found: 9998, .. }), "{newer}");

    let foreign = Place::new();
    foreign.raw_sql("CREATE TABLE theirs (a)").await;
    assert!(matches!(foreign.refusal(SchemaChange::Migrate).await, OpenError::NotOurs));

    let text = Place::new();
    std::fs::write(text.file(), "not a database, but long enough to be read as a header. ".repeat(100)).unwrap();
    assert!(matches!(text.refusal(SchemaChange::Migrate).await, OpenError::Corrupt(_)));

    let nowhere = SqliteDb::open(OpenOptions::new("/nowhere/at/all.db")).await;
    assert!(matches!(nowhere, Err(OpenError::Io { .. })));
}

#[tokio::test]
async fn a_disk_full_at_the_first_start_is_told() {
    let place = Place::new();
    let full = SqliteDb::open(OpenOptions { pages_max: Some(2), ..OpenOptions::new(place.file()) }).await;
    assert!(matches!(full, Err(OpenError::DiskFull)), "{full:?}");
}

#[tokio::test]
async fn a_copy_is_one_committed_state_and_the_original_stays_open() {
    let place = Place::new();
    let db = place.open().await;
    sql(&db, "CREATE TABLE x (n INTEGER NOT NULL)").await.unwrap();
    sql(&db, "INSERT INTO x VALUES (1)").await.unwrap();
    let seen = inspect(&place.file()).await.unwrap();
    assert!(seen.in_use && seen.complaints.is_empty(), "{seen:?}");
    assert_eq!(seen.schema, seen.known);

    let to = place.folder.path().join("copy.db");
    let copied = copy(&place.file(), &to).await.unwrap();
    assert_eq!((copied.schema, copied.in_use), (seen.schema, false));
    sql(&db, "INSERT INTO x VALUES (2)").await.unwrap();
    assert_eq!(count(&db).await, 2, "the original goes on");
    assert!(matches!(copy(&place.file(), &to).await, Err(OpenError::Io { .. })), "a copy never replaces a file");

    let restored = SqliteDb::open(OpenOptions::new(&to)).await.unwrap();
    assert_eq!(count(&restored).await, 1, "the copy is of its moment");
    restored.close().await.unwrap();
    db.close().await.unwrap();
    assert!(!inspect(&place.file()).await.unwrap().in_use);
}

#[tokio::test]
async fn damage_and_other_files_are_found_from_outside() {
    let place = Place::new();
    place.open().await.close().await.unwrap();
    let sound = std::fs::read(place.file()).unwrap();
    assert!(inspect(&place.file()).await.unwrap().complaints.is_empty());
    // Every page but the first, which names the file's kind.
    let mut broken = sound.clone();
    broken[4_096..].fill(0xA5);
    std::fs::write(place.file(), broken).unwrap();
    assert!(inspect(&place.file()).await.map_or(true, |seen| !seen.complaints.is_empty()));
    std::fs::write(place.file(), "a text, and none that is short: no database at all").unwrap();
    assert!(inspect(&place.file()).await.is_err());
    assert!(inspect(&place.folder.path().join("absent.db")).await.is_err());
}
