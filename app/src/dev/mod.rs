//! Everything in one process: platform, worker and gateway over transports within the process, with the same
//! credentials and checks as over the network.
//!
//! [`start`] brings it up; [`Dev::prepare_demo`] loads the demo tenant at the first start. gRPC is also served on a
//! loopback port of the system's choice, named in the data directory, so that `reshelf import` reaches a running process.
//!
//! Deliberately not here: what is printed (`commands`), the demo's records (`demo`).

mod prepare;
mod simulated;

pub use prepare::{DemoState, Progress};

use simulated::Simulated;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use anyhow::Context as _;
use daemon::{
    identity::{KeyError, ServiceCredentials, ServiceKey},
    outbound::AllowList,
    shutdown::Shutdown,
};
use db::DatabaseUrl;
use domain::{Clock, IdSource, OperatorScope, ServiceName, Timestamp};
use gateway::{GatewayParts, Issuer, OperatorPolicy, OperatorVerifier, PlanKey, token::OperatorClaims};
use proto::Transport;
use tokio::net::TcpListener;
use worker::{ExporterSettings, PipelineSettings, RenderEngine, Worker, WorkerHandle, WorkerParts};

use crate::{
    data_dir::{DataDir, write_private},
    demo,
    platform::{Database, Platform, PlatformParts},
    upkeep::{AuditSeal, Upkeep},
};

/// How long the operator token of the printed commands is good for, in seconds: a working day with its evening.
const TOKEN_LIFETIME_S: i64 = 12 * 60 * 60;
/// The worker services that `dev` runs.
const WORKER_SERVICES: &[ServiceName] = &[
    ServiceName::EccImageRender,
    ServiceName::StudioRenderer,
    ServiceName::EslImageMerger,
    ServiceName::HardwareExporter,
];
/// Those of them that have triggers.
const TRIGGER_SERVICES: [ServiceName; 3] =
    [ServiceName::EccImageRender, ServiceName::StudioRenderer, ServiceName::HardwareExporter];

/// What the demo's labels hang on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Hardware {
    /// A folder: each picture becomes a file, and is confirmed at once.
    #[default]
    Folder,
    /// Simulated access points with tags that check in, lose pictures and go away.
    Sim,
}

/// Rest between two uploads to a simulated access point, in milliseconds: real ones want a second.
const SIMULATED_PAUSE_MS: u32 = 20;
/// How long after an upload a simulated access point is first asked, in milliseconds: a little longer than its tags take
/// to check in.
const SIMULATED_FIRST_LOOK_MS: u32 = 5_000;

/// What `dev` is started with.
pub struct DevOptions {
    /// Data directory; made when absent.
    pub data_dir: PathBuf,
    /// Where the data lies; none: in a file of the data directory.
    pub database: Option<DatabaseUrl>,
    /// Where the audit log's signed checkpoints lie; none: in the data directory.
    pub audit_checkpoints: Option<PathBuf>,
    /// Where the REST API listens.
    pub listen: SocketAddr,
    /// What the demo's labels hang on.
    pub hardware: Hardware,
    /// What an operator may do without a second one.
    pub policy: OperatorPolicy,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub ids: Arc<dyn IdSource>,
}

impl fmt::Debug for DevOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevOptions")
            .field("data_dir", &self.data_dir)
            .field("database", &self.database)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

/// A running process.
#[derive(Debug)]
pub struct Dev {
    dir: DataDir,
    rest: SocketAddr,
    grpc: SocketAddr,
    platform: Platform,
    triggers: Transport,
    database: Database,
    credentials: BTreeMap<ServiceName, ServiceCredentials>,
    worker: WorkerHandle,
    simulated: Option<Arc<Simulated>>,
    shutdown: Shutdown,
    ended: Ended,
}

/// Why a server ended by itself, if one did.
type Ended = Arc<OnceLock<String>>;

/// Starts everything. What can be refused (a lock, a port) is refused before anything is written.
pub async fn start(options: DevOptions) -> anyhow::Result<Dev> {
    let DevOptions { data_dir, database, audit_checkpoints, listen, hardware, policy, clock, ids } = options;
    let dir = DataDir::create(&data_dir)?;
    let database = match &database {
        None => Database::open(&dir.database()).await?,
        Some(url) => Database::open_url(url, &std::env::current_dir()?).await?,
    };
    let rest_listener = bind(listen).await?;
    let grpc_listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let (rest, grpc) = (rest_listener.local_addr()?, grpc_listener.local_addr()?);

    let registry = Arc::new(dir.write_registry()?);
    let shutdown = Shutdown::default();
    let parts = PlatformParts { registry: registry.into(), clock: Arc::clone(&clock), ids: Arc::clone(&ids) };
    let platform = Platform::open(&database, parts).await?;
    platform.maintain(upkeep(&dir, audit_checkpoints)?, &shutdown)?;
    let credentials = credentials(&dir, &clock)?;

    let simulated = match hardware {
        Hardware::Folder => None,
        Hardware::Sim => Some(simulated(&shutdown, (&clock, &ids)).await?),
    };
    let worker_parts = WorkerParts {
        services: WORKER_SERVICES.to_vec(),
        platform: platform.transport(),
        credentials: credentials.clone(),
        exporter: exporter(&dir, hardware),
        engine: RenderEngine::default(),
        pipelines: PipelineSettings::default(),
        clock: Arc::clone(&clock),
        ids: Arc::clone(&ids),
        shutdown: shutdown.clone(),
    };
    let triggers = daemon::serve::in_process(worker::trigger_routes(&worker_parts)?, platform.verifier());
    let routes = worker::add_trigger_routes(platform.routes(), &worker_parts)?;
    let worker = Worker::start(worker_parts).await?;

    let as_gateway = credentials.get(&ServiceName::OperatorGateway).context("the gateway has no key")?;
    let issuer = dir.operator_issuer()?;
    let router = gateway::router(GatewayParts {
        platform: as_gateway.attach(platform.transport()),
        triggers: TRIGGER_SERVICES.map(|service| (service, as_gateway.attach(triggers.clone()))).into(),
        operators: OperatorVerifier::new(vec![Issuer::local(issuer.public())?], Arc::clone(&clock)),
        plans: PlanKey::new(dir.service_key(ServiceName::OperatorGateway)?)?,
        policy,
        cors: Vec::new(),
        login: None,
        rules: gateway::Rules::default(),
        webhooks: gateway::Webhooks::default(),
        shutdown: shutdown.clone(),
        clock: Arc::clone(&clock),
        ids,
    });
    let ended = Ended::default();
    spawn(&shutdown, &ended, "REST", gateway::serve(rest_listener, router, shutdown.clone()));
    let serving = daemon::serve::grpc(grpc_listener, routes, platform.verifier(), shutdown.soft.clone());
    spawn(&shutdown, &ended, "gRPC", serving);

    write_private(&dir.operator_token(), &operator_token(&issuer, clock.now())?)?;
    write_private(&dir.platform_address(), &format!("http://{grpc}\n"))?;
    write_private(&dir.gateway_address(), &format!("http://{rest}\n"))?;
    Ok(Dev { dir, rest, grpc, platform, triggers, database, credentials, worker, simulated, shutdown, ended })
}

/// How pictures go out: into files, or to access points of this machine that are looked after in seconds.
fn exporter(dir: &DataDir, hardware: Hardware) -> ExporterSettings {
    let folder = ExporterSettings { folder: dir.labels(), ..ExporterSettings::default() };
    match hardware {
        Hardware::Folder => folder,
        Hardware::Sim => ExporterSettings {
            reach: AllowList::loopback(),
            access_point_pause_ms: Some(SIMULATED_PAUSE_MS),
            access_point_first_look_ms: Some(SIMULATED_FIRST_LOOK_MS),
            announce_after_reset: true,
            ..folder
        },
    }
}

/// Simulated access points, to which things happen now and then.
async fn simulated(
    shutdown: &Shutdown,
    (clock, ids): (&Arc<dyn Clock>, &Arc<dyn IdSource>),
) -> anyhow::Result<Arc<Simulated>> {
    let simulated = Arc::new(Simulated::start(clock).await?);
    simulated.let_things_go_wrong(shutdown, Arc::clone(ids));
    Ok(simulated)
}

/// Signs the audit log with the data directory's key.
fn upkeep(dir: &DataDir, checkpoints: Option<PathBuf>) -> Result<Upkeep, KeyError> {
    let checkpoints = checkpoints.unwrap_or_else(|| dir.audit_checkpoints());
    Ok(Upkeep { audit: Some(AuditSeal { checkpoints, key: dir.audit_key()? }), ..Upkeep::default() })
}

/// A token for the printed commands: everything, in the demo tenant.
fn operator_token(issuer: &ServiceKey, now: Timestamp) -> anyhow::Result<String> {
    let claims = OperatorClaims {
        subject: "dev@localhost".parse()?,
        scopes: OperatorScope::ALL.to_vec(),
        tenants: vec![demo::tenant()?],
        stores: None,
        issued_at: now,
        lifetime_s: TOKEN_LIFETIME_S,
    };
    Ok(gateway::token::mint(issuer, &claims)?)
}

/// What each service shows, by its key in the data directory.
fn credentials(dir: &DataDir, clock: &Arc<dyn Clock>) -> Result<BTreeMap<ServiceName, ServiceCredentials>, KeyError> {
    let of = |service: &ServiceName| {
        let key = dir.service_key(*service)?;
        Ok((*service, ServiceCredentials::new(*service, key, Arc::clone(clock))))
    };
    ServiceName::ALL.iter().map(of).collect()
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Runs a server until the shutdown; a server that ends by itself takes the process down rather than leave half of it.
fn spawn<E: fmt::Display + Send>(
    shutdown: &Shutdown,
    ended: &Ended,
    server: &'static str,
    serving: impl Future<Output = Result<(), E>> + Send + 'static,
) {
    let (soft, ended) = (shutdown.soft.clone(), Arc::clone(ended));
    shutdown.tasks.spawn(async move {
        if let Err(error) = serving.await {
            // Only the first is told: the others ended because of it.
            let _ = ended.set(format!("the {server} server ended: {error}"));
        }
        soft.cancel();
    });
}

impl Dev {
    /// Its data directory.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Where the REST API answers.
    pub fn rest(&self) -> SocketAddr {
        self.rest
    }

    /// Where CQS, DTOflow and the triggers answer over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Where its simulated access points answer, with the store of each; none without simulated hardware.
    pub fn simulated_access_points(&self) -> Vec<(&'static str, SocketAddr)> {
        let all = self.simulated.iter().flat_map(|simulated| simulated.addresses());
        all.map(|(shop, address)| (shop.id, address)).collect()
    }

    /// The shutdown everything listens to.
    pub fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// A way to CQS and DTOflow within this process, without an identity yet.
    pub fn platform_transport(&self) -> Transport {
        self.platform.transport()
    }

    /// A way to the trigger RPCs within this process, without an identity yet.
    pub fn trigger_transport(&self) -> Transport {
        self.triggers.clone()
    }

    /// A way to CQS and DTOflow as `service`, within this process; none for a service without a key.
    pub fn transport_as(&self, service: ServiceName) -> Option<Transport> {
        self.credentials.get(&service).map(|credentials| credentials.attach(self.platform.transport()))
    }

    /// Closes the database after a drain that [`Shutdown::run`] or [`Shutdown::stop`] has waited for. An error also when a
    /// server ended by itself.
    pub async fn close(self) -> anyhow::Result<()> {
        drop(self.worker);
        // A left-over address would lead an import, or an operator's token, to whoever has the port by then.
        for path in [self.dir.platform_address(), self.dir.gateway_address()] {
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!(%error, path = %path.display(), "not removed");
            }
        }
        self.database.close().await.context("closing the database")?;
        match self.ended.get() {
            Some(why) => anyhow::bail!("{why}"),
            None => Ok(()),
        }
    }
}
