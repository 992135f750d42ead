//! The platform: DTOflow and CQS over one database in one process, behind the service identity layer.
//!
//! The same routes answer over the network ([`Platform::serve`]) and within the process ([`Platform::transport`]).

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use cqs::{
    CqsServer, CqsServerParts, CqsStore, Maintainer, Wakeups,
    model::Backlog,
    postgres::{PostgresCqsStore, Queues},
    sqlite::SqliteCqsStore,
};
use daemon::{
    identity::{RegistrySource, Verifier},
    serve::Health,
    shutdown::Shutdown,
    tls::ServerTls,
};
use db::{
    DatabaseUrl,
    postgres::{self, Bell, PostgresDb},
    sqlite::{OpenError, OpenOptions, SchemaChange, SqliteDb},
};
use domain::{Clock, IdSource, QueueName, Timestamp};
use dtoflow::{
    DtoFlowServer, DtoFlowServerParts, DtoStore, HistoryKeeper, postgres::PostgresDtoStore, sqlite::SqliteDtoStore,
};
use proto::Transport;
use tokio::net::TcpListener;
use tonic::service::Routes;

use crate::{room::Room, upkeep::Upkeep};

/// Least room on the database's disk for the platform to call itself ready: the log of a busy minute.
const SPACE_MIN_BYTES: u64 = 16 * 1024 * 1024;

/// Between two questions whether PostgreSQL answers. Who asks for readiness is told the last answer, so that asking costs the
/// database nothing, however often it is done.
const DATABASE_ASKED_EVERY: Duration = Duration::from_secs(2);

/// Between two looks whether tables have grown: in a second come some ten thousand rows at most, over which even the worst plan
/// does not walk long.
const GROWN_ASKED_EVERY: Duration = Duration::from_secs(1);

/// An open database.
#[derive(Debug, Clone)]
pub struct Database(Engine);

#[derive(Debug, Clone)]
enum Engine {
    Sqlite(SqliteDb),
    Postgres(PostgresDb),
}

impl Database {
    /// Opens the SQLite file at `path`, making it when absent. An older schema is not changed: `reshelf migrate` does that.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let refuse = OpenOptions { schema: SchemaChange::Refuse, ..OpenOptions::new(path) };
        match SqliteDb::open(refuse).await {
            // Nothing in it yet: a new file, or one whose first start was cut short.
            Err(OpenError::OlderSchema { found: 0, .. }) => Self::migrate(path).await,
            opened => opened.map(|db| Self(Engine::Sqlite(db))),
        }
    }

    /// Opens the SQLite file at `path` and brings its schema up to date.
    pub async fn migrate(path: &Path) -> Result<Self, OpenError> {
        SqliteDb::open(OpenOptions::new(path)).await.map(|db| Self(Engine::Sqlite(db)))
    }

    /// As [`Self::open`], whichever engine; a path is relative to `folder`.
    pub async fn open_url(url: &DatabaseUrl, folder: &Path) -> anyhow::Result<Self> {
        let url = match url {
            DatabaseUrl::Sqlite(path) => return Ok(Self::open(&folder.join(path)).await?),
            DatabaseUrl::Postgres(url) => url,
        };
        let refuse = postgres::OpenOptions { schema: SchemaChange::Refuse, ..postgres::OpenOptions::new(url.clone()) };
        match PostgresDb::open(refuse).await {
            Err(postgres::OpenError::OlderSchema { found: 0, .. }) => {
                Self::migrate_url(&DatabaseUrl::Postgres(url.clone())).await
            }
            opened => Ok(Self(Engine::Postgres(opened?))),
        }
    }

    /// As [`Self::migrate`], whichever engine.
    pub async fn migrate_url(url: &DatabaseUrl) -> anyhow::Result<Self> {
        match url {
            DatabaseUrl::Sqlite(path) => Ok(Self::migrate(path).await?),
            DatabaseUrl::Postgres(url) => {
                let opened = PostgresDb::open(postgres::OpenOptions::new(url.clone())).await?;
                Ok(Self(Engine::Postgres(opened)))
            }
        }
    }

    /// Opens an existing database of this build's schema only to look at it: no lease is ended, nothing is made or migrated.
    pub(crate) async fn look_at(url: &DatabaseUrl) -> anyhow::Result<Self> {
        match url {
            DatabaseUrl::Sqlite(path) => {
                anyhow::ensure!(path.exists(), "there is no {}", path.display());
                let refuse = OpenOptions { schema: SchemaChange::Refuse, ..OpenOptions::new(path) };
                Ok(Self(Engine::Sqlite(SqliteDb::open(refuse).await?)))
            }
            DatabaseUrl::Postgres(url) => {
                let refuse =
                    postgres::OpenOptions { schema: SchemaChange::Refuse, ..postgres::OpenOptions::new(url.clone()) };
                Ok(Self(Engine::Postgres(PostgresDb::open(refuse).await?)))
            }
        }
    }

    /// The queues, ledger and audit log in it.
    pub(crate) fn cqs(&self) -> Arc<dyn CqsStore> {
        match &self.0 {
            Engine::Sqlite(db) => Arc::new(SqliteCqsStore::new(db.clone())),
            Engine::Postgres(db) => Arc::new(PostgresCqsStore::new(db.clone(), Queues::default())),
        }
    }

    /// The engine itself, for what only a benchmark asks of it; none on PostgreSQL.
    pub(crate) fn sqlite(&self) -> Option<&SqliteDb> {
        match &self.0 {
            Engine::Sqlite(db) => Some(db),
            Engine::Postgres(_) => None,
        }
    }

    /// The engine itself, likewise; none on SQLite.
    pub(crate) fn postgres(&self) -> Option<&PostgresDb> {
        match &self.0 {
            Engine::Sqlite(_) => None,
            Engine::Postgres(db) => Some(db),
        }
    }

    /// Looks whether the disk of the database has that much room: without it the next write may fail.
    fn has_room(&self, bytes: u64) -> impl Fn() -> bool + Send + Sync + 'static {
        // PostgreSQL's disk is another machine's, and watched there.
        let room = self.sqlite().map(|db| Room::beside(db.path(), bytes));
        move || room.as_ref().is_none_or(Room::is_there)
    }

    /// Finishes what is queued and gives the lock, or the connections, back.
    pub async fn close(&self) -> Result<(), db::DbError> {
        match &self.0 {
            Engine::Sqlite(db) => db.close().await,
            Engine::Postgres(db) => {
                db.close().await;
                Ok(())
            }
        }
    }

    /// The stores over it, ready to be served.
    async fn stores(&self, now: Timestamp) -> anyhow::Result<Stores> {
        match &self.0 {
            Engine::Sqlite(db) => {
                let cqs = SqliteCqsStore::new(db.clone());
                // This process holds the database alone, so no lease of an earlier one is live.
                cqs.end_all_leases(now).await.context("ending old leases")?;
                let dtoflow = Arc::new(SqliteDtoStore::new(db.clone()));
                Ok(Stores { cqs: Arc::new(cqs), dtoflow, wakeups: Wakeups::default(), bell: None })
            }
            Engine::Postgres(db) => {
                let queues = Queues::default();
                let cqs = PostgresCqsStore::new(db.clone(), queues.clone());
                // Other processes may serve it: their leases go on.
                cqs.raise_generations(now).await.context("looking at the leases")?;
                let dtoflow = Arc::new(PostgresDtoStore::new(db.clone(), queues));
                let (wakeups, bell) = (Wakeups::for_many_processes(), Some(db.bell(BELL)));
                Ok(Stores { cqs: Arc::new(cqs), dtoflow, wakeups, bell })
            }
        }
    }
}

/// What a platform stands on.
struct Stores {
    cqs: Arc<dyn CqsStore>,
    dtoflow: Arc<dyn DtoStore>,
    wakeups: Wakeups,
    bell: Option<Bell>,
}

/// What a platform is composed of, beside its database.
pub struct PlatformParts {
    /// Who may call, and what.
    pub registry: RegistrySource,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Jitter and ids.
    pub ids: Arc<dyn IdSource>,
}

/// DTOflow and CQS, running.
#[derive(Clone)]
pub struct Platform {
    routes: Routes,
    verifier: Verifier,
    cqs: Arc<dyn CqsStore>,
    dtoflow: Arc<dyn DtoStore>,
    wakeups: Wakeups,
    /// Where other processes may serve the same database: what they hear of each other, and this one's name there.
    others: Option<(Bell, String)>,
    /// Where the database is a server: how to ask it, and whether it answered last.
    answers: Option<(PostgresDb, Arc<AtomicBool>)>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Platform")
    }
}

impl Platform {
    /// Composes both servers over `database` and makes it ready to be served: the alias index follows this build's rules,
    /// and where nobody else can hold a lease, those that an earlier process left behind are ended.
    pub async fn open(database: &Database, parts: PlatformParts) -> anyhow::Result<Self> {
        let clock = Arc::clone(&parts.clock);
        let Stores { cqs, dtoflow, wakeups, bell } = database.stores(clock.now()).await?;
        dtoflow::reindex(&*dtoflow).await.context("bringing the alias index up to date")?;
        let others = bell.map(|bell| (bell, format!("{:016x}", parts.ids.bits())));
        let cqs_parts =
            CqsServerParts { clock: Arc::clone(&clock), ids: Arc::clone(&parts.ids), wakeups: wakeups.clone() };
        let dtoflow_parts = DtoFlowServerParts { clock: Arc::clone(&clock), wakeups: wakeups.clone() };
        // It answered just now.
        let answered = Arc::new(AtomicBool::new(true));
        let (room, heard) = (database.has_room(SPACE_MIN_BYTES), Arc::clone(&answered));
        let answers = database.postgres().map(|db| (db.clone(), answered));
        let routes = Routes::new(CqsServer::new(Arc::clone(&cqs), cqs_parts).into_service())
            .add_service(DtoFlowServer::new(Arc::clone(&dtoflow), dtoflow_parts).into_service())
            .add_service(Health::new(move || room() && heard.load(Ordering::Relaxed)));
        let verifier = Verifier::new(parts.registry, Arc::clone(&clock));
        Ok(Self { routes, verifier, cqs, dtoflow, wakeups, others, answers, clock })
    }

    /// A way to both servers within this process. It carries no identity yet: attach a service's credentials.
    pub fn transport(&self) -> Transport {
        daemon::serve::in_process(self.routes.clone(), self.verifier.clone())
    }

    /// Both servers, to be served beside others.
    pub fn routes(&self) -> Routes {
        self.routes.clone()
    }

    /// Who verifies service tokens here; other servers of the process use the same.
    pub fn verifier(&self) -> Verifier {
        self.verifier.clone()
    }

    /// Serves gRPC on `listener` until `shutdown.soft`; over TLS only, when `tls` is given.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Option<ServerTls>,
        shutdown: &Shutdown,
    ) -> Result<(), tonic::transport::Error> {
        let served = (self.routes.clone(), self.verifier.clone());
        daemon::serve::grpc_over(listener, tls, served, shutdown.soft.clone()).await
    }

    /// Starts the upkeep of queues, ledger, histories and audit log, until `shutdown`; then long polls answer at once, so that nobody waits for
    /// work that is not handed out any more. Refused where the audit log cannot be signed as it should.
    pub fn maintain(&self, upkeep: Upkeep, shutdown: &Shutdown) -> anyhow::Result<()> {
        let Upkeep { retention, history, audit } = upkeep;
        if let Some(seal) = audit {
            seal.start(Arc::clone(&self.cqs), Arc::clone(&self.clock), (retention, shutdown.clone()))?;
        }
        let (wakeups, soft) = (self.wakeups.clone(), shutdown.soft.clone());
        shutdown.tasks.spawn(async move {
            soft.cancelled().await;
            wakeups.close();
        });
        if let Some((bell, name)) = &self.others {
            let (soft, told) = (shutdown.soft.clone(), tell(bell.clone(), name.clone(), self.wakeups.clone()));
            let heard = hear(bell.clone(), name.clone(), self.wakeups.clone());
            shutdown.tasks.spawn(async move {
                tokio::select! {
                    () = soft.cancelled() => {}
                    () = told => {}
                    () = heard => {}
                }
            });
        }
        if let Some((db, answered)) = self.answers.clone() {
            let soft = shutdown.soft.clone();
            shutdown.tasks.spawn(async move {
                tokio::select! {
                    () = soft.cancelled() => {}
                    () = ask(db.clone(), answered) => {}
                    () = look_at_grown(db) => {}
                }
            });
        }
        let maintainer = Maintainer::new(Arc::clone(&self.cqs), Arc::clone(&self.clock), self.wakeups.clone());
        shutdown.tasks.spawn(maintainer.keeping(retention).run(shutdown.clone()));
        let keeper = HistoryKeeper::new(Arc::clone(&self.dtoflow), Arc::clone(&self.clock), history);
        shutdown.tasks.spawn(keeper.run(shutdown.clone()));
        Ok(())
    }

    /// Notifications that wait or are leased, over all queues. Nothing is to be done when it is 0: outputs are written,
    /// and announced, before what caused them is completed.
    pub async fn backlog(&self) -> anyhow::Result<i64> {
        Ok(self.backlogs().await?.iter().map(|queue| queue.waiting + queue.leased).sum())
    }

    /// How much is to be done in each queue.
    pub async fn backlogs(&self) -> anyhow::Result<Vec<Backlog>> {
        self.cqs.backlogs().await.context("looking at the queues")
    }
}

/// Asks the database again and again whether it answers, and says so when that changes.
async fn ask(db: PostgresDb, answered: Arc<AtomicBool>) {
    loop {
        let answers = db.answers().await;
        if answered.swap(answers, Ordering::Relaxed) != answers {
            if answers {
                tracing::info!("the database answers again");
            } else {
                tracing::warn!("the database does not answer: this server is not ready");
            }
        }
        tokio::time::sleep(DATABASE_ASKED_EVERY).await;
    }
}

/// Has the database look at tables that have grown a lot, so that it plans for what they hold now.
async fn look_at_grown(db: PostgresDb) {
    loop {
        tokio::time::sleep(GROWN_ASKED_EVERY).await;
        match db.look_at_grown().await {
            Ok(tables) if tables.is_empty() => {}
            Ok(tables) => tracing::debug!(?tables, "looked at because they have grown"),
            // It does so by itself later.
            Err(error) => tracing::debug!(%error, "tables that have grown were not looked at"),
        }
    }
}

/// The bell that platforms on one database ring for each other.
const BELL: &str = "reshelf_queues";
/// Between two rings of one process: under load each tells of fifty moments a second, of every queue at once, instead of
/// one for every commit, and a worker elsewhere waits no longer than this for it.
const RING_PAUSE: Duration = Duration::from_millis(20);

/// Tells the other processes in which queues something became ready here.
async fn tell(bell: Bell, name: String, wakeups: Wakeups) {
    loop {
        let queues = wakeups.gathered().await;
        let texts: Vec<String> = queues.iter().map(|queue| format!("{name} {queue}")).collect();
        if let Err(error) = bell.ring(&texts).await {
            // They find it at their next poll.
            tracing::debug!(%error, "other processes were not told");
        }
        tokio::time::sleep(RING_PAUSE).await;
    }
}

/// Rings here what other processes tell.
async fn hear(bell: Bell, name: String, wakeups: Wakeups) {
    bell.listen(|text| match text.map(|text| text.split_once(' ')) {
        Some(Some((by, queue))) if by != name => {
            if let Ok(queue) = queue.parse::<QueueName>() {
                wakeups.ring(std::iter::once(&queue));
            }
        }
        Some(_) => {}
        // The connection was lost: something may have been missed.
        None => wakeups.ring_all(),
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_disk_without_room_is_not_ready() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("reshelf.db")).await.unwrap();
        assert!(database.has_room(1)());
        assert!(!database.has_room(u64::MAX)());
        database.close().await.unwrap();
    }
}
