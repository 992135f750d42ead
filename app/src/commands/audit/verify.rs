//! `reshelf audit verify`: whether the audit log is what was written, looked at from outside, without a gateway or a token.
//!
//! A SQLite database is copied first and the copy is read, so one in use may be checked, and nothing is changed by that.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use cqs::audit::{
    checkpoint::{self, Checkpoint, CheckpointError},
    verify::{Broken, Verified, verify},
};
use daemon::identity::PublicKey;
use db::DatabaseUrl;
use serde_json::json;

use crate::{
    cli::{
        CliError, Exit, Output,
        output::{at, pairs},
    },
    data_dir::{DataDir, USUAL},
    platform::Database,
};

/// Looks in all. A second one only where entries were deleted after their time between reading checkpoints and log.
const LOOKS: usize = 2;

/// `reshelf audit verify`
#[derive(Debug, ClapArgs)]
pub(super) struct VerifyArgs {
    /// Data directory of `reshelf dev`, running or not
    #[arg(long, default_value = USUAL)]
    data_dir: PathBuf,
    /// Database of a platform of several processes; wants --checkpoints and --public-key
    #[arg(long, conflicts_with = "data_dir", requires = "checkpoints", requires = "public_key")]
    database: Option<DatabaseUrl>,
    /// File of signed checkpoints; left out: the data directory's
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,
    /// Public half of the key that signs them, as the platform's log tells it at its start; left out: the data directory's
    // One key in sixty-four begins with a hyphen.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    public_key: Option<PublicKey>,
}

/// What is checked against what.
struct Evidence {
    database: DatabaseUrl,
    checkpoints: PathBuf,
    key: PublicKey,
}

impl Evidence {
    fn of(args: VerifyArgs) -> Result<Self, CliError> {
        if let (Some(database), Some(checkpoints), Some(key)) = (&args.database, &args.checkpoints, &args.public_key) {
            return Ok(Self { database: database.clone(), checkpoints: checkpoints.clone(), key: key.clone() });
        }
        let dir = DataDir::open(&args.data_dir).map_err(|error| CliError::usage("--data-dir", format!("{error:#}")))?;
        let key = match args.public_key {
            Some(key) => key,
            None => dir.audit_public_key().map_err(|error| CliError::usage("--public-key", format!("{error:#}")))?,
        };
        Ok(Self {
            database: DatabaseUrl::Sqlite(dir.database()),
            checkpoints: args.checkpoints.unwrap_or_else(|| dir.audit_checkpoints()),
            key,
        })
    }

    /// Checkpoints before the log: what is signed meanwhile is not missed in it.
    async fn look(&self) -> Result<Verified, CliError> {
        let (checkpoints, _) = checkpoint::read(&self.checkpoints, &self.key).map_err(|error| match error {
            CheckpointError::Broken { .. } => CliError::new(Exit::Unexpected, error.to_string())
                .advise("the checkpoints are not what the platform wrote, or the key is another one"),
            other => unreadable("--checkpoints", &other.into()),
        })?;
        self.walk(&checkpoints).await.map_err(|error| unreadable("--database", &error))
    }

    async fn walk(&self, checkpoints: &[Checkpoint]) -> anyhow::Result<Verified> {
        let DatabaseUrl::Sqlite(path) = &self.database else {
            return checked(&self.database, checkpoints).await;
        };
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Beside the database there is room; where one may not write there, elsewhere.
        let folder = tempfile::tempdir_in(beside).or_else(|_| tempfile::tempdir())?;
        let copy = folder.path().join("copy.db");
        db::sqlite::copy(path, &copy).await?;
        checked(&DatabaseUrl::Sqlite(copy), checkpoints).await
    }
}

async fn checked(url: &DatabaseUrl, checkpoints: &[Checkpoint]) -> anyhow::Result<Verified> {
    let database = Database::look_at(url).await?;
    let found = verify(&*database.cqs(), checkpoints).await;
    database.close().await?;
    Ok(found?)
}

fn unreadable(flag: &str, error: &anyhow::Error) -> CliError {
    CliError::usage(flag, format!("{error:#}"))
}

pub(super) async fn run(args: VerifyArgs, output: Output) -> Result<Exit, CliError> {
    let evidence = Evidence::of(args)?;
    let mut found = evidence.look().await?;
    for _ in 1..LOOKS {
        if matches!(found.broken, Some(Broken::Cut { .. })) {
            found = evidence.look().await?;
        }
    }
    let answer = json!({
        "whole": found.broken.is_none(),
        "broken": found.broken.as_ref().map(ToString::to_string),
        "entries": found.entries,
        "last_entry": found.head.id,
        "last_hash": found.head.hash.to_hex(),
        "signed_to": found.sealed_to,
        "public_key": evidence.key.as_str(),
    });
    output.one(&answer, || {
        pairs(&[
            ("audit log", if found.broken.is_none() { "whole".to_owned() } else { "BROKEN".to_owned() }),
            ("first broken", found.broken.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)),
            ("entries checked", at(&answer, "/entries")),
            ("last entry", at(&answer, "/last_entry")),
            ("signed up to", at(&answer, "/signed_to")),
            ("signed by", at(&answer, "/public_key")),
        ])
    })?;
    match found.broken {
        None => Ok(Exit::Success),
        Some(broken) => Err(CliError::new(Exit::Unexpected, broken.to_string())
            .advise("keep the database and the checkpoints as they are, and compare with a backup")),
    }
}
