//! `reshelf trigger touch`: announces records again, for one hop; no operation comes of it.

use clap::Args as ClapArgs;
use daemon::SystemIds;
use domain::{DtoType, Reason, TrackingId, Urn, limits::TOUCH_MAX};
use serde_json::{Value, json};

use super::one;
use crate::cli::{
    CliError, Exit, Format, Session,
    output::{at, note, pairs},
    pending::Pending,
};

/// Path of the request.
const PATH: &str = "/v1/triggers/touch";

/// `reshelf trigger touch`
#[derive(Debug, ClapArgs)]
pub(super) struct TouchArgs {
    /// A record as TYPE=URN, e.g. eccmodel.v1=t/demo/s/berlin/eccmodels/standard; up to 1,000 times, all of one tenant
    #[arg(long = "record", value_name = "TYPE=URN", required = true, value_parser = record)]
    records: Vec<(DtoType, Urn)>,
    /// Why; stands in the audit log
    #[arg(long)]
    reason: Reason,
    /// Goes along to whatever the announcement causes [default: made]
    #[arg(long)]
    tracking_id: Option<TrackingId>,
    /// Only count
    #[arg(long)]
    dry_run: bool,
}

fn record(text: &str) -> Result<(DtoType, Urn), String> {
    let (dto_type, urn) = text.split_once('=').ok_or("needs TYPE=URN")?;
    let dto_type = dto_type.parse().map_err(|error| format!("{dto_type}: {error}"))?;
    Ok((dto_type, Urn::record(dto_type, urn).map_err(|error| error.to_string())?))
}

pub(super) async fn run(session: &Session, args: &TouchArgs) -> Result<Exit, CliError> {
    if args.records.len() > TOUCH_MAX {
        return Err(CliError::usage("--record", format!("may be given {TOUCH_MAX} times at most")));
    }
    let records: Vec<Value> = args
        .records
        .iter()
        .map(|(dto_type, urn)| json!({"dto_type": dto_type.as_str(), "dto_id": urn.to_string()}))
        .collect();
    let body = json!({"records": records, "reason": args.reason.as_str(), "dry_run": args.dry_run});
    let pending = match &args.tracking_id {
        Some(chosen) => Pending::chosen(chosen.clone()),
        None => Pending::of_request(session.client.base(), PATH, &body, &SystemIds)?,
    };
    let tracking_id = pending.tracking_id.clone();
    let outcome = one::send(session, PATH, body, &tracking_id).await;
    pending.settle(&outcome);
    let answer = outcome?;
    let missing: Vec<String> = answer["missing"].as_array().into_iter().flatten().map(|urn| at(urn, "")).collect();
    session.output.one(&answer, || {
        pairs(&[
            ("tracking id", at(&answer, "/tracking_id")),
            ("touched", at(&answer, "/touched")),
            ("would touch", at(&answer, "/would_touch")),
            ("not there", missing.join(", ")),
        ])
    })?;
    if args.dry_run && session.output.format == Format::Table {
        note("nothing was done; leave out --dry-run to do it");
    }
    Ok(if missing.is_empty() { Exit::Success } else { Exit::Failures })
}
