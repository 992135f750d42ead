//! Control of an operation: each action is one request, with its reason, and prints the operation as it is then.
//!
//! The gateway decides what is allowed; repeating an action is safe.

use std::time::Duration;

use clap::Args as ClapArgs;
use daemon::SystemClock;
use domain::{Clock as _, Reason, TrackingId};
use http::Method;
use serde_json::{Map, Value, json};

use super::{of, shown};
use crate::cli::{
    CliError, Exit, Session, duration,
    output::{at, pairs, time_at},
};

/// Which operation, and why.
#[derive(Debug, ClapArgs)]
pub(super) struct Target {
    /// Its tracking id
    tracking_id: TrackingId,
    /// Why; stands in the audit log and with the operation
    #[arg(long)]
    reason: Reason,
}

/// `reshelf operations pause`
#[derive(Debug, ClapArgs)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    target: Target,
    /// Resume by itself after that, e.g. 30m [default: only when someone resumes it]
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    length: Option<Duration>,
}

/// `reshelf operations throttle`
#[derive(Debug, ClapArgs)]
pub(super) struct ThrottleArgs {
    #[command(flatten)]
    target: Target,
    /// Labels a second that may be begun in each stage; 0: no limit [default: as it is]
    #[arg(long, value_name = "LABELS", required_unless_present = "max_in_flight")]
    per_second: Option<u32>,
    /// Labels in workers' hands at once in each stage; 0: no limit [default: as it is]
    #[arg(long, value_name = "LABELS")]
    max_in_flight: Option<u32>,
    /// After that the limits of the request hold again, e.g. 30m [default: never]
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    length: Option<Duration>,
}

/// `reshelf operations approve`
#[derive(Debug, ClapArgs)]
pub(super) struct ApproveArgs {
    #[command(flatten)]
    target: Target,
    /// How many labels one approves; another number than the operation's is refused
    #[arg(long)]
    labels: u64,
    /// Go ahead without a second person; needs a scope of its own and is told to everybody
    #[arg(long)]
    break_glass: bool,
}

fn body(target: &Target, length: Option<Duration>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("reason".to_owned(), json!(target.reason.as_str()));
    if let Some(length) = length {
        let ms = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        body.insert("until".to_owned(), json!(SystemClock.now().plus_ms(ms).to_string()));
    }
    body
}

/// Sends one action and shows the operation as it is then.
async fn act(session: &Session, target: &Target, action: &str, body: Map<String, Value>) -> Result<Exit, CliError> {
    let path = of(session, target.tracking_id.clone()).await?.path();
    let (method, path) = match action {
        "" => (Method::PATCH, path),
        action => (Method::POST, format!("{path}/{action}")),
    };
    let operation = session.client.call(method, &path, &Value::Object(body)).await?.json()?;
    if !session.output.is_silent() {
        session.output.one(&operation, || shown(&operation))?;
    }
    Ok(Exit::Success)
}

pub(super) async fn pause(session: &Session, args: &PauseArgs) -> Result<Exit, CliError> {
    act(session, &args.target, "pause", body(&args.target, args.length)).await
}

pub(super) async fn resume(session: &Session, target: &Target) -> Result<Exit, CliError> {
    act(session, target, "resume", body(target, None)).await
}

pub(super) async fn decline(session: &Session, target: &Target) -> Result<Exit, CliError> {
    act(session, target, "decline", body(target, None)).await
}

pub(super) async fn throttle(session: &Session, args: &ThrottleArgs) -> Result<Exit, CliError> {
    let mut body = body(&args.target, args.length);
    for (name, limit) in [("throttle_per_s", args.per_second), ("max_in_flight", args.max_in_flight)] {
        if let Some(limit) = limit {
            body.insert(name.to_owned(), json!(limit));
        }
    }
    act(session, &args.target, "", body).await
}

/// Approves what the operation is now: its plan goes along, so that an approval is never of another one.
pub(super) async fn approve(session: &Session, args: &ApproveArgs) -> Result<Exit, CliError> {
    let path = of(session, args.target.tracking_id.clone()).await?.path();
    let plan = at(&session.client.get_json(&path).await?, "/plan");
    let mut body = body(&args.target, None);
    body.insert("labels".to_owned(), json!(args.labels));
    if !plan.is_empty() {
        body.insert("plan".to_owned(), json!(plan));
    }
    if args.break_glass {
        body.insert("break_glass".to_owned(), json!(true));
    }
    act(session, &args.target, "approve", body).await
}

/// Cancels, and says what that means: what was not begun, what finishes, what had been done.
pub(super) async fn cancel(session: &Session, target: &Target) -> Result<Exit, CliError> {
    let path = of(session, target.tracking_id.clone()).await?.path();
    let body = Value::Object(body(target, None));
    let answer = session.client.call(Method::POST, &format!("{path}/cancel"), &body).await?.json()?;
    if !session.output.is_silent() {
        session.output.one(&answer, || {
            let receipt = pairs(&[
                ("not started", at(&answer, "/receipt/not_started")),
                ("in hand, will finish", at(&answer, "/receipt/in_flight")),
                ("sent, not confirmed", at(&answer, "/receipt/handed_over")),
                ("already effective", at(&answer, "/receipt/already_effective")),
                ("parents not expanded", at(&answer, "/receipt/unexpanded_parents")),
                ("quiet by", time_at(&answer, "/receipt/quiet_by")),
            ]);
            format!("{receipt}\n\n{}", shown(answer.get("operation").unwrap_or(&Value::Null)))
        })?;
    }
    Ok(Exit::Success)
}
