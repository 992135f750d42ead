//! `reshelf completions`: what a shell needs to complete this program's command line.

use clap::{Args as ClapArgs, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use crate::cli::{CliError, Exit, Format, Output};

/// `reshelf completions`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Which shell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "reshelf", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Output { format: Format::Table, quiet: false }.text(script.trim_end())?;
    Ok(Exit::Success)
}
