//! `reshelf audit`: who did what, and what was refused.

use clap::{Args as ClapArgs, Subcommand};
use domain::TrackingId;

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session,
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
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    /// Only this operation's
    #[arg(long)]
    tracking_id: Option<TrackingId>,
    /// Print that many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    match args.what {
        What::List(list_args) => list(&session, &list_args).await,
    }
}

async fn list(session: &Session, args: &ListArgs) -> Result<Exit, CliError> {
    let narrowed = [
        ("tenant", session.settings.tenant.as_ref().map(ToString::to_string)),
        ("tracking_id", args.tracking_id.as_ref().map(ToString::to_string)),
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
