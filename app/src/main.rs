//! The program `reshelf`.

use std::process::ExitCode;

use app::commands::{Cli, failure};
use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = cli.format();
    match cli.run().await {
        Ok(exit) => exit.into(),
        Err(error) => failure::tell(&error, format).into(),
    }
}
