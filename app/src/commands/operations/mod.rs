//! `reshelf operations`: what came of accepted triggers, and what may be done about it.

mod control;
mod failures;
mod show;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, builder::PossibleValuesParser};
use domain::TrackingId;
use serde_json::Value;
use tokio::time::Instant;

use crate::cli::{
    CliError, ConnectionArgs, Exit, Progress, Session, duration,
    follow::{Followed, Wait, follow},
    operation::{OperationRef, Until},
    output::{at, column, number, time_at},
};

pub(super) use show::shown;

/// Most entries that one list command prints.
const LIMIT_MAX: i64 = 100_000;

/// States of operations, as the gateway tells them.
const STATES: [&str; 8] = [
    "AWAITING_APPROVAL",
    "RUNNING",
    "PAUSED",
    "HELD",
    "CANCELLING",
    "CANCELLED",
    "SUCCEEDED",
    "FINISHED_WITH_FAILURES",
];

/// `reshelf operations`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Operations, newest first; with --tenant only that tenant's
    List {
        /// Print that many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=LIMIT_MAX))]
        limit: u32,
        /// Only those that stand there now, e.g. RUNNING,HELD,PAUSED; may be given again
        #[arg(long, value_name = "STATE", value_delimiter = ',', ignore_case = true, value_parser = PossibleValuesParser::new(STATES))]
        state: Vec<String>,
    },
    /// One operation with all its counts
    Show {
        /// Its tracking id
        tracking_id: TrackingId,
    },
    /// Follow an operation to its end, also through pauses; leaving never changes it
    Watch {
        /// Its tracking id
        tracking_id: TrackingId,
        /// Follow no longer than that, e.g. 30m
        #[arg(long, value_parser = duration::parse)]
        timeout: Option<Duration>,
    },
    /// Wait until an operation is done, or until only a person can make it go on; leaving never changes it
    Wait {
        /// Its tracking id
        tracking_id: TrackingId,
        /// How far it must be
        #[arg(long, value_enum, default_value_t)]
        until: Until,
        /// Wait no longer than that, e.g. 30m
        #[arg(long, value_parser = duration::parse)]
        timeout: Option<Duration>,
    },
    /// Begin nothing more of an operation; what is in workers' hands finishes
    Pause(control::PauseArgs),
    /// Let a paused or held operation go on
    Resume(control::Target),
    /// End an operation: what waits is cancelled at once, what is in workers' hands finishes
    Cancel(control::Target),
    /// Limit how fast an operation goes
    Throttle(control::ThrottleArgs),
    /// Let an operation start that awaits approval; not one's own
    Approve(control::ApproveArgs),
    /// Cancel an operation that awaits approval
    Decline(control::Target),
    /// What failed in an operation, one line per label
    Failures(failures::FailuresArgs),
    /// Handle again what failed, and nothing else
    RetryFailed(failures::RetryArgs),
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    match args.what {
        What::List { limit, state } => list(&session, limit, &state).await,
        What::Show { tracking_id } => {
            let operation = of(&session, tracking_id).await?;
            let found = session.client.get_json(&operation.path()).await?;
            session.output.one(&found, || shown(&found))?;
            Ok(Exit::Success)
        }
        What::Watch { tracking_id, timeout } => {
            let wait = Wait { until: Until::Confirmed, deadline: deadline(timeout), through_holds: true };
            waited(&session, tracking_id, wait).await
        }
        What::Wait { tracking_id, until, timeout } => {
            let wait = Wait { until, deadline: deadline(timeout), through_holds: false };
            waited(&session, tracking_id, wait).await
        }
        What::Pause(args) => control::pause(&session, &args).await,
        What::Resume(target) => control::resume(&session, &target).await,
        What::Cancel(target) => control::cancel(&session, &target).await,
        What::Throttle(args) => control::throttle(&session, &args).await,
        What::Approve(args) => control::approve(&session, &args).await,
        What::Decline(target) => control::decline(&session, &target).await,
        What::Failures(args) => failures::list(&session, args).await,
        What::RetryFailed(args) => failures::retry(&session, args).await,
    }
}

fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.map(|timeout| Instant::now() + timeout)
}

/// The operation of that name in the tenant that is meant.
async fn of(session: &Session, tracking_id: TrackingId) -> Result<OperationRef, CliError> {
    Ok(OperationRef { tenant: session.tenant().await?, tracking_id })
}

async fn waited(session: &Session, tracking_id: TrackingId, wait: Wait) -> Result<Exit, CliError> {
    let operation = of(session, tracking_id).await?;
    let mut progress = Progress::new(session.output.quiet);
    let Followed { exit, operation } = follow(&session.client, &operation, wait, &mut progress).await?;
    if !session.output.is_silent() {
        session.output.one(&operation, || shown(&operation))?;
    }
    Ok(exit)
}

async fn list(session: &Session, limit: u32, states: &[String]) -> Result<Exit, CliError> {
    let path = match &session.settings.tenant {
        Some(tenant) => format!("/v1/tenants/{tenant}/operations"),
        None => "/v1/operations".to_owned(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let narrowed = if states.is_empty() { Vec::new() } else { vec![("state", states.join(",").to_uppercase())] };
    let operations: Vec<Value> = session.client.list(&path, &narrowed, "operations", limit).await?;
    let columns = [
        column("tracking id", |row| at(row, "/tracking_id")),
        column("tenant", |row| at(row, "/tenant_id")),
        column("trigger", |row| at(row, "/trigger")),
        column("state", |row| at(row, "/state")),
        number("labels", |row| at(row, "/summary/labels")),
        number("rendered", |row| at(row, "/summary/rendered")),
        number("unchanged", |row| at(row, "/summary/unchanged")),
        number("exported", |row| at(row, "/summary/exported")),
        number("confirmed", |row| at(row, "/summary/confirmed")),
        number("failed", |row| at(row, "/summary/failed")),
        column("with retries", show::totals),
        column("accepted", |row| time_at(row, "/accepted_at")),
        column("operator", |row| at(row, "/operator")),
    ];
    let none = if states.is_empty() { "there are no operations" } else { "there are no operations in these states" };
    session.output.many(&operations, &columns, none)?;
    Ok(Exit::Success)
}
