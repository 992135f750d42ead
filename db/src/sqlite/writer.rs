//! The writer: one task, one connection, group commit.
//!
//! The task takes the first waiting unit of work, begins a transaction, runs the unit in a SAVEPOINT, goes on with
//! those that are waiting by then, commits once and only then replies to all of them. While a COMMIT is being synced the
//! next units gather, so the batch grows with the load and a lone unit never waits for company.
//!
//! - A unit that fails, panics or takes too long is rolled back to its savepoint; its neighbours go on.
//! - When the COMMIT fails, or SQLite rolled back by itself, no unit of the batch is acknowledged.

use std::{
    panic::AssertUnwindSafe,
    sync::Mutex,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::lock::LockFile;
use crate::{DbError, Faults};

/// Units that may wait: callers beyond them wait for a place, which is the back-pressure.
const UNITS_WAITING_MAX: usize = 1_024;
/// Units of one commit: bounds what a failing COMMIT takes along.
const UNITS_PER_COMMIT_MAX: usize = 256;
/// How long a commit goes on taking units in: about two syncs, so gathering at most doubles a unit's latency.
pub(super) const GATHER_TIME_MAX: Duration = Duration::from_millis(5);
/// Longest unit. The slowest one meant to be here (4,096 records) takes well under a second.
const UNIT_TIME_MAX: Duration = Duration::from_secs(30);

/// Faults of transactions.
static FAULTS: Faults = Faults::new();

/// A transaction with its first savepoint, in one text: each text costs two switches between threads.
const BEGIN: &str = "BEGIN IMMEDIATE; SAVEPOINT unit";

/// The queue to the writer's task.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Message>,
    ended: Mutex<Option<JoinHandle<Result<(), DbError>>>>,
}

enum Message {
    Unit(Box<dyn Unit>),
    Close,
}

impl Writer {
    /// Starts the task; it keeps `lock` until the connection is closed.
    pub(super) fn start(state: State, lock: LockFile) -> Self {
        let (queue, inbox) = mpsc::channel(UNITS_WAITING_MAX);
        let ended = tokio::spawn(serve(state, inbox, lock));
        Self { queue, ended: Mutex::new(Some(ended)) }
    }

    pub(super) async fn write<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let unit = TypedUnit { work: Some(work), end: None, reply };
        self.queue.send(Message::Unit(Box::new(unit))).await.map_err(|_| DbError::Closed)?;
        answer.await.map_err(|_| DbError::Closed)?
    }

    pub(super) async fn close(&self) -> Result<(), DbError> {
        let ended = self.ended.lock().ok().and_then(|mut ended| ended.take());
        let Some(ended) = ended else { return Ok(()) };
        // A closed queue means that the task has ended already.
        let _ = self.queue.send(Message::Close).await;
        ended.await.map_err(|_| DbError::Closed)?
    }
}

/// A unit of work, its types erased.
trait Unit: Send {
    /// Runs it once; true when it succeeded.
    fn run<'c>(&'c mut self, conn: &'c mut SqliteConnection) -> BoxFuture<'c, bool>;
    /// Notes that it failed for a reason outside its own code.
    fn fail(&mut self, error: DbError);
    /// Answers the caller: its own failure, or what became of the transaction.
    fn reply(self: Box<Self>, committed: Result<(), DbError>);
}

struct TypedUnit<F, T, E> {
    work: Option<F>,
    end: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Unit for TypedUnit<F, T, E>
where
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<DbError> + Send + 'static,
{
    fn run<'c>(&'c mut self, conn: &'c mut SqliteConnection) -> BoxFuture<'c, bool> {
        async move {
            let Some(work) = self.work.take() else { return false };
            self.end.insert(work(conn).await).is_ok()
        }
        .boxed()
    }

    fn fail(&mut self, error: DbError) {
        self.end = Some(Err(error.into()));
    }

    fn reply(self: Box<Self>, committed: Result<(), DbError>) {
        let answer = match (self.end, committed) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Ok(_)) | None, Err(error)) => Err(error.into()),
            (None, Ok(())) => Err(DbError::Closed.into()),
        };
        // The caller may be gone; the work stands all the same.
        let _ = self.reply.send(answer);
    }
}

/// The connection, how to make it again, and how long a commit takes units in.
pub(super) struct State {
    pub(super) conn: SqliteConnection,
    pub(super) reopen: SqliteConnectOptions,
    pub(super) gather: Duration,
}

async fn serve(mut state: State, mut inbox: mpsc::Receiver<Message>, lock: LockFile) -> Result<(), DbError> {
    let mut closing = false;
    while !closing {
        match inbox.recv().await {
            Some(Message::Unit(first)) => closing = state.commit_group(first, &mut inbox).await,
            Some(Message::Close) | None => closing = true,
        }
    }
    // What was queued before the close is carried out; what comes after is told so.
    inbox.close();
    while let Some(message) = inbox.recv().await {
        if let Message::Unit(first) = message {
            state.commit_group(first, &mut inbox).await;
        }
    }
    let moved = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut state.conn).await;
    let closed = state.conn.close().await;
    drop(lock);
    moved.map_err(DbError::from)?;
    closed.map_err(DbError::from)
}

impl State {
    /// Runs `first` and what waits behind it in one transaction. True when a close was met among them.
    async fn commit_group(&mut self, first: Box<dyn Unit>, inbox: &mut mpsc::Receiver<Message>) -> bool {
        if let Err(error) = self.begin().await {
            if let Some(left_out) = FAULTS.due(&error.to_string()) {
                tracing::error!(%error, left_out, "cannot begin a transaction");
            }
            first.reply(Err(error));
            return false;
        }
        let started = Instant::now();
        let mut closing = false;
        let mut group = Vec::new();
        let mut next = Some(first);
        let mut whole = Ok(());
        while let Some(mut unit) = next.take() {
            if !group.is_empty() {
                whole = self.next_savepoint().await;
            }
            if whole.is_ok() {
                whole = self.run(&mut *unit).await;
            }
            group.push(unit);
            if whole.is_err() || group.len() == UNITS_PER_COMMIT_MAX || started.elapsed() >= self.gather {
                break;
            }
            match inbox.try_recv() {
                Ok(Message::Unit(unit)) => next = Some(unit),
                Ok(Message::Close) => closing = true,
                Err(_) => {}
            }
        }
        let committed = match whole {
            Ok(()) => self.commit().await,
            Err(error) => {
                self.roll_back().await;
                Err(error)
            }
        };
        if let Err(error) = &committed
            && let Some(left_out) = FAULTS.due(&error.to_string())
        {
            tracing::error!(%error, units = group.len(), left_out, "transaction not committed");
        }
        for unit in group {
            unit.reply(committed.clone());
        }
        closing
    }

    /// Begins the transaction and the first unit's savepoint.
    async fn begin(&mut self) -> Result<(), DbError> {
        match self.statement(BEGIN).await {
            Ok(()) => Ok(()),
            Err(sqlx::Error::WorkerCrashed) => {
                self.conn = self.reopen.connect().await?;
                Ok(self.statement(BEGIN).await?)
            }
            Err(error) => {
                // A transaction left open by an earlier failure would fail every later one.
                self.roll_back().await;
                Err(error.into())
            }
        }
    }

    /// Keeps what the last unit did and begins the next one's savepoint. The last one of all is ended by the COMMIT.
    async fn next_savepoint(&mut self) -> Result<(), DbError> {
        // No such savepoint: SQLite rolled everything back by itself, and the last unit did not tell.
        self.statement("RELEASE unit; SAVEPOINT unit").await.map_err(|_| DbError::RolledBack)
    }

    /// Runs one unit in its savepoint. An error says that the whole transaction is gone.
    async fn run(&mut self, unit: &mut dyn Unit) -> Result<(), DbError> {
        let running = AssertUnwindSafe(unit.run(&mut self.conn)).catch_unwind();
        let end = tokio::time::timeout(UNIT_TIME_MAX, running).await;
        let kept = match end {
            Ok(Ok(kept)) => kept,
            Ok(Err(_)) => {
                tracing::error!("a unit of work panicked");
                unit.fail(DbError::Panicked);
                false
            }
            Err(_) => {
                tracing::error!("a unit of work took too long");
                unit.fail(DbError::TimedOut);
                false
            }
        };
        if !kept && self.statement("ROLLBACK TO unit").await.is_err() {
            // No such savepoint: SQLite rolled everything back by itself. The unit has its own error; the others' work
            // is gone too.
            return Err(DbError::RolledBack);
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), DbError> {
        match self.statement("COMMIT").await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.roll_back().await;
                match DbError::from(error) {
                    DbError::Sql(cause) => Err(DbError::NotCommitted(cause)),
                    known => Err(known),
                }
            }
        }
    }

    /// Leaves no transaction open. Fails when there is none, which is as well.
    async fn roll_back(&mut self) {
        let _ = self.statement("ROLLBACK").await;
    }

    async fn statement(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::query(sql).execute(&mut self.conn).await.map(|_| ())
    }
}
