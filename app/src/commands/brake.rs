//! `reshelf brake`: stops all operator work of all tenants; ordinary changes go on.

use clap::{Args as ClapArgs, Subcommand};
use domain::Reason;
use http::Method;
use serde_json::{Value, json};

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session,
    output::{at, pairs, time_at},
};

/// Path of the brake.
const PATH: &str = "/v1/brake";

/// `reshelf brake`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Whether it is on, by whom and why
    Show,
    /// Stop all operations of all tenants; what is in workers' hands finishes
    On(ReasonArgs),
    /// Let them go on
    Off(ReasonArgs),
}

#[derive(Debug, ClapArgs)]
struct ReasonArgs {
    /// Why; stands in the audit log and with the brake
    #[arg(long)]
    reason: Reason,
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    let brake = match &args.what {
        What::Show => session.client.get_json(PATH).await?,
        What::On(args) => set(&session, true, &args.reason).await?,
        What::Off(args) => set(&session, false, &args.reason).await?,
    };
    session.output.one(&brake, || {
        pairs(&[
            ("brake", if brake["on"] == true { "ON".to_owned() } else { "off".to_owned() }),
            ("by", at(&brake, "/by/operator")),
            ("since", time_at(&brake, "/by/at")),
            ("reason", at(&brake, "/by/reason")),
        ])
    })?;
    Ok(Exit::Success)
}

async fn set(session: &Session, on: bool, reason: &Reason) -> Result<Value, CliError> {
    session.client.call(Method::PUT, PATH, &json!({"on": on, "reason": reason.as_str()})).await?.json()
}
