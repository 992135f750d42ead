//! `reshelf-worker --config FILE`: runs worker services and serves their triggers.

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use clap::Parser;
use daemon::{SystemClock, SystemIds, failure, identity::Verifier, serve::Health, shutdown::Shutdown};
use domain::{Clock, IdSource, ServiceName};
use tokio::net::TcpListener;
use worker::{
    RenderEngine, Worker, WorkerError, WorkerParts,
    config::{self, Insecure, WorkerConfig},
    trigger_routes,
};

/// Runs worker services of reshelf: rendering, merging, exporting.
#[derive(Parser)]
#[command(name = "reshelf-worker", version)]
struct Arguments {
    /// Configuration file (TOML).
    #[arg(long)]
    config: PathBuf,
    /// Serves triggers beyond loopback without TLS.
    #[arg(long)]
    insecure: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    failure::exit_code("reshelf-worker", daemon::threads::run(start(&arguments)).map_err(Into::into).flatten())
}

async fn start(arguments: &Arguments) -> anyhow::Result<()> {
    let config = config::read(&arguments.config)?;
    daemon::telemetry::init(config.log.into(), "info");
    let insecure = if arguments.insecure { Insecure::Allowed } else { Insecure::Refused };
    run(&config, insecure).await
}

async fn run(config: &WorkerConfig, insecure: Insecure) -> anyhow::Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ids: Arc<dyn IdSource> = Arc::new(SystemIds);
    let services = config.service_names()?;
    if services.contains(&ServiceName::HardwareExporter) {
        anyhow::ensure!(!config.exporter.folder.as_os_str().is_empty(), "exporter.folder is required for the exporter");
    }
    let shutdown = Shutdown::default();
    let parts = WorkerParts {
        services,
        platform: config.platform()?,
        credentials: config.credentials(&clock)?,
        exporter: config.exporter.clone(),
        engine: RenderEngine::default(),
        pipelines: config.pipelines.clone(),
        clock: Arc::clone(&clock),
        ids,
        shutdown: shutdown.clone(),
    };
    // Says that it can do its work once its queues are there, and no more once it is told to stop.
    let running = Arc::new(AtomicBool::new(false));
    if let Some(address) = config.listen_address(insecure)? {
        let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
        let verifier = Verifier::new(config.registry()?, clock);
        let tls = config.server_tls()?;
        let (ready, stopping) = (Arc::clone(&running), shutdown.soft.clone());
        let health = Health::new(move || ready.load(Ordering::Acquire) && !stopping.is_cancelled());
        let (routes, soft) = (trigger_routes(&parts)?.add_service(health), shutdown.soft.clone());
        tracing::info!(%address, "serving triggers");
        shutdown.tasks.spawn(async move {
            if let Err(error) = daemon::serve::grpc_over(listener, tls, (routes, verifier), soft.clone()).await {
                tracing::error!(%error, "the trigger server ended");
            }
            soft.cancel();
        });
    }
    let stopping = shutdown.clone();
    let stopped = tokio::spawn(async move { stopping.run().await });
    match Worker::start(parts).await {
        Ok(handle) => {
            running.store(true, Ordering::Release);
            tracing::info!(services = ?handle.services(), "running");
        }
        Err(WorkerError::Stopped) => {}
        Err(error) => {
            shutdown.soft.cancel();
            return Err(error.into());
        }
    }
    stopped.await.context("shutdown")?.context("signals")
}
