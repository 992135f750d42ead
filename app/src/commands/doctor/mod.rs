//! `reshelf doctor`: checks from the configuration to the database, in the order in which one needs the other, and tells
//! what is wrong and what to do.

mod gateway;
mod local;

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use crate::{
    cli::{
        CliError, ConnectionArgs, Exit, Format,
        output::{at, column, note},
    },
    data_dir::USUAL,
};

/// `reshelf doctor`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Data directory whose database is checked, where there is one here
    #[arg(long, default_value = USUAL)]
    data_dir: PathBuf,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// It works, but will not for long, or not for all.
    Warning,
    Failed,
    /// What it needs is not there.
    Skipped,
}

/// One check.
#[derive(Debug)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    found: String,
    advice: String,
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, found: impl Into<String>) -> Self {
        Self { name, verdict, found: found.into(), advice: String::new() }
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    fn failed(name: &'static str, error: &CliError) -> Self {
        let found =
            if error.field.is_empty() { error.message.clone() } else { format!("{}: {}", error.field, error.message) };
        Self::new(name, Verdict::Failed, found).advise(error.advice.clone())
    }

    fn skipped(name: &'static str, why: &str) -> Self {
        Self::new(name, Verdict::Skipped, why)
    }

    fn json(&self) -> Value {
        let verdict = match self.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "failed",
            Verdict::Skipped => "skipped",
        };
        json!({"check": self.name, "verdict": verdict, "found": self.found, "advice": self.advice})
    }
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let mut checks = gateway::checks(&args.connection).await;
    checks.extend(local::checks(&args.data_dir).await);
    let rows: Vec<Value> = checks.iter().map(Check::json).collect();
    let columns = [
        column("check", |row| at(row, "/check")),
        column("verdict", |row| at(row, "/verdict")),
        column("found", |row| at(row, "/found")),
    ];
    let output = args.connection.output();
    output.many(&rows, &columns, "nothing was checked")?;
    if output.format == Format::Table {
        for check in checks.iter().filter(|check| !check.advice.is_empty()) {
            note(&format!("{}: {}", check.name, check.advice));
        }
    }
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if failed { Exit::Unexpected } else { Exit::Success })
}
