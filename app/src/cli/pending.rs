//! Tracking ids of requests whose outcome is not known yet.
//!
//! A request without a tracking id gets one here, written down before the first attempt. The same command line repeated
//! after a lost connection finds it again and so is the same request; once there is an answer, the note goes.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use domain::{IdSource, TrackingId};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{CliError, Exit};
use crate::data_dir::write_private;

/// Where the notes lie, below the user's state directory.
const FOLDER: &str = "reshelf/pending";

/// A tracking id, and the note that keeps it until there is an answer.
#[derive(Debug)]
pub struct Pending {
    /// The id.
    pub tracking_id: TrackingId,
    note: Option<PathBuf>,
}

impl Pending {
    /// An id that the operator chose needs no note.
    pub fn chosen(tracking_id: TrackingId) -> Self {
        Self { tracking_id, note: None }
    }

    /// The id that this very request had when it was last tried without an answer, or a fresh one.
    pub fn of_request(url: &str, path: &str, body: &Value, ids: &dyn IdSource) -> Result<Self, CliError> {
        let Some(folder) = state_folder() else { return Self::fresh(ids) };
        Self::in_folder(&folder, &format!("{url}\n{path}\n{body}"), ids)
    }

    fn in_folder(folder: &Path, request: &str, ids: &dyn IdSource) -> Result<Self, CliError> {
        let note = folder.join(domain::hex(Sha256::digest(request.as_bytes())));
        match fs::read_to_string(&note) {
            Ok(text) => {
                if let Ok(tracking_id) = text.trim().parse() {
                    return Ok(Self { tracking_id, note: Some(note) });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&note, &error.to_string())),
        }
        let fresh = Self::fresh(ids)?;
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error.to_string()))?;
        write_private(&note, fresh.tracking_id.as_str()).map_err(|error| unwritable(&note, &format!("{error:#}")))?;
        Ok(Self { note: Some(note), ..fresh })
    }

    fn fresh(ids: &dyn IdSource) -> Result<Self, CliError> {
        let tracking_id = format!("cli-{}", ids.hex_id())
            .parse()
            .map_err(|error| CliError::new(Exit::Unexpected, format!("no tracking id: {error}")))?;
        Ok(Self { tracking_id, note: None })
    }

    /// How the request ended. Once there is an answer, the next request of this kind is another one.
    pub fn settle<T>(self, outcome: &Result<T, CliError>) {
        if !matches!(outcome, Err(error) if matches!(error.exit, Exit::Unavailable | Exit::Detached)) {
            self.answered();
        }
    }

    fn answered(self) {
        if let Some(note) = self.note
            && let Err(error) = fs::remove_file(&note)
        {
            super::output::note(&format!(
                "{} could not be removed: {error}; remove it, or the next request is taken for this one",
                note.display()
            ));
        }
    }
}

fn unwritable(path: &Path, why: &str) -> CliError {
    CliError::usage("--tracking-id", format!("a fresh one cannot be kept in {}: {why}", path.display()))
        .advise("name one with --tracking-id")
}

fn state_folder() -> Option<PathBuf> {
    let not_empty = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = not_empty("XDG_STATE_HOME").or_else(|| not_empty("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join(FOLDER))
}

#[cfg(test)]
mod tests {
    use domain::SeededIds;

    use super::*;

    #[test]
    fn the_same_request_keeps_its_id_until_it_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let ids = SeededIds::new(7);
        let ask = |request: &str| Pending::in_folder(&folder.path().join("pending"), request, &ids).unwrap();
        let first = ask("a");
        assert_eq!(ask("a").tracking_id, first.tracking_id);
        assert_ne!(ask("b").tracking_id, first.tracking_id);
        let id = first.tracking_id.clone();
        first.answered();
        assert_ne!(ask("a").tracking_id, id);
    }
}
