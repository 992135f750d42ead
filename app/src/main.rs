//! The program `reshelf`.

use std::process::ExitCode;

use app::commands::{Cli, failure};
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = cli.format();
    match daemon::threads::run(cli.run()).map_err(Into::into).flatten() {
        Ok(exit) => exit.into(),
        Err(error) => failure::tell(&error, format).into(),
    }
}
