//! Configuration: one TOML file per process, named on the command line, and the environment over it; unknown keys are
//! refused in both.
//!
//! A variable is a prefix of the program's own and the key, in capitals, tables separated by two underscores:
//! `RESHELF_WORKER__PIPELINES__LEASE_MS=60000`. Its text is a value as the file would have it; what is none is a text.

use std::{env, fs, io, path::Path};

use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// What separates tables in the name of a variable.
const SEPARATOR: &str = "__";

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
    /// A variable cannot be laid over the file.
    #[error("environment variable {name}: {message}")]
    Variable {
        /// Which.
        name: String,
        /// What is wrong with it.
        message: &'static str,
    },
    /// The file, with what the environment lays over it, is not what the process expects; the text names the key.
    #[error("configuration file {path} under {variables}: {message}")]
    Overlaid {
        /// Which file.
        path: String,
        /// The variables over it.
        variables: String,
        /// What is wrong.
        message: String,
    },
}

/// Reads and parses a configuration file. `T` must deny unknown fields.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let (name, text) = text_of(path)?;
    parsed(name, &text)
}

/// As [`read`], with the variables that begin with `prefix` (e.g. `RESHELF_WORKER__`) laid over the file.
pub fn read_with_environment<T: DeserializeOwned>(path: &Path, prefix: &str) -> Result<T, ConfigError> {
    let mut variables = Vec::new();
    for (name, value) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            let value = value.into_string();
            let value = value.map_err(|_| ConfigError::Variable { name: name.clone(), message: "is not UTF-8" })?;
            variables.push((name, value));
        }
    }
    // The environment has no order; what is said of it has.
    variables.sort();
    let (file, text) = text_of(path)?;
    overlaid(file, &text, prefix, &variables)
}

fn text_of(path: &Path) -> Result<(String, String), ConfigError> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => Ok((name, text)),
        Err(source) => Err(ConfigError::Read { path: name, source }),
    }
}

fn parsed<T: DeserializeOwned>(path: String, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Content { path, message: message(text, &error) })
}

fn overlaid<T: DeserializeOwned>(
    path: String,
    text: &str,
    prefix: &str,
    variables: &[(String, String)],
) -> Result<T, ConfigError> {
    if variables.is_empty() {
        // Only so does the message have a line.
        return parsed(path, text);
    }
    let mut table: Table = parsed(path.clone(), text)?;
    for (name, value) in variables {
        let key = name.strip_prefix(prefix).unwrap_or(name).to_lowercase();
        let segments: Vec<&str> = key.split(SEPARATOR).collect();
        set(&mut table, &segments, value_of(value))
            .map_err(|message| ConfigError::Variable { name: name.clone(), message })?;
    }
    Value::Table(table).try_into().map_err(|error: toml::de::Error| ConfigError::Overlaid {
        path,
        variables: variables.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
        // Without a line to show, the text names the key and nothing of the file.
        message: error.to_string().trim().replace('\n', " "),
    })
}

/// The text as a value of the file, e.g. `true`, `20`, `["http://a:7400"]`; a text of its own when it is none.
fn value_of(text: &str) -> Value {
    let read = toml::from_str::<Table>(&format!("value = {text}"));
    match read.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value")) {
        Some(value) => value,
        None => Value::String(text.to_owned()),
    }
}

fn set(table: &mut Table, segments: &[&str], value: Value) -> Result<(), &'static str> {
    match segments {
        [] | ["", ..] => Err("names no key"),
        [key] => {
            table.insert((*key).to_owned(), value);
            Ok(())
        }
        [key, rest @ ..] => match table.entry(*key).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(inner) => set(inner, rest, value),
            _ => Err("names a key below one that is no table"),
        },
    }
}

/// The line, its key and what is wrong there. The line itself is not repeated: it may hold a secret in a place of its own
/// choice.
fn message(text: &str, error: &toml::de::Error) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return error.message().to_owned() };
    let number = before.matches('\n').count();
    let key = text.lines().nth(number).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
    // What is missing has no line; the one that is named begins its table, and its key is another.
    let key = key.filter(|_| !error.message().starts_with("missing field"));
    match key.filter(|key| is_bare(key)) {
        Some(key) => format!("line {}: {key}: {}", number + 1, error.message()),
        None => format!("line {}: {}", number + 1, error.message()),
    }
}

/// Whether this is a key as one writes it without quotes, which a value in the wrong place is not.
fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        database: String,
        platform: Vec<String>,
        #[serde(default)]
        exporter: Exporter,
    }

    #[derive(Debug, Default, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Exporter {
        folder: String,
        pause_ms: u32,
        discard: bool,
    }

    const FILE: &str = "database = \"sqlite://a\"\nplatform = [\"http://a\"]\n[exporter]\nfolder = \"labels\"\n";

    fn read_over(file: &str, variables: &[(&str, &str)]) -> Result<Sample, String> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (format!("P__{name}"), (*value).to_owned())).collect();
        overlaid("file".to_owned(), file, "P__", &variables).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_lies_over_the_file() {
        let variables = [
            ("DATABASE", "postgres://user:p%40ss@db/reshelf?sslmode=require"),
            ("PLATFORM", "[\"http://b\", \"http://c\"]"),
            ("EXPORTER__PAUSE_MS", "20"),
            ("EXPORTER__DISCARD", "true"),
        ];
        let sample = read_over(FILE, &variables).unwrap();
        let exporter = Exporter { folder: "labels".to_owned(), pause_ms: 20, discard: true };
        let platform = ["http://b", "http://c"].map(str::to_owned).to_vec();
        assert_eq!(sample, Sample { database: variables[0].1.to_owned(), platform, exporter });
        // What would be a number is a text when it is written as one; the file may be empty.
        let sample = read_over("", &[("DATABASE", "\"7\""), ("PLATFORM", "[]")]).unwrap();
        assert_eq!(sample.database, "7");
    }

    #[test]
    fn a_missing_key_is_not_told_as_the_fault_of_another() {
        let error = read_over("platform = []\n", &[]).unwrap_err();
        assert!(error.contains("missing field `database`") && !error.contains("platform:"), "{error}");
    }

    #[test]
    fn a_variable_that_is_no_key_is_refused_by_name() {
        let error = read_over(FILE, &[("DATABSE", "x")]).unwrap_err();
        assert!(error.contains("P__DATABSE") && error.contains("unknown field `databse`"), "{error}");
        let error = read_over(FILE, &[("EXPORTER__FOLDERS", "x")]).unwrap_err();
        assert!(error.contains("P__EXPORTER__FOLDERS") && error.contains("unknown field `folders`"), "{error}");
        let error = read_over(FILE, &[("DATABASE__URL", "x")]).unwrap_err();
        assert_eq!(error, "environment variable P__DATABASE__URL: names a key below one that is no table");
        for name in ["", "EXPORTER__", "__DATABASE"] {
            let error = read_over(FILE, &[(name, "x")]).unwrap_err();
            assert_eq!(error, format!("environment variable P__{name}: names no key"));
        }
    }

    #[test]
    fn a_variable_sets_its_own_key_only() {
        let sample = read_over(FILE, &[("DATABASE", "\"x\"\nplatform = []")]).unwrap();
        assert_eq!(sample.database, "\"x\"\nplatform = []");
        assert_eq!(sample.platform, ["http://a"]);
    }

    #[test]
    fn without_variables_line_and_key_are_named() {
        let error = read_over("platform = []\ndatabase = 1\n", &[]).unwrap_err();
        assert!(error.starts_with("configuration file file: line 2: database: invalid type"), "{error}");
    }
}
