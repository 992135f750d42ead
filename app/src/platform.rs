//! The platform: DTOflow and CQS over one database in one process, behind the service identity layer.
//!
//! The same routes answer over the network ([`Platform::serve`]) and within the process ([`Platform::transport`]).

use std::{fmt, path::Path, sync::Arc};

use anyhow::Context as _;
use cqs::{CqsServer, CqsServerParts, CqsStore, Maintainer, Wakeups, model::Backlog, sqlite::SqliteCqsStore};
use daemon::{
    identity::{RegistrySource, Verifier},
    serve::Health,
    shutdown::Shutdown,
    tls::ServerTls,
};
use db::sqlite::{OpenError, OpenOptions, SchemaChange, SqliteDb};
use domain::{Clock, IdSource};
use dtoflow::{DtoFlowServer, DtoFlowServerParts, sqlite::SqliteDtoStore};
use proto::Transport;
use tokio::net::TcpListener;
use tonic::service::Routes;

/// Least room on the database's disk for the platform to call itself ready: the log of a busy minute.
const SPACE_MIN_BYTES: u64 = 16 * 1024 * 1024;

/// An open database.
#[derive(Debug, Clone)]
pub struct Database(SqliteDb);

impl Database {
    /// Opens the SQLite file at `path`, making it when absent. An older schema is not changed: `reshelf migrate` does that.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let refuse = OpenOptions { schema: SchemaChange::Refuse, ..OpenOptions::new(path) };
        match SqliteDb::open(refuse).await {
            // Nothing in it yet: a new file, or one whose first start was cut short.
            Err(OpenError::OlderSchema { found: 0, .. }) => Self::migrate(path).await,
            opened => opened.map(Self),
        }
    }

    /// Opens the SQLite file at `path` and brings its schema up to date.
    pub async fn migrate(path: &Path) -> Result<Self, OpenError> {
        SqliteDb::open(OpenOptions::new(path)).await.map(Self)
    }

    /// The engine itself, for what only a benchmark asks of it.
    pub(crate) fn sqlite(&self) -> &SqliteDb {
        &self.0
    }

    /// Looks whether the disk of the database has that much room: without it the next write may fail.
    fn has_room(&self, bytes: u64) -> impl Fn() -> bool + Send + Sync + 'static {
        let path = self.0.path().to_path_buf();
        // A disk that cannot be looked at is not ready either.
        move || fs4::available_space(&path).is_ok_and(|free| free >= bytes)
    }

    /// Finishes what is queued and gives the lock back.
    pub async fn close(&self) -> Result<(), db::DbError> {
        self.0.close().await
    }
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
    wakeups: Wakeups,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Platform")
    }
}

impl Platform {
    /// Composes both servers over `database` and makes it ready to be served: the alias index follows this build's rules,
    /// and leases that an earlier process left behind are ended, since nobody else can hold one.
    pub async fn open(database: &Database, parts: PlatformParts) -> anyhow::Result<Self> {
        let wakeups = Wakeups::default();
        let cqs: Arc<dyn CqsStore> = Arc::new(SqliteCqsStore::new(database.0.clone()));
        let dtoflow = Arc::new(SqliteDtoStore::new(database.0.clone()));
        let clock = Arc::clone(&parts.clock);
        dtoflow::reindex(&*dtoflow).await.context("bringing the alias index up to date")?;
        cqs.end_all_leases(clock.now()).await.context("ending old leases")?;
        let cqs_parts =
            CqsServerParts { clock: Arc::clone(&clock), ids: Arc::clone(&parts.ids), wakeups: wakeups.clone() };
        let dtoflow_parts = DtoFlowServerParts { clock: Arc::clone(&clock), wakeups: wakeups.clone() };
        let routes = Routes::new(CqsServer::new(Arc::clone(&cqs), cqs_parts).into_service())
            .add_service(DtoFlowServer::new(dtoflow, dtoflow_parts).into_service())
            .add_service(Health::new(database.has_room(SPACE_MIN_BYTES)));
        let verifier = Verifier::new(parts.registry, Arc::clone(&clock));
        Ok(Self { routes, verifier, cqs, wakeups, clock })
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

    /// Starts the upkeep of queues and ledger, until `shutdown`; then long polls answer at once, so that nobody waits for
    /// work that is not handed out any more.
    pub fn maintain(&self, shutdown: &Shutdown) {
        let (wakeups, soft) = (self.wakeups.clone(), shutdown.soft.clone());
        shutdown.tasks.spawn(async move {
            soft.cancelled().await;
            wakeups.close();
        });
        let maintainer = Maintainer::new(Arc::clone(&self.cqs), Arc::clone(&self.clock), self.wakeups.clone());
        shutdown.tasks.spawn(maintainer.run(shutdown.clone()));
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
