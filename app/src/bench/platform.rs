//! The process that is measured: a data directory, a database, platform and credentials, as `dev` has them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use daemon::{
    SystemClock, SystemIds,
    identity::{KeyError, ServiceCredentials},
    shutdown::Shutdown,
};
use domain::{Clock, IdSource as _, ServiceName};
use proto::{CqsClient, DtoFlowClient, Transport};
use worker::{ExporterSettings, RenderEngine, WorkerParts};

use super::Common;
use crate::{
    data_dir::DataDir,
    platform::{Database, Platform, PlatformParts},
};

/// A running platform with nothing in it.
pub(super) struct Bench {
    pub(super) dir: DataDir,
    pub(super) database: Database,
    pub(super) platform: Platform,
    pub(super) credentials: BTreeMap<ServiceName, ServiceCredentials>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shutdown: Shutdown,
    common: Common,
    temporary: bool,
}

impl Bench {
    pub(super) async fn open(common: &Common) -> anyhow::Result<Self> {
        let (path, temporary) = match &common.data_dir {
            Some(path) => (path.clone(), false),
            None => (std::env::temp_dir().join(format!("reshelf-bench-{:016x}", SystemIds.bits())), true),
        };
        let dir = DataDir::create(&path)?;
        anyhow::ensure!(!dir.database().exists(), "{} holds data already; a run needs an empty one", path.display());
        let database = match &common.database {
            None => Database::open(&dir.database()).await?,
            Some(url) => Database::open_url(url, &std::env::current_dir()?).await?,
        };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let parts = PlatformParts {
            registry: Arc::new(dir.write_registry()?).into(),
            clock: Arc::clone(&clock),
            ids: Arc::new(SystemIds),
        };
        let platform = Platform::open(&database, parts).await?;
        let shutdown = Shutdown::default();
        platform.maintain(crate::upkeep::Upkeep::default(), &shutdown)?;
        let credentials = ServiceName::ALL
            .iter()
            .map(|service| {
                let key = dir.service_key(*service)?;
                Ok((*service, ServiceCredentials::new(*service, key, Arc::clone(&clock))))
            })
            .collect::<Result<BTreeMap<_, _>, KeyError>>()?;
        Ok(Self { dir, database, platform, credentials, clock, shutdown, common: common.clone(), temporary })
    }

    /// A way to `server` as `service`.
    fn attach(&self, service: ServiceName, server: Transport) -> anyhow::Result<Transport> {
        let credentials = self.credentials.get(&service).with_context(|| format!("{service} has no key"))?;
        Ok(credentials.attach(server))
    }

    pub(super) fn cqs_as(&self, service: ServiceName) -> anyhow::Result<CqsClient> {
        Ok(proto::cqs_client(self.attach(service, self.platform.transport())?))
    }

    pub(super) fn dtoflow_as(&self, service: ServiceName) -> anyhow::Result<DtoFlowClient> {
        Ok(proto::dtoflow_client(self.attach(service, self.platform.transport())?))
    }

    /// The named triggers of the worker services, called as the gateway calls them.
    pub(super) fn triggers(&self) -> anyhow::Result<Transport> {
        let routes = worker::trigger_routes(&self.worker(ServiceName::ALL.to_vec()))?;
        let server = daemon::serve::in_process(routes, self.platform.verifier());
        self.attach(ServiceName::OperatorGateway, server)
    }

    /// A worker that runs these services and throws pictures away instead of sending them.
    pub(super) fn worker(&self, services: Vec<ServiceName>) -> WorkerParts {
        WorkerParts {
            services,
            platform: self.platform.transport(),
            credentials: self.credentials.clone(),
            exporter: ExporterSettings { folder: self.dir.labels(), discard: true, ..ExporterSettings::default() },
            engine: RenderEngine::default(),
            pipelines: self.common.pipelines.clone(),
            clock: Arc::clone(&self.clock),
            ids: Arc::new(SystemIds),
            shutdown: self.shutdown.clone(),
        }
    }

    /// Bytes of the database's file with its log; none where it is no file of ours.
    pub(super) fn database_bytes(&self) -> Option<u64> {
        self.database.sqlite()?;
        let beside = |suffix: &str| {
            let mut path = self.dir.database().into_os_string();
            path.push(suffix);
            bytes(&PathBuf::from(path))
        };
        Some(beside("") + beside("-wal"))
    }

    /// Stops what runs, closes the database, removes a temporary directory.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.shutdown.stop().await;
        self.database.close().await?;
        if self.temporary {
            let path = self.dir.path();
            std::fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }
}

fn bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
