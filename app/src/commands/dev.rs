//! `reshelf dev`: starts everything, prepares the demo tenant, says what to try.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use clap::Args as ClapArgs;
use daemon::{SystemClock, SystemIds};
use db::DatabaseUrl;
use gateway::OperatorPolicy;

use super::require_allowed;
use crate::{
    data_dir::DataDir,
    demo,
    dev::{self, DemoState, Dev, DevOptions, Hardware, Progress},
};

/// What is logged unless `RESHELF_LOG` says otherwise.
const LOG_FILTER: &str = "info";

/// `reshelf dev`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Where data, keys and pictures lie; made when absent
    #[arg(long, default_value = ".reshelf")]
    data_dir: PathBuf,
    /// Where the data lies, e.g. `postgres://reshelf@localhost/reshelf`; left out: in a file of the data directory
    #[arg(long)]
    database: Option<DatabaseUrl>,
    /// Where the audit log's signed checkpoints lie; left out: in the data directory
    #[arg(long, value_name = "FILE")]
    audit_checkpoints: Option<PathBuf>,
    /// Where the REST API listens
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Listen beyond loopback although there is no TLS: tokens then cross the network in the clear
    #[arg(long)]
    insecure: bool,
    /// What the demo's labels hang on
    #[arg(long, value_enum, default_value_t)]
    hardware: Hardware,
    /// An operation over more labels than this waits for a second operator's approval [default: as a gateway without
    /// configuration has it, 50,000]
    #[arg(long, value_name = "LABELS", value_parser = clap::value_parser!(i64).range(0..))]
    approval_above: Option<i64>,
    /// Leave the demo tenant out
    #[arg(long)]
    no_demo: bool,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    require_allowed(args.listen, args.insecure)?;
    // One line a label would bury the lines to paste, so the log goes to files.
    daemon::telemetry::init_watched(&DataDir::create(&args.data_dir)?.logs(), LOG_FILTER)?;
    let options = DevOptions {
        data_dir: args.data_dir,
        database: args.database,
        audit_checkpoints: args.audit_checkpoints,
        listen: args.listen,
        hardware: args.hardware,
        policy: args
            .approval_above
            .map_or_else(OperatorPolicy::default, |approval_above_labels| OperatorPolicy { approval_above_labels }),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    };
    let dev = dev::start(options).await?;
    let shutdown = dev.shutdown().clone();
    // From here on a signal asks for a drain, also while the demo is being prepared.
    let signals = tokio::spawn(async move { shutdown.run().await });
    let failed = if args.no_demo {
        print!("{}", running(&dev));
        None
    } else {
        match dev.prepare_demo(report).await {
            Ok(DemoState::CutShort(_)) => None,
            Ok(state) => {
                print!("{}{}", running(&dev), try_it(&dev, state));
                None
            }
            Err(error) => {
                dev.shutdown().soft.cancel();
                Some(error)
            }
        }
    };
    signals.await??;
    let closed = dev.close().await;
    // What failed first says more than what failed because of it.
    failed.map_or(closed, Err)
}

fn report(progress: Progress) {
    eprintln!(
        "demo tenant: {} of {} labels rendered and exported, {} notifications to go",
        progress.shown, progress.labels, progress.backlog
    );
}

/// Where everything is, how to stop and how to start over.
fn running(dev: &Dev) -> String {
    let base = base(dev);
    let dir = dev.dir();
    format!(
        "reshelf is running.\n\
         \n\
         REST API    {base}/v1\n\
         Swagger UI  {base}/docs   (Authorize with the content of {token})\n\
         Document    {base}/openapi.json\n\
         gRPC        http://{grpc}   (for services)\n\
         Pictures    {labels}/<tenant>/<store>/<label>.png\n\
         Log         {logs}/   (one line a label; warnings also appear here)\n\
         Token       {token}   (good for 12 hours; for others see `reshelf token --help`)\n\
         Stop        Ctrl-C\n\
         Start over  rm -rf {path}\n\
         {hardware}",
        grpc = dev.grpc(),
        labels = dir.labels().display(),
        logs = dir.logs().display(),
        token = dir.operator_token().display(),
        path = quoted(&dir.path().display().to_string()),
        hardware = hardware(dev),
    )
}

/// Where the simulated access points answer, if there are any.
fn hardware(dev: &Dev) -> String {
    let line =
        |(store, address): (&str, SocketAddr)| format!("Simulated   http://{address}   (access point of {store})\n");
    let mut lines: String = dev.simulated_access_points().into_iter().map(line).collect();
    if !lines.is_empty() {
        lines.push_str("Mishaps     curl -X POST <access point>/simulated/reboot, or …/lose?mac=<hardware address> (see docs/drivers.md)\n");
    }
    lines
}

/// The main job, as lines that can be pasted.
fn try_it(dev: &Dev, state: DemoState) -> String {
    let base = base(dev);
    let model = demo::refreshed_model();
    let authorize =
        format!("-H \"Authorization: Bearer $(cat {})\"", quoted(&dev.dir().operator_token().display().to_string()));
    let trigger = |dry_run: bool| {
        format!(
            "curl -sS -i {base}/v1/triggers/model-refresh {authorize} -H 'Content-Type: application/json' -d '{{\
             \"tenant_id\":\"{}\",\"store_id\":\"{}\",\"model_id\":\"{}\",\"reason\":\"Model version 2 must show on every label\",\
             \"tracking_id\":\"demo-'$(date +%s%N)'\",\"dry_run\":{dry_run}}}'",
            demo::TENANT,
            model.store,
            model.model
        )
    };
    let what = match state {
        DemoState::Prepared(progress) if progress.shown == progress.labels => format!(
            "The demo tenant is loaded: {} labels are rendered and exported. Then version 2 of model \"{}\" of store \"{}\" was \
             written. Writing a model only evicts it from caches: its labels still show version 1.",
            progress.labels, model.model, model.store
        ),
        DemoState::Prepared(progress) | DemoState::CutShort(progress) => format!(
            "The demo tenant is loaded, but only {} of {} labels are rendered and exported; the log says why.",
            progress.shown, progress.labels
        ),
        DemoState::Kept => "The demo tenant is there from an earlier start.".to_owned(),
    };
    format!(
        "\n{what}\n\
         \n\
         Render and export every label of that model again ({labels} labels; paste it as often as you like):\n\
         \n{trigger}\n\
         \n\
         Only count what that would do:\n\
         \n{dry_run}\n\
         \n\
         Follow operations:\n\
         \n\
         curl -sS {base}/v1/operations {authorize}\n",
        labels = model.labels,
        trigger = trigger(false),
        dry_run = trigger(true),
    )
}

fn base(dev: &Dev) -> String {
    format!("http://{}", dev.rest())
}

/// A path as a shell takes it for one word.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(quoted("/tmp/.reshelf"), "/tmp/.reshelf");
        assert_eq!(quoted("/tmp/my data"), "'/tmp/my data'");
        assert_eq!(quoted("/tmp/it's"), "'/tmp/it'\\''s'");
    }
}
