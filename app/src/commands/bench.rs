//! `reshelf bench`: measures, tells on standard error how it goes, and prints one JSON object.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Subcommand};
use daemon::telemetry::LogFormat;
use db::DatabaseUrl;
use worker::PipelineSettings;

use crate::bench::{Common, RendererKind, Report, backlog, cancel, export, fanout, model, urgent};

/// Logs of a measurement: what goes wrong, nothing a label.
const LOG_FILTER: &str = "warn";

/// Labels of a cancelled operation for each one that waits at the exporter, where their number is not chosen.
const LABELS_PER_WAITING: u32 = 5;

/// `reshelf bench`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    /// Data directory, which must hold no data; left out: a temporary one, removed afterwards
    #[arg(long, global = true)]
    data_dir: Option<PathBuf>,
    /// Database, which must be empty, e.g. `postgres://localhost/bench`; left out: a file of the data directory
    #[arg(long, global = true)]
    database: Option<DatabaseUrl>,
    /// Batches in hand at once per service
    #[arg(long, global = true)]
    pipelines: Option<usize>,
    /// Most items of a batch
    #[arg(long, global = true)]
    batch: Option<i32>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One design of many stores with many labels, expanded in two stages
    Fanout {
        /// Stores
        #[arg(long, default_value_t = 500)]
        stores: u32,
        /// Labels in each store
        #[arg(long, default_value_t = 10_000)]
        labels: u32,
        /// Whether labels are rendered
        #[arg(long, value_enum, default_value = "null")]
        renderer: RendererKind,
    },
    /// The ECC model of every label refreshed, with price changes in the midst of it
    Model {
        /// Labels over all stores
        #[arg(long)]
        labels: u32,
        /// Stores; left out: one for every 5,000 labels
        #[arg(long)]
        stores: Option<u32>,
        /// Whether labels are rendered
        #[arg(long, value_enum, default_value = "real")]
        renderer: RendererKind,
    },
    /// Claims at 10,000 waiting rows and at more
    Backlog {
        /// Waiting rows
        #[arg(long, default_value_t = 1_000_000)]
        waiting: u32,
        /// How many claim at once
        #[arg(long, default_value_t = 1)]
        claimers: u32,
        /// Minutes of claiming that follow while a transaction keeps an old snapshot; PostgreSQL only
        #[arg(long, default_value_t = 0)]
        pinned_minutes: u32,
    },
    /// Price changes of labels that wait in a throttled, paused or cancelled operation, against idle ones
    Urgent {
        /// Stores, each with an operation of its own
        #[arg(long, default_value_t = 5)]
        stores: u32,
        /// Labels in each store; of more than some 10,000 an operation holds no more at once
        #[arg(long, default_value_t = 10_000)]
        labels: u32,
        /// Price changes in each state
        #[arg(long, default_value_t = 200)]
        changes: u32,
    },
    /// An operation cancelled with rows waiting in the exporter's queue
    Cancel {
        /// Waiting rows
        #[arg(long, default_value_t = 1_000_000)]
        waiting: u32,
        /// Labels of the operation; left out: five times as many
        #[arg(long)]
        labels: Option<u32>,
    },
    /// Simulated access points kept busy by the exporter
    Export {
        /// Access points, all of one store
        #[arg(long, default_value_t = 4)]
        access_points: u32,
        /// Labels over all access points
        #[arg(long, default_value_t = 2_000)]
        labels: u32,
        /// How long each upload takes, in milliseconds
        #[arg(long, default_value_t = 20)]
        upload_ms: u32,
    },
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    daemon::telemetry::init(LogFormat::Text, LOG_FILTER);
    let usual = PipelineSettings::default();
    let pipelines = PipelineSettings {
        pipelines: args.pipelines.unwrap_or(usual.pipelines),
        batch_max: args.batch.unwrap_or(usual.batch_max),
        ..usual
    };
    let common = Common { data_dir: args.data_dir, database: args.database, pipelines };
    let report: Report = match args.what {
        What::Fanout { stores, labels, renderer } => {
            fanout::run(&common, fanout::Size { stores: stores.max(1), labels: labels.max(1), renderer }).await?
        }
        What::Model { labels, stores, renderer } => {
            model::run(&common, model::Size { labels: labels.max(1), stores, renderer }).await?
        }
        What::Urgent { stores, labels, changes } => {
            let changes = usize::try_from(changes.max(1))?;
            urgent::run(&common, urgent::Size { stores: stores.max(1), labels: labels.max(1), changes }).await?
        }
        What::Cancel { waiting, labels } => {
            let waiting = waiting.max(1);
            let labels = labels.unwrap_or(waiting.saturating_mul(LABELS_PER_WAITING));
            cancel::run(&common, cancel::Size { labels, waiting }).await?
        }
        What::Export { access_points, labels, upload_ms } => {
            let (access_points, labels) = (access_points.max(1), labels.max(1));
            let upload = Duration::from_millis(upload_ms.into());
            export::run(&common, export::Size { access_points, labels, upload }).await?
        }
        What::Backlog { waiting, claimers, pinned_minutes } => {
            backlog::run(&common, backlog::Size { waiting, claimers, pinned_minutes }).await?
        }
    };
    println!("{}", report.to_line());
    Ok(())
}
