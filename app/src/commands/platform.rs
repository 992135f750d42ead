//! `reshelf platform`: DTOflow and CQS over gRPC.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
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
use db::{DatabaseUrl, postgres};
use serde::Deserialize;
use tokio::net::TcpListener;

use super::require_allowed;
use crate::{
    data_dir::read_or_generate,
    platform::{Database, Platform, PlatformParts},
    upkeep::{AuditSeal, RetentionConfig, Upkeep},
};

/// What is logged unless `RESHELF_LOG` says otherwise.
const LOG_FILTER: &str = "info";

/// First pause before a database that is away is tried again, doubled each time.
const AWAY_PAUSE_FIRST: Duration = Duration::from_millis(200);
/// Longest of these pauses: it is noticed within that when it is back.
const AWAY_PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long it may be away: longer than PostgreSQL recovers after a crash, or fails over. Then the start ends, and says why.
const AWAY_MAX: Duration = Duration::from_mins(10);

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
    /// Where the audit log is signed.
    #[serde(default)]
    audit: AuditConfig,
    /// How long what is over is kept.
    #[serde(default)]
    retention: RetentionConfig,
    /// How log lines look.
    #[serde(default)]
    log: Log,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AuditConfig {
    /// Whether this process signs, or stands by to.
    sign: bool,
    /// The file of checkpoints; made with its folder when absent.
    checkpoints: PathBuf,
    /// The private key; made with its folder when absent.
    key: PathBuf,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { sign: true, checkpoints: "audit/checkpoints.jsonl".into(), key: "keys/audit.key".into() }
    }
}

impl AuditConfig {
    fn seal(&self, folder: &Path) -> anyhow::Result<Option<AuditSeal>> {
        if !self.sign {
            return Ok(None);
        }
        let path = folder.join(&self.key);
        if let Some(keys) = path.parent().filter(|keys| !keys.as_os_str().is_empty()) {
            let mut builder = fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(keys)
                .with_context(|| format!("cannot make {}", keys.display()))?;
        }
        let key = read_or_generate(&path).context("no key to sign with; `audit.key` in the configuration names it")?;
        Ok(Some(AuditSeal { checkpoints: folder.join(&self.checkpoints), key }))
    }
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

/// Opens the database. One that is down, or starts, is waited for: nobody is served meanwhile, so whoever asks for readiness
/// is told so. What will not pass by itself ends the start.
async fn opened(url: &DatabaseUrl, folder: &Path) -> anyhow::Result<Database> {
    let (begun, mut pause) = (Instant::now(), AWAY_PAUSE_FIRST);
    loop {
        let error = match Database::open_url(url, folder).await {
            Ok(database) => return Ok(database),
            Err(error) => error,
        };
        let away = matches!(error.downcast_ref(), Some(postgres::OpenError::Away(_)));
        if !away || begun.elapsed() >= AWAY_MAX {
            return Err(error);
        }
        tracing::warn!(%error, "waiting for the database");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(AWAY_PAUSE_MAX);
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

    let retention = config.retention.settings()?;
    let history = config.retention.history()?;
    let upkeep = Upkeep { retention, history, audit: config.audit.seal(folder).context("audit")? };

    let Some(database) = Shutdown::unless_told(opened(&url, folder)).await? else { return Ok(()) };
    let database = database?;
    let listener =
        TcpListener::bind(config.listen).await.with_context(|| format!("cannot listen on {}", config.listen))?;
    let shutdown = Shutdown::default();
    let parts = PlatformParts { registry, clock: Arc::new(SystemClock), ids: Arc::new(SystemIds) };
    let platform = Platform::open(&database, parts).await?;
    platform.maintain(upkeep, &shutdown)?;
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
