//! Configuration: one TOML file per process, unknown keys refused; the file is named on the command line.

use std::{fs, io, path::Path};

use serde::de::DeserializeOwned;

/// Why a configuration is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("configuration file {path}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not what the process expects; the text names key and line.
    #[error("configuration file {path}: {message}")]
    Content {
        /// Which.
        path: String,
        /// What is wrong, with the line.
        message: String,
    },
}

/// Reads and parses a configuration file. `T` must deny unknown fields.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| ConfigError::Read { path: name.clone(), source })?;
    toml::from_str(&text).map_err(|error| ConfigError::Content { path: name, message: message(&text, &error) })
}

/// The line and what is wrong there. The line itself is not repeated: it may hold a secret in a place of its own choice.
fn message(text: &str, error: &toml::de::Error) -> String {
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    }
}
