//! `reshelf status`: how the platform stands, on one screen.

use clap::Args as ClapArgs;
use serde_json::Value;

use crate::cli::{
    CliError, ConnectionArgs, Exit, Session,
    output::{at, grid, pairs, time_at},
};

/// `reshelf status`
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
}

pub(super) async fn run(args: Args) -> Result<Exit, CliError> {
    let session = Session::open(&args.connection)?;
    let status = session.client.get_json("/v1/status").await?;
    session.output.one(&status, || format!("{}\n\n{}\n\n{}", head(&status), workers(&status), work(&status)))?;
    Ok(Exit::Success)
}

fn head(status: &Value) -> String {
    let brake = if status["brake"]["on"] == true {
        format!(
            "ON since {} by {}: {}",
            time_at(status, "/brake/by/at"),
            at(status, "/brake/by/operator"),
            at(status, "/brake/by/reason")
        )
    } else {
        "off".to_owned()
    };
    let count = |state: &str| at(&status["operations"], &format!("/{state}"));
    let operations = format!(
        "{} running, {} paused, {} held, {} awaiting approval, {} cancelling",
        count("running"),
        count("paused"),
        count("held"),
        count("awaiting_approval"),
        count("cancelling")
    );
    pairs(&[("at", time_at(status, "/at")), ("brake", brake), ("operations", operations)])
}

/// What waits and is in hand; a line where there is something.
fn work(status: &Value) -> String {
    let kinds = [("changes", "changes"), ("fan_out", "fan-out"), ("operations", "operations")];
    let rows = status["services"].as_array().into_iter().flatten().flat_map(|service| {
        kinds.map(|(field, name)| {
            let of = |column: &str| at(&service[field], &format!("/{column}"));
            let counts = ["ready", "delayed", "leased", "late_s"].map(of);
            [at(service, "/service"), name.to_owned()].into_iter().chain(counts).collect::<Vec<_>>()
        })
    });
    let heads =
        [("service", false), ("work", false), ("ready", true), ("delayed", true), ("leased", true), ("late s", true)];
    let rows: Vec<_> = rows.filter(|row| row.iter().skip(2).any(|count| count != "0")).collect();
    if rows.is_empty() { "nothing waits".to_owned() } else { grid(&heads, rows) }
}

/// Who works, and what failed.
fn workers(status: &Value) -> String {
    let rows = status["services"].as_array().into_iter().flatten().map(|service| {
        let asked = time_at(service, "/asked_at");
        vec![at(service, "/service"), if asked.is_empty() { "never".to_owned() } else { asked }, at(service, "/failed")]
    });
    grid(&[("service", false), ("asked for work", false), ("failed", true)], rows.collect())
}
