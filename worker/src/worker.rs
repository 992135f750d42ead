//! Composition: services, the platform, credentials; one runtime each.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use daemon::{identity::ServiceCredentials, outbound::AllowList, shutdown::Shutdown};
use domain::{Clock, IdSource, ServiceName};
use proto::Transport;

use crate::{
    PipelineSettings, RenderEngine,
    runtime::{Platform, Runtime, RuntimeParts, Service},
    services::{self, hardware_exporter::drivers::webhook::WebhookSettings},
};

/// How the exporter's drivers are set up.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExporterSettings {
    /// Base directory of the `folder` driver.
    pub folder: PathBuf,
    /// Counts pictures and throws them away instead of writing files; for benchmarks only.
    #[serde(default)]
    pub discard: bool,
    /// When an access point was reset, announces the pictures of its unconfirmed labels again, so that they are looked
    /// after at once instead of at their next look. Off unless said.
    #[serde(default)]
    pub announce_after_reset: bool,
    /// What drivers may reach over the network: networks, addresses, host names. Nothing unless said.
    #[serde(default)]
    pub reach: AllowList,
    /// Rest between two uploads to one access point of the `openepaperlink` driver, in milliseconds; 1,000 unless said.
    #[serde(default)]
    pub access_point_pause_ms: Option<u32>,
    /// How long after an upload the `openepaperlink` driver first looks what became of it, in milliseconds; 45,000 unless
    /// said, since tags check in every 40 s.
    #[serde(default)]
    pub access_point_first_look_ms: Option<u32>,
    /// The `webhook` driver; without it there is none.
    #[serde(default)]
    pub webhook: Option<WebhookSettings>,
}

/// What a worker is made of.
#[derive(Clone)]
pub struct WorkerParts {
    /// The services to run, each once.
    pub services: Vec<ServiceName>,
    /// CQS and DTOflow, without credentials.
    pub platform: Transport,
    /// Credentials of each service; others are ignored.
    pub credentials: BTreeMap<ServiceName, ServiceCredentials>,
    /// The exporter's drivers.
    pub exporter: ExporterSettings,
    /// How the renderers draw.
    pub engine: RenderEngine,
    /// How each service's queue is worked.
    pub pipelines: PipelineSettings,
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Jitter and incarnation ids.
    pub ids: Arc<dyn IdSource>,
    /// Told to stop by this; pipelines are tracked in it.
    pub shutdown: Shutdown,
}

impl fmt::Debug for WorkerParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerParts")
            .field("services", &self.services)
            .field("exporter", &self.exporter)
            .field("pipelines", &self.pipelines)
            .finish_non_exhaustive()
    }
}

/// Why a worker does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// The service is none this build runs.
    #[error("{0} is not a worker service of this build")]
    UnknownService(ServiceName),
    /// A service is listed twice, and would be run twice.
    #[error("{0} is listed twice")]
    Twice(ServiceName),
    /// A service has no credentials.
    #[error("{0} has no key")]
    NoCredentials(ServiceName),
    /// Told to stop before the platform answered.
    #[error("stopped before the platform answered")]
    Stopped,
}

/// The worker.
#[derive(Debug)]
pub struct Worker;

/// A running worker. Dropping it does not stop it; the shutdown does.
#[derive(Debug)]
pub struct WorkerHandle {
    services: Vec<ServiceName>,
}

impl WorkerHandle {
    /// The services it runs.
    pub fn services(&self) -> &[ServiceName] {
        &self.services
    }
}

impl Worker {
    /// Starts every service and returns once all queues exist with their subscriptions, however long the platform takes
    /// to answer: from then on no write goes unnoticed.
    pub async fn start(parts: WorkerParts) -> Result<WorkerHandle, WorkerError> {
        let mut run: Vec<Arc<dyn Service>> = Vec::with_capacity(parts.services.len());
        for name in &parts.services {
            if run.iter().any(|service| service.name() == *name) {
                return Err(WorkerError::Twice(*name));
            }
            run.push(
                services::service(*name, &parts.exporter, parts.engine, &parts.clock)
                    .ok_or(WorkerError::UnknownService(*name))?,
            );
        }
        start_services(parts, run).await
    }
}

/// Starts these services, whatever `parts` lists.
pub(crate) async fn start_services(
    parts: WorkerParts,
    run: Vec<Arc<dyn Service>>,
) -> Result<WorkerHandle, WorkerError> {
    let worker_id: Arc<str> = parts.ids.hex_id().into();
    let mut runtimes = Vec::with_capacity(run.len());
    for service in run {
        let name = service.name();
        let credentials = parts.credentials.get(&name).ok_or(WorkerError::NoCredentials(name))?;
        let queue = name.queue().ok_or(WorkerError::UnknownService(name))?;
        runtimes.push(Runtime::new(RuntimeParts {
            service,
            platform: Platform::new(credentials.attach(parts.platform.clone()), queue),
            settings: parts.pipelines.clone().within_bounds(),
            clock: Arc::clone(&parts.clock),
            ids: Arc::clone(&parts.ids),
            worker_id: Arc::clone(&worker_id),
            shutdown: parts.shutdown.clone(),
        }));
    }
    for runtime in &runtimes {
        runtime.start();
    }
    for runtime in &runtimes {
        let mut configured = runtime.configured();
        tokio::select! {
            () = parts.shutdown.soft.cancelled() => return Err(WorkerError::Stopped),
            ready = configured.wait_for(|ready| *ready) => drop(ready.map_err(|_| WorkerError::Stopped)?),
        }
    }
    Ok(WorkerHandle { services: runtimes.iter().map(|runtime| runtime.name()).collect() })
}
