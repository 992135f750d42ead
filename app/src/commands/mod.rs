//! The command line. Standard output is a command's answer; logs and progress go to standard error.

pub mod failure;

mod bench;
mod dev;
mod import;
mod keys;
mod migrate;
mod platform;
mod token;

use clap::{Parser, Subcommand};

/// Said of any other database, as long as only SQLite has the stores.
const SQLITE_ONLY: &str = "this build keeps its data in SQLite only: use sqlite:// followed by the path of the file";

/// Operator gateway and platform for electronic shelf labels.
#[derive(Debug, Parser)]
#[command(name = "reshelf", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything in one process, with a demo tenant: the way to try it
    Dev(dev::Args),
    /// DTOflow and CQS over gRPC, for set-ups of several processes
    Platform(platform::Args),
    /// Print an operator token
    Token(token::Args),
    /// Write records from a file, one JSON object a line
    Import(import::Args),
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
    /// Carries out the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Dev(args) => dev::run(args).await,
            Command::Platform(args) => platform::run(args).await,
            Command::Token(args) => token::run(&args),
            Command::Import(args) => import::run(args).await,
            Command::Migrate(args) => migrate::run(&args).await,
            Command::Bench(args) => bench::run(args).await,
            Command::Openapi => {
                println!("{}", gateway::openapi_json().trim_end());
                Ok(())
            }
            Command::Keys(args) => keys::generate(&args),
            Command::Registry(args) => keys::registry(&args),
        }
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
