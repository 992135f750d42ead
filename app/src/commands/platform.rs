//! `reshelf platform`: DTOflow and CQS over gRPC.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::Args as ClapArgs;
use daemon::{
    SystemClock, SystemIds,
    identity::RegistrySource,
    shutdown::Shutdown,
    telemetry::LogFormat,
    tls::{ServerTls, ServerTlsConfig},
};
use db::DatabaseUrl;
use serde::Deserialize;
use tokio::net::TcpListener;

use super::require_allowed;
use crate::platform::{Database, Platform, PlatformParts};

/// What is logged unless `RESHELF_LOG` says otherwise.
const LOG_FILTER: &str = "info";

/// Variables that begin so lie over the configuration file.
const ENVIRONMENT: &str = "RESHELF_PLATFORM__";

/// `reshelf platform`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Listen beyond loopback although there is no TLS: tokens and records then cross the network in the clear
    #[arg(long)]
    insecure: bool,
}

/// The configuration file. Paths in it are relative to the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// E.g. `sqlite:///var/lib/reshelf/reshelf.db`, or `postgres://reshelf@db.example/reshelf`.
    database: String,
    /// Where gRPC answers, e.g. `127.0.0.1:7400`.
    listen: SocketAddr,
    /// The service registry.
    registry: PathBuf,
    /// The server's certificate, and whose client certificates it wants; left out: no TLS.
    #[serde(default)]
    tls: Option<ServerTlsConfig>,
    /// How log lines look.
    #[serde(default)]
    log: Log,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Log {
    #[default]
    Text,
    Json,
}

impl From<Log> for LogFormat {
    fn from(log: Log) -> Self {
        match log {
            Log::Text => Self::Text,
            Log::Json => Self::Json,
        }
    }
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let config: Config = daemon::config::read_with_environment(&args.config, ENVIRONMENT)?;
    daemon::telemetry::init(config.log.into(), LOG_FILTER);
    require_allowed(config.listen, args.insecure || config.tls.is_some())?;
    let url: DatabaseUrl = config.database.parse().map_err(|error| anyhow::anyhow!("database {error}"))?;
    let folder = args.config.parent().unwrap_or(Path::new(""));
    let registry = RegistrySource::file(&folder.join(&config.registry))?;
    let tls = config.tls.as_ref().map(|tls| ServerTls::new(tls, folder, &[b"h2"])).transpose().context("tls")?;

    let database = Database::open_url(&url, folder).await?;
    let listener =
        TcpListener::bind(config.listen).await.with_context(|| format!("cannot listen on {}", config.listen))?;
    let shutdown = Shutdown::default();
    let parts = PlatformParts { registry, clock: Arc::new(SystemClock), ids: Arc::new(SystemIds) };
    let platform = Platform::open(&database, parts).await?;
    platform.maintain(&shutdown);
    let scheme = if tls.is_some() { "https" } else { "http" };
    println!("listening on {scheme}://{}", listener.local_addr()?);

    let (serving, until) = (platform.clone(), shutdown.clone());
    let server = shutdown.tasks.spawn(async move {
        let served = serving.serve(listener, tls, &until).await;
        until.soft.cancel();
        served
    });
    shutdown.run().await?;
    database.close().await?;
    server.await?.context("the gRPC server ended")
}
