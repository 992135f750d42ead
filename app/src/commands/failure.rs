//! What a person reads when a command fails: one line that names the fix where we know it.

use std::io;

use crate::cli::{CliError, Exit, Format, output::note};

/// Tells it on standard error, as JSON when answers are, and gives the exit code.
pub fn tell(error: &anyhow::Error, format: Format) -> Exit {
    match (error.downcast_ref::<CliError>(), format) {
        (Some(error), Format::Table) => {
            note(&format!("reshelf: {error}"));
            error.exit
        }
        (Some(error), Format::Json | Format::Jsonl) => {
            note(&error.json().to_string());
            error.exit
        }
        (None, _) => {
            note(&format!("reshelf: {}", one_line(error)));
            Exit::Unexpected
        }
    }
}

/// The whole cause in one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = daemon::failure::one_line(error.as_ref());
    if let Some(fix) = error.chain().find_map(fix) {
        line.push_str("; ");
        line.push_str(fix);
    }
    line
}

/// What to do about a cause whose own text does not say it.
fn fix(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if matches!(cause.downcast_ref::<db::DbError>(), Some(db::DbError::DiskFull)) {
        return Some("free some space and start again");
    }
    match cause.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some("free some space and start again"),
        io::ErrorKind::AddrInUse => Some("stop what listens there, or choose another address with --listen"),
        io::ErrorKind::AddrNotAvailable => Some("this machine has no such address: choose another with --listen"),
        io::ErrorKind::PermissionDenied => Some("check the owner and permissions"),
        io::ErrorKind::ReadOnlyFilesystem => Some("choose a directory that can be written"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn one_line_with_the_fix_and_without_repetition() {
        let error = Err::<(), _>(io::Error::from(io::ErrorKind::AddrInUse))
            .context("cannot listen on 127.0.0.1:8080")
            .unwrap_err();
        let line = one_line(&error);
        assert!(line.starts_with("cannot listen on 127.0.0.1:8080: "), "{line}");
        assert!(line.ends_with("choose another address with --listen"), "{line}");

        let error = anyhow::Error::new(io::Error::from(io::ErrorKind::StorageFull)).context("a\nb");
        let line = one_line(&error);
        assert!(line.starts_with("a b: ") && line.ends_with("free some space and start again"), "{line}");
    }
}
