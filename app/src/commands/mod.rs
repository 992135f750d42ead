//! The command line. Standard output is a command's answer; logs and progress go to standard error.

pub mod failure;

mod keys;

use clap::{Parser, Subcommand};

/// Operator gateway and platform for electronic shelf labels.
#[derive(Debug, Parser)]
#[command(name = "reshelf", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a private key (0600) and print its public half
    Keys(keys::KeysArgs),
    /// Print a service registry with the standard grants for given public keys
    Registry(keys::RegistryArgs),
}

impl Cli {
    /// Carries out the command.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Keys(args) => keys::generate(&args),
            Command::Registry(args) => keys::registry(&args),
        }
    }
}
