//! What failed in an operation, and doing just that again.

use std::time::Duration;

use clap::Args as ClapArgs;
use daemon::SystemIds;
use domain::{Reason, ServiceName, TrackingId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{LIMIT_MAX, of, waited};
use crate::{
    cli::{
        CliError, Exit, Format, Session, duration,
        follow::Wait,
        operation::Until,
        output::{at, column, note, number, time_at},
        pending::Pending,
    },
    commands::trigger::send,
};

/// `reshelf operations failures`
#[derive(Debug, ClapArgs)]
pub(super) struct FailuresArgs {
    /// Its tracking id
    tracking_id: TrackingId,
    #[command(flatten)]
    which: Which,
    /// Print that many at most
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=LIMIT_MAX))]
    limit: u32,
}

/// Which failures.
#[derive(Debug, ClapArgs)]
struct Which {
    /// Only what failed at this service
    #[arg(long)]
    service: Option<ServiceName>,
    /// Only with exactly this cause
    #[arg(long)]
    cause: Option<String>,
}

/// `reshelf operations retry-failed`
#[derive(Debug, ClapArgs)]
pub(super) struct RetryArgs {
    /// Tracking id of the operation whose failures are handled again
    tracking_id: TrackingId,
    /// Why; stands in the audit log and with the retry
    #[arg(long)]
    reason: Reason,
    /// Names the retry, an operation of its own [default: made, and kept until there is an answer]
    #[arg(long = "as", value_name = "TRACKING_ID")]
    retry: Option<TrackingId>,
    #[command(flatten)]
    which: Which,
    /// Wait until the retry is done
    #[arg(long)]
    wait: bool,
    /// Wait no longer than that, e.g. 30m
    #[arg(long, requires = "wait", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

impl Which {
    fn members(&self) -> Vec<(&'static str, String)> {
        let service = self.service.map(|service| ("service", service.to_string()));
        service.into_iter().chain(self.cause.clone().map(|cause| ("cause", cause))).collect()
    }
}

pub(super) async fn list(session: &Session, args: FailuresArgs) -> Result<Exit, CliError> {
    let path = format!("{}/failures", of(session, args.tracking_id).await?.path());
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let failures = session.client.list(&path, &args.which.members(), "failures", limit).await?;
    let columns = [
        column("record", |row| at(row, "/urn")),
        column("stage", |row| at(row, "/stage")),
        column("cause", |row| at(row, "/cause")),
        number("attempts", |row| at(row, "/attempts")),
        column("sent", |row| if row["handed_over"] == true { "yes" } else { "" }.to_owned()),
        column("failed", |row| time_at(row, "/failed_at")),
        column("retried by", |row| at(row, "/retried_by")),
    ];
    session.output.many(&failures, &columns, "nothing failed")?;
    Ok(Exit::Success)
}

pub(super) async fn retry(session: &Session, args: RetryArgs) -> Result<Exit, CliError> {
    let parent = of(session, args.tracking_id).await?;
    let path = format!("{}/retry-failed", parent.path());
    let mut body = json!({"reason": args.reason.as_str()});
    for (name, value) in args.which.members() {
        body[name] = json!(value);
    }
    let pending = match args.retry {
        Some(chosen) => Pending::chosen(chosen),
        None => Pending::of_request(session.client.base(), &path, &body, &SystemIds)?,
    };
    let retry = pending.tracking_id.clone();
    let outcome = send(session, &path, body, &retry).await;
    pending.settle(&outcome);
    let accepted: Value = outcome?;
    match session.output.format {
        Format::Table => session.output.text(&at(&accepted, "/tracking_id"))?,
        Format::Json if args.wait => {}
        Format::Json | Format::Jsonl => session.output.one(&accepted, String::new)?,
    }
    if !session.output.quiet {
        note(&format!("{} failures of {} are handled again", at(&accepted, "/items"), parent.tracking_id));
    }
    if !args.wait {
        return Ok(Exit::Success);
    }
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    waited(session, retry, Wait { until: Until::Confirmed, deadline, through_holds: false }).await
}
