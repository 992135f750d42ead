//! `reshelf import`: the whole file is checked before anything is written.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args as ClapArgs;
use daemon::{
    SystemClock, SystemIds,
    identity::{ServiceCredentials, ServiceKey},
};
use db::sqlite::OpenError;
use domain::{IdSource as _, ServiceName, TrackingId};
use proto::{Transport, dtoflow_client};
use std::sync::Arc;

use crate::{
    data_dir::DataDir,
    platform::{Database, Platform, PlatformParts},
    records::{Lines, RecordWriter, WriteError, Written},
};

/// `reshelf import`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Records, one JSON object a line: `{"dto_type": …, "dto_id": …, "record": {…}}`
    file: PathBuf,
    /// Data directory of `reshelf dev`, running or not
    #[arg(long, default_value = ".reshelf", conflicts_with = "platform")]
    data_dir: PathBuf,
    /// Address of a running platform, e.g. `http://127.0.0.1:7400`
    #[arg(long, requires = "key")]
    platform: Option<String>,
    /// Private key of record-import, registered with that platform
    #[arg(long, requires = "platform")]
    key: Option<PathBuf>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let records = check(&args.file)?;
    let tracking_id: TrackingId = format!("import-{:016x}", SystemIds.bits()).parse()?;
    let target = Target::of(&args).await?;
    let transport = target.credentials.attach(target.transport);
    let written = write(&args.file, RecordWriter::new(dtoflow_client(transport), Some(&tracking_id))).await;
    if let Some(database) = target.database {
        database.close().await?;
    }
    let written = match &args.platform {
        Some(address) => written.with_context(|| format!("platform {address}"))?,
        None => written?,
    };
    println!(
        "{records} records: {} written, {} unchanged (tracking id {tracking_id})",
        written.written, written.unchanged
    );
    Ok(())
}

async fn write(file: &Path, mut writer: RecordWriter) -> anyhow::Result<Written> {
    for entry in Lines::open(file)? {
        let (_, record) = entry?;
        writer.push(record).await.map_err(|error| refused(file, &error))?;
    }
    writer.finish().await.map_err(|error| refused(file, &error))
}

/// Reads the whole file once, so that a wrong line is found before the first record is written.
fn check(file: &Path) -> anyhow::Result<u64> {
    let name = file.display();
    let mut records = 0;
    for entry in Lines::open(file).with_context(|| format!("cannot read {name}"))? {
        entry.with_context(|| format!("{name}, nothing was written"))?;
        records += 1;
    }
    if records == 0 {
        bail!("{name} holds no records");
    }
    Ok(records)
}

/// Says which line DTOflow refused.
fn refused(file: &Path, error: &WriteError) -> anyhow::Error {
    let line = error
        .position
        .and_then(|position| Lines::open(file).ok()?.nth(position)?.ok())
        .map(|(line, _)| format!("line {line}: "))
        .unwrap_or_default();
    anyhow::anyhow!(
        "{}: {line}{} (of earlier batches {} records were written; none of the refused one; repeating the import is safe)",
        file.display(),
        error.refusal,
        error.written.total()
    )
}

/// Where the records go. Holds what must live as long as the transport.
struct Target {
    transport: Transport,
    credentials: ServiceCredentials,
    /// Set when nobody else had the database open.
    database: Option<Database>,
}

impl Target {
    async fn of(args: &Args) -> anyhow::Result<Self> {
        let clock = Arc::new(SystemClock);
        if let (Some(address), Some(key)) = (&args.platform, &args.key) {
            let key = ServiceKey::read(key)?;
            let transport = daemon::channel::connect(std::slice::from_ref(address)).context("--platform")?;
            let credentials = ServiceCredentials::new(ServiceName::RecordImport, key, clock);
            return Ok(Self { transport, credentials, database: None });
        }
        let dir = DataDir::open(&args.data_dir)?;
        let key = dir.service_key(ServiceName::RecordImport)?;
        let credentials = ServiceCredentials::new(ServiceName::RecordImport, key, clock.clone());
        let (transport, database) = match Database::open(&dir.database()).await {
            Ok(database) => {
                let parts =
                    PlatformParts { registry: Arc::new(dir.write_registry()?).into(), clock, ids: Arc::new(SystemIds) };
                (Platform::open(&database, parts).await?.transport(), Some(database))
            }
            // A running `dev` holds the database: it takes the records itself.
            Err(error @ OpenError::Locked { .. }) => {
                let path = dir.platform_address();
                let address = std::fs::read_to_string(&path)
                    .with_context(|| format!("{error}, and {} does not say where it answers", path.display()))?;
                (daemon::channel::connect(&[address.trim().to_owned()])?, None)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { transport, credentials, database })
    }
}
