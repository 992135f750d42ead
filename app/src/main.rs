//! The program `reshelf`.

use std::process::ExitCode;

use app::commands::{Cli, failure};
use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reshelf: {}", failure::one_line(&error));
            ExitCode::FAILURE
        }
    }
}
