//! Logs: one line an event, JSON or for people, to standard error; standard output belongs to the program's answer.

use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
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
