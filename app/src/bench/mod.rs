//! `reshelf bench`: how fast the platform is on the machine it runs on, and where that ends.
//!
//! In reading order: [`fanout`], [`model`], [`urgent`], [`backlog`], [`cancel`] and [`export`] are the measurements; `platform` is the process
//! they run on, `load` and `shop` write the records they need, `filler` fills a queue, `null` works a queue without rendering, `operation` waits,
//! `latency`, `rendering`, `split` and `probe` are parts of a measurement, `watch` samples what the process needs, `figures` are
//! the numbers.
//!
//! Invariants
//! - What is measured is what runs: the servers, clients, credentials and database of `dev`. Only the null renderer
//!   reports labels as done without rendering them, and the exporter throws pictures away but in [`export`].
//! - Progress goes to standard error; the last line of standard output is one JSON object with every figure.
//! - A figure that was not measured is absent, never guessed.
//!
//! Deliberately not here: limits to hold. `docs/performance.md` compares; a benchmark on a busy machine fails nothing.

pub mod backlog;
pub mod cancel;
pub mod export;
pub mod fanout;
pub mod model;
pub mod urgent;

mod figures;
mod filler;
mod latency;
mod load;
mod null;
mod operation;
mod platform;
mod probe;
mod rendering;
mod shop;
mod split;
mod watch;

use std::path::PathBuf;

use db::DatabaseUrl;

pub use figures::Report;

/// Whether labels are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RendererKind {
    /// Labels are reported as done without being read or rendered; everything of the queues is real.
    Null,
    /// Render, merge and export (to nowhere).
    Real,
}

/// What every measurement can be told.
#[derive(Debug, Clone)]
pub struct Common {
    /// Data directory, which must be empty; none: a temporary one, removed afterwards.
    pub data_dir: Option<PathBuf>,
    /// Where the data lies, which must be empty; none: in a file of the data directory.
    pub database: Option<DatabaseUrl>,
    /// How the queues are worked.
    pub pipelines: worker::PipelineSettings,
}

/// The tenant of every record.
const TENANT: &str = "bench";

/// A line of progress.
fn progress(line: impl std::fmt::Display) {
    eprintln!("bench: {line}");
}
