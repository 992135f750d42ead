//! How far it is, on standard error: a bar on a terminal, plain lines otherwise, nothing when asked to be quiet.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use super::{
    operation::Snapshot,
    output::{clean, note},
};

/// Shortest time between two plain lines while the state stays the same: a log is to be read later.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// How often a bar is drawn although nothing came, so that its clock moves.
const TICK: Duration = Duration::from_millis(250);

/// Where it goes.
#[derive(Debug)]
pub enum Progress {
    /// A bar that is drawn over itself.
    Bar(ProgressBar),
    /// Lines: what was shown last, and when.
    Lines(Option<(String, Instant)>),
    /// Nothing.
    Silent,
}

impl Progress {
    /// What suits standard error.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Silent;
        }
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if dumb || !io::stderr().is_terminal() {
            return Self::Lines(None);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(spinner());
        bar.enable_steady_tick(TICK);
        Self::Bar(bar)
    }

    /// Shows one look. A bar appears only once the total is final: before, a share of it would be a lie.
    pub fn show(&mut self, snapshot: &Snapshot) {
        let line = clean(&snapshot.line());
        match self {
            Self::Silent => {}
            Self::Bar(bar) => {
                if snapshot.expansion_complete && bar.length().is_none() {
                    bar.set_style(filled());
                }
                if snapshot.expansion_complete {
                    bar.set_length(snapshot.summary.labels.max(0).unsigned_abs());
                }
                bar.set_position(snapshot.settled().max(0).unsigned_abs());
                bar.set_message(line);
            }
            Self::Lines(last) => {
                let due = match last {
                    None => true,
                    Some((shown, at)) => *shown != line && (at.elapsed() >= LINE_EVERY || head(shown) != head(&line)),
                };
                if due {
                    note(&line);
                    *last = Some((line, Instant::now()));
                }
            }
        }
    }

    /// Leaves the terminal as the next line needs it.
    pub fn end(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The state at the beginning of a line.
fn head(line: &str) -> &str {
    line.split(':').next().unwrap_or_default()
}

// The templates are texts of ours; were one wrong, the usual style would do.
fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {elapsed_precise} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn filled() -> ProgressStyle {
    ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed_precise} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
