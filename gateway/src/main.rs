//! `reshelf-gateway`: the operator gateway as its own daemon.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Parser;
use daemon::{failure, shutdown::Shutdown, telemetry};
use gateway::{GatewayConfig, listen_allowed, router, serve_over};
use tokio::net::TcpListener;

/// Variables that begin so lie over the configuration file.
const ENVIRONMENT: &str = "RESHELF_GATEWAY__";

/// The operator gateway: REST for operators in front of the platform.
#[derive(Parser)]
#[command(name = "reshelf-gateway", version)]
struct Arguments {
    /// Configuration file (TOML).
    #[arg(long)]
    config: PathBuf,
    /// Listen beyond loopback without TLS: only behind something that adds it.
    #[arg(long)]
    insecure: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    failure::exit_code("reshelf-gateway", daemon::threads::run(run(&arguments)).map_err(Into::into).flatten())
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config: GatewayConfig = daemon::config::read_with_environment(&arguments.config, ENVIRONMENT)?;
    telemetry::init(config.log.into(), "info");
    if !listen_allowed(config.listen, arguments.insecure || config.tls.is_some()) {
        bail!(
            "listen: {} is beyond loopback and there is no [tls]: name a certificate, put a TLS proxy before a loopback \
             address, or pass --insecure",
            config.listen
        );
    }
    let folder = arguments.config.parent().unwrap_or(Path::new("."));
    let shutdown = Shutdown::default();
    let parts = config
        .parts(folder, shutdown.clone())
        .with_context(|| format!("configuration file {}", arguments.config.display()))?;
    let tls = config.server_tls(folder)?;
    let listener =
        TcpListener::bind(config.listen).await.with_context(|| format!("listen: {} cannot be used", config.listen))?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let served = tokio::spawn(serve_over(listener, router(parts), tls, shutdown.clone()));
    shutdown.run().await?;
    served.await??;
    Ok(())
}
