//! `reshelf audit`: who did what, and what was refused; whether that is still what was written.

mod verify;

use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use daemon::SystemClock;
use domain::{Clock as _, OperatorSubject, TrackingId};

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session, duration,
    output::{at, column, time_at},
};

/// `reshelf audit`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Rows of the audit log, newest first
    List(ListArgs),
    /// Check the log against its hash chain and its signed checkpoints, without a gateway
    Verify(verify::VerifyArgs),
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    /// Only this operation's
    #[arg(long)]
    tracking_id: Option<TrackingId>,
    /// Only what exactly this operator did or tried
    #[arg(long, value_name = "SUBJECT")]
    actor: Option<OperatorSubject>,
    /// Only this action, as the log names it, e.g. `SelfEnqueue`, pause, 'break glass'
    #[arg(long)]
    action: Option<String>,
    /// Only with this outcome
    #[arg(long)]
    outcome: Option<Outcome>,
    /// Only from then on: RFC 3339, or so long ago, e.g. 2h
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Only before then: RFC 3339, or so long ago, e.g. 30m
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
    /// Print that many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// It was done
    Accepted,
    /// The same request had been done before
    Replayed,
    /// It was refused
    Refused,
}

impl Outcome {
    /// As the gateway names it.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "ACCEPTED",
            Self::Replayed => "REPLAYED",
            Self::Refused => "REFUSED",
        }
    }
}

/// A point in time on the command line.
#[derive(Debug, Clone)]
enum Moment {
    /// RFC 3339; the gateway reads it.
    At(String),
    /// So long before now.
    Ago(Duration),
}

impl Moment {
    fn rfc3339(&self) -> String {
        match self {
            Self::At(text) => text.clone(),
            Self::Ago(length) => {
                let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
                SystemClock.now().plus_ms(-ms).to_string()
            }
        }
    }
}

/// A length, or else what holds a date and a time.
fn moment(text: &str) -> Result<Moment, String> {
    match duration::parse(text) {
        Ok(length) => Ok(Moment::Ago(length)),
        Err(_) if text.contains('T') => Ok(Moment::At(text.to_owned())),
        Err(_) => Err("needs RFC 3339, e.g. 2026-11-30T08:00:00Z, or a length such as 2h".to_owned()),
    }
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    match args.what {
        What::List(list_args) => list(&Session::open(&args.connection)?, &list_args).await,
        What::Verify(verify_args) => verify::run(verify_args, args.connection.output()).await,
    }
}

async fn list(session: &Session, args: &ListArgs) -> Result<Exit, CliError> {
    let narrowed = [
        ("tenant", session.settings.tenant.as_ref().map(ToString::to_string)),
        ("tracking_id", args.tracking_id.as_ref().map(ToString::to_string)),
        ("operator", args.actor.as_ref().map(ToString::to_string)),
        ("action", args.action.clone()),
        ("outcome", args.outcome.map(|outcome| outcome.as_str().to_owned())),
        ("since", args.since.as_ref().map(Moment::rfc3339)),
        ("until", args.until.as_ref().map(Moment::rfc3339)),
    ];
    let query: Vec<(&str, String)> = narrowed.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let entries = session.client.list("/v1/audit", &query, "entries", limit).await?;
    let columns = [
        column("id", |row| at(row, "/id")),
        column("at", |row| time_at(row, "/at")),
        column("operator", |row| at(row, "/operator")),
        column("action", |row| at(row, "/action")),
        column("outcome", |row| at(row, "/outcome")),
        column("tenant", |row| at(row, "/tenant_id")),
        column("tracking id", |row| at(row, "/tracking_id")),
        column("reason", |row| at(row, "/reason")),
        column("detail", |row| at(row, "/detail")),
    ];
    session.output.many(&entries, &columns, "the audit log has no such row")?;
    Ok(Exit::Success)
}
