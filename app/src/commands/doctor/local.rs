//! The database and the disk of a data directory on this machine.

use std::path::Path;

use db::sqlite::{Inspection, inspect};

use super::{Check, Verdict};
use crate::data_dir::{DataDir, MIB};

/// Free space below which a word is due, in bytes: a store of 40,000 pictures takes about half of it.
const FREE_BYTES_MIN: u64 = 1024 * MIB;

pub(super) async fn checks(path: &Path) -> Vec<Check> {
    let Ok(dir) = DataDir::open(path) else {
        return vec![Check::skipped("database", &format!("{} is no data directory of this machine", path.display()))];
    };
    if !dir.database().exists() {
        return vec![Check::skipped("database", &format!("{} holds none yet", dir.path().display()))];
    }
    let database = match inspect(&dir.database()).await {
        Ok(seen) => database(&seen),
        Err(error) => Check::new("database", Verdict::Failed, error.to_string()),
    };
    vec![database, disk(&dir)]
}

fn database(seen: &Inspection) -> Check {
    let used = if seen.in_use { "in use" } else { "not in use" };
    let found =
        format!("{}: {used}, schema {} of {}, {} MiB", seen.path.display(), seen.schema, seen.known, seen.bytes / MIB);
    if !seen.complaints.is_empty() {
        return Check::new("database", Verdict::Failed, format!("{found}; {}", seen.complaints.join("; ")))
            .advise("it is damaged: stop the platform and restore a backup");
    }
    match seen.schema.cmp(&seen.known) {
        std::cmp::Ordering::Less => Check::new("database", Verdict::Warning, found)
            .advise("of an older build: back it up, then `reshelf migrate`"),
        std::cmp::Ordering::Greater => {
            Check::new("database", Verdict::Failed, found).advise("of a newer build: use that one")
        }
        std::cmp::Ordering::Equal => Check::new("database", Verdict::Ok, found),
    }
}

fn disk(dir: &DataDir) -> Check {
    match dir.require_space(FREE_BYTES_MIN) {
        Ok(()) => Check::new("disk", Verdict::Ok, format!("at least {} MiB are free", FREE_BYTES_MIN / MIB)),
        Err(error) => Check::new("disk", Verdict::Warning, format!("{error:#}"))
            .advise("free space before an operation needs it: a full disk refuses every write"),
    }
}
