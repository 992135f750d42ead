//! `reshelf keys` and `reshelf registry`: identities for set-ups of several processes.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use daemon::identity::{PublicKey, Registry, ServiceKey};
use domain::ServiceName;

/// `reshelf keys`
#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    /// File to write the private key to; must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// `reshelf registry`
#[derive(Debug, Args)]
pub(super) struct RegistryArgs {
    /// A service and the public half of its key, e.g. hardware-exporter=AbC…; once per service
    #[arg(value_name = "SERVICE=PUBLIC_KEY", required = true, value_parser = entry)]
    entries: Vec<(ServiceName, PublicKey)>,
}

fn entry(text: &str) -> Result<(ServiceName, PublicKey), String> {
    let (service, key) = text.split_once('=').ok_or("needs SERVICE=PUBLIC_KEY")?;
    let names = || ServiceName::ALL.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let service = service.parse().map_err(|_| format!("{service:?} is none of {}", names()))?;
    Ok((service, key.parse().map_err(|error| format!("the key {error}"))?))
}

pub(super) fn generate(args: &KeysArgs) -> anyhow::Result<()> {
    let key = ServiceKey::generate()?;
    key.write(&args.file).context("the key was not written")?;
    println!("{}", key.public().as_str());
    Ok(())
}

pub(super) fn registry(args: &RegistryArgs) -> anyhow::Result<()> {
    print!("{}", Registry::standard_document(&args.entries)?);
    Ok(())
}
