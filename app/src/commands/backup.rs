//! `reshelf backup`: a consistent copy of a SQLite database, also of one that is being written, with a list of what else a
//! restore needs.
//!
//! A folder without `backup.json` is no complete backup: it is written last.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args as ClapArgs;
use daemon::SystemClock;
use db::DatabaseUrl;
use domain::Clock as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    cli::{
        Exit, Format, Output,
        output::{note, pairs},
    },
    data_dir::{DataDir, USUAL, write_private},
};

/// Files beside the database that are not needed to go on: written anew at every start, or pictures and logs.
const NOT_NEEDED: [&str; 9] = [
    "reshelf.db",
    "reshelf.db-wal",
    "reshelf.db-shm",
    "reshelf.db.lock",
    "platform.addr",
    "gateway.addr",
    "operator.token",
    "labels",
    "logs",
];
/// Most files of a data directory that are listed: it holds about a dozen.
const FILES_MAX: usize = 1_000;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// `reshelf backup`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Folder to make; must not exist
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Data directory of `reshelf dev`, running or not
    #[arg(long, default_value = USUAL)]
    data_dir: PathBuf,
    /// Database of a platform of several processes, e.g. `sqlite:///var/lib/reshelf/reshelf.db`
    #[arg(long, conflicts_with = "data_dir")]
    database: Option<DatabaseUrl>,
    /// Copy private keys and registry too; without it they are only listed
    #[arg(long, conflicts_with = "database")]
    with_keys: bool,
    /// How the answer looks
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(super) async fn run(args: &Args) -> anyhow::Result<Exit> {
    let (database, beside) = match &args.database {
        Some(DatabaseUrl::Sqlite(path)) => (path.clone(), Vec::new()),
        Some(_) => anyhow::bail!("PostgreSQL has tools of its own for this: use pg_dump, or a snapshot of the cluster"),
        None => {
            let dir = DataDir::open(&args.data_dir)?;
            let mut beside = Vec::new();
            files_below(dir.path(), Path::new(""), &mut beside)?;
            (dir.database(), beside)
        }
    };
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700).create(&args.to).map_err(|error| no_folder(&args.to, &error))?;
    // Before the database: checkpoints of the audit log must not tell of entries that the copy does not have.
    let mut files = Vec::new();
    for name in beside {
        let from = args.data_dir.join(&name);
        if args.with_keys {
            copy_private(&from, &args.to.join(&name))?;
        }
        files.push(json!({"path": name.display().to_string(), "sha256": digest(&from)?, "copied": args.with_keys}));
    }
    let target = args.to.join("reshelf.db");
    let copied = db::sqlite::copy(&database, &target).await.context("the copy failed; remove its folder")?;
    anyhow::ensure!(
        copied.complaints.is_empty(),
        "the copy is damaged, so the database is: {}",
        copied.complaints.join("; ")
    );

    fs::set_permissions(&target, fs::Permissions::from_mode(0o600))?;
    let manifest = json!({
        "made_at": SystemClock.now().to_string(),
        "program": concat!("reshelf ", env!("CARGO_PKG_VERSION")),
        "database": {
            "from": database.display().to_string(),
            "file": "reshelf.db",
            "schema": copied.schema,
            "bytes": copied.bytes,
            "sha256": digest(&target)?,
        },
        "files": files,
    });
    write_private(&args.to.join("backup.json"), &format!("{manifest:#}\n"))?;
    told(args, &manifest)?;
    Ok(Exit::Success)
}

fn told(args: &Args, manifest: &Value) -> anyhow::Result<()> {
    let output = Output { format: args.output, quiet: false };
    let files = manifest["files"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |pointer: &str| crate::cli::output::at(manifest, pointer);
    output.one(manifest, || {
        let names: Vec<String> = files.iter().map(|file| crate::cli::output::at(file, "/path")).collect();
        pairs(&[
            ("backup", args.to.display().to_string()),
            ("database", text("/database/from")),
            ("bytes", text("/database/bytes")),
            ("schema", text("/database/schema")),
            (if args.with_keys { "files with it" } else { "not copied" }, names.join(", ")),
        ])
    })?;
    if !args.with_keys && !files.is_empty() {
        note("private keys were not copied: keep them elsewhere, or say --with-keys");
    }
    Ok(())
}

/// A copy never goes over what is there: that may be another backup.
fn no_folder(to: &Path, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => anyhow::anyhow!("--to: {} is there already; name a new folder", to.display()),
        _ => anyhow::anyhow!("--to: cannot make the folder {}: {error}", to.display()),
    }
}

/// Files of a data directory that a restore needs beside the database.
fn files_below(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let mut names: Vec<PathBuf> =
        fs::read_dir(root.join(folder))?.map(|entry| Ok(folder.join(entry?.file_name()))).collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let needed = !NOT_NEEDED.iter().any(|other| Path::new(other) == name);
        let kind = fs::symlink_metadata(root.join(&name))?.file_type();
        if needed && kind.is_dir() {
            files_below(root, &name, found)?;
        } else if needed && kind.is_file() {
            found.push(name);
            anyhow::ensure!(
                found.len() <= FILES_MAX,
                "{} holds more than {FILES_MAX} files: is it a data directory?",
                root.display()
            );
        }
    }
    Ok(())
}

fn copy_private(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copy = || {
        if let Some(folder) = to.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
        file.write_all(&fs::read(from)?)?;
        file.sync_all()
    };
    copy().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

fn digest(path: &Path) -> anyhow::Result<String> {
    let read = || {
        let mut file = fs::File::open(path)?;
        let (mut digest, mut chunk) = (Sha256::new(), vec![0; CHUNK_BYTES]);
        loop {
            match file.read(&mut chunk)? {
                0 => return io::Result::Ok(domain::hex(digest.finalize())),
                count => digest.update(chunk.get(..count).unwrap_or_default()),
            }
        }
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}
