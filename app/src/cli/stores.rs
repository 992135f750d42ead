//! A list of stores, from a file or standard input: one id a line, `#` begins a comment.

use std::{
    collections::BTreeSet,
    io::{self, Read as _},
    path::PathBuf,
    str::FromStr,
};

use domain::StoreId;

use super::CliError;

/// Largest list that is read, in bytes: some 100,000 stores.
const LIST_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Which stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stores {
    /// All that the tenant has and the token reaches.
    All,
    /// Those of a file.
    File(PathBuf),
    /// Those on standard input.
    Stdin,
}

impl FromStr for Stores {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "all" => Self::All,
            "-" => Self::Stdin,
            path => Self::File(path.into()),
        })
    }
}

/// Reads a list. Nothing is dropped silently: a line that is no id and a store that stands twice are refused by number.
pub fn read(from: &Stores) -> Result<Vec<StoreId>, CliError> {
    let (name, text) = match from {
        Stores::All => return Ok(Vec::new()),
        Stores::File(path) => {
            let file = std::fs::File::open(path);
            let file =
                file.map_err(|error| CliError::usage("--stores", format!("cannot read {}: {error}", path.display())))?;
            (path.display().to_string(), text_of(file)?)
        }
        Stores::Stdin => ("standard input".to_owned(), text_of(io::stdin())?),
    };
    parse(&name, &text)
}

fn text_of(source: impl io::Read) -> Result<String, CliError> {
    let mut text = String::new();
    let read = source.take(LIST_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| CliError::usage("--stores", format!("cannot be read: {error}")))?;
    if text.len() as u64 > LIST_BYTES_MAX {
        return Err(CliError::usage("--stores", format!("holds more than {LIST_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn parse(name: &str, text: &str) -> Result<Vec<StoreId>, CliError> {
    let mut seen = BTreeSet::new();
    let mut stores = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let id = line.split('#').next().unwrap_or_default().trim();
        if id.is_empty() {
            continue;
        }
        let at = format!("{name}, line {}", number + 1);
        let store: StoreId = id.parse().map_err(|error| CliError::usage(&at, format!("a store id {error}")))?;
        if !seen.insert(store.clone()) {
            return Err(CliError::usage(&at, format!("store {store} stands twice")));
        }
        stores.push(store);
    }
    if stores.is_empty() {
        return Err(CliError::usage("--stores", format!("{name} names no store")));
    }
    Ok(stores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_whole_or_refused_by_line() {
        let stores = parse("list", "# the north\nberlin\n\n  krakow # late\n").unwrap();
        assert_eq!(stores.iter().map(StoreId::as_str).collect::<Vec<_>>(), ["berlin", "krakow"]);
        for (text, word) in [("berlin\nberlin", "line 2"), ("a b", "line 1"), ("# none", "names no store")] {
            assert!(parse("list", text).unwrap_err().to_string().contains(word), "{text}");
        }
        assert_eq!("all".parse(), Ok(Stores::All));
        assert_eq!("-".parse(), Ok(Stores::Stdin));
    }
}
