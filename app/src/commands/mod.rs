//! The command line: one file or folder a command. Standard output is a command's answer; logs and progress go to standard
//! error.
//!
//! Deliberately not here: how a gateway is spoken to (`cli`), what a process is made of (`platform`, `dev`).

pub mod failure;

mod audit;
mod backup;
mod bench;
mod brake;
mod completions;
mod dev;
mod doctor;
mod import;
mod keys;
mod labels;
mod migrate;
mod operations;
mod panels;
mod platform;
mod status;
mod token;
mod trigger;
mod whoami;

use clap::{Parser, Subcommand};

use crate::cli::{ConnectionArgs, Exit, Format};

/// Operator gateway and platform for electronic shelf labels.
#[derive(Debug, Parser)]
#[command(name = "reshelf", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Force a service to process again
    Trigger(trigger::Args),
    /// Follow what was triggered, and control it
    Operations(operations::Args),
    /// What there is, and what each label shows
    Labels(labels::Args),
    /// Who did what, and what was refused
    Audit(audit::Args),
    /// Stop all operator work of all tenants
    Brake(brake::Args),
    /// How the platform stands: the brake, operations, what waits and how late it is
    Status(status::Args),
    /// Who the token says you are, and what it allows
    Whoami(whoami::Args),
    /// Check configuration, gateway, clocks and a local database; tell what to do
    Doctor(doctor::Args),
    /// Copy a SQLite database, also while it is in use
    Backup(backup::Args),
    /// Print completions for a shell
    Completions(completions::Args),
    /// Everything in one process, with a demo tenant: the way to try it
    Dev(dev::Args),
    /// DTOflow and CQS over gRPC, for set-ups of several processes
    Platform(platform::Args),
    /// Print an operator token
    Token(token::Args),
    /// Write records from a file, one JSON object a line
    Import(import::Args),
    /// Print the panel types that drivers know, as lines to import
    Panels(panels::Args),
    /// Bring a database to this program's schema
    Migrate(migrate::Args),
    /// Measure this machine: fan-out, model refreshes, claims at depth
    Bench(bench::Args),
    /// Print the OpenAPI document of the REST API
    Openapi,
    /// Make a private key (0600) and print its public half
    Keys(keys::KeysArgs),
    /// Print a service registry with the standard grants for given public keys
    Registry(keys::RegistryArgs),
}

impl Cli {
    /// How a failure is told: as the command's answers look.
    pub fn format(&self) -> Format {
        self.connection().map_or(Format::Table, |connection| connection.output().format)
    }

    fn connection(&self) -> Option<&ConnectionArgs> {
        match &self.command {
            Command::Trigger(args) => Some(&args.connection),
            Command::Operations(args) => Some(&args.connection),
            Command::Labels(args) => Some(&args.connection),
            Command::Audit(args) => Some(&args.connection),
            Command::Brake(args) => Some(&args.connection),
            Command::Status(args) => Some(&args.connection),
            Command::Whoami(args) => Some(&args.connection),
            Command::Doctor(args) => Some(&args.connection),
            _ => None,
        }
    }

    /// Carries out the command.
    pub async fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Trigger(args) => return Ok(trigger::run(args).await?),
            Command::Operations(args) => return Ok(operations::run(args).await?),
            Command::Labels(args) => return Ok(labels::run(args).await?),
            Command::Audit(args) => return Ok(audit::run(args).await?),
            Command::Brake(args) => return Ok(brake::run(args).await?),
            Command::Status(args) => return Ok(status::run(args).await?),
            Command::Whoami(args) => return Ok(whoami::run(args).await?),
            Command::Doctor(args) => return Ok(doctor::run(args).await?),
            Command::Backup(args) => return backup::run(&args).await,
            Command::Completions(args) => return Ok(completions::run(&args)?),
            Command::Dev(args) => dev::run(args).await,
            Command::Platform(args) => platform::run(args).await,
            Command::Token(args) => token::run(&args),
            Command::Import(args) => import::run(args).await,
            Command::Panels(args) => panels::run(&args),
            Command::Migrate(args) => migrate::run(&args).await,
            Command::Bench(args) => bench::run(args).await,
            Command::Openapi => {
                println!("{}", gateway::openapi_json().trim_end());
                Ok(())
            }
            Command::Keys(args) => keys::generate(&args),
            Command::Registry(args) => keys::registry(&args),
        }
        .map(|()| Exit::Success)
    }
}

/// Refuses an address beyond loopback without `--insecure`: nothing here speaks TLS itself.
fn require_allowed(listen: std::net::SocketAddr, insecure: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        gateway::listen_allowed(listen, insecure),
        "{listen} is reachable from other machines without TLS; listen on 127.0.0.1, or say --insecure to allow it"
    );
    Ok(())
}
