//! Logs: one line an event, JSON or for people, to standard error; standard output belongs to the program's answer.

use std::{path::Path, sync::Mutex};

use tracing_appender::rolling::{InitError, RollingFileAppender, Rotation};
use tracing_subscriber::{
    EnvFilter, Layer as _, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

mod bounded;

use bounded::{BoundedDaily, DAY_MAX_BYTES, today, written_today};

/// Days of log files that are kept: a weekend and the week before it.
const LOG_FILES_MAX: usize = 9;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging for a program that somebody watches: what `RESHELF_LOG` (or `default_filter`) names goes to one file a
/// day in `dir`, of 64 MiB at most, warnings and errors also to standard error. Does nothing when logging was started before.
pub fn init_watched(dir: &Path, default_filter: &str) -> Result<(), InitError> {
    let filter = EnvFilter::try_from_env("RESHELF_LOG").unwrap_or_else(|_| EnvFilter::new(default_filter));
    // The appender makes it too, but first complains to standard error that it is not there. What fails here fails there,
    // and is told from there.
    std::fs::create_dir_all(dir).ok();
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("reshelf")
        .filename_suffix("log")
        .max_log_files(LOG_FILES_MAX)
        .build(dir)?;
    let bounded = BoundedDaily::new(files, DAY_MAX_BYTES, written_today(dir), today);
    let file = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Mutex::new(bounded)).with_filter(filter);
    let screen =
        tracing_subscriber::fmt::layer().with_ansi(false).with_writer(std::io::stderr).with_filter(LevelFilter::WARN);
    if tracing_subscriber::registry().with(file).with(screen).try_init().is_err() {
        tracing::debug!("logging was started before");
    }
    Ok(())
}

/// Starts logging at `RESHELF_LOG` (or `default_filter`). Control characters in values are escaped by the formatter.
/// Does nothing when logging was started before.
pub fn init(format: LogFormat, default_filter: &str) {
    let filter = EnvFilter::try_from_env("RESHELF_LOG").unwrap_or_else(|_| EnvFilter::new(default_filter));
    let registry = tracing_subscriber::registry().with(filter);
    let started = match format {
        LogFormat::Json => registry
            .with(tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(std::io::stderr))
            .try_init(),
        LogFormat::Text => {
            registry.with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(std::io::stderr)).try_init()
        }
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}
