//! Waiting for an operation: it is the gateway's, so leaving never changes it.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{
    CliError, Client, Exit, Progress,
    operation::{OperationRef, Snapshot, Until, Verdict},
};

/// Shortest time between two looks, whatever the gateway says.
const POLL_MIN: Duration = Duration::from_millis(100);
/// Time between two looks when the gateway names none.
const POLL_USUAL: Duration = Duration::from_secs(2);
/// Longest time between two looks: whoever waits wants to see that it moves.
const POLL_MAX: Duration = Duration::from_secs(10);

/// How to wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// How far it must be.
    pub until: Until,
    /// Until when at most; none: as long as it takes.
    pub deadline: Option<Instant>,
    /// Whether to go on looking while only a person can make it go on.
    pub through_holds: bool,
}

/// How a wait ended.
#[derive(Debug)]
pub struct Followed {
    /// As a number.
    pub exit: Exit,
    /// The last look.
    pub operation: Value,
}

/// Looks until it is over, or as far as was asked, or only a person can make it go on.
pub async fn follow(
    client: &Client,
    operation: &OperationRef,
    wait: Wait,
    progress: &mut Progress,
) -> Result<Followed, CliError> {
    let looking = look(client, operation, wait, progress);
    let timeout = async {
        match wait.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = looking => ended,
        () = interrupted() => Err(left(Exit::Detached, operation, "detached")),
        () = timeout => Err(left(Exit::TimedOut, operation, "the time is over")),
    };
    progress.end();
    ended
}

/// Ctrl-C. Never, where the system gives no signals.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn look(
    client: &Client,
    operation: &OperationRef,
    wait: Wait,
    progress: &mut Progress,
) -> Result<Followed, CliError> {
    loop {
        let at = Instant::now();
        let answer = client.get(&operation.path(), &[]).await.map_err(|error| resumable(error, operation))?;
        let value = answer.json()?;
        let Some(snapshot) = Snapshot::read(&value) else {
            return Err(CliError::new(Exit::Unexpected, "the gateway's answer is no operation"));
        };
        progress.show(&snapshot);
        match snapshot.verdict(wait.until) {
            Verdict::Over(exit) => return Ok(Followed { exit, operation: value }),
            Verdict::Stuck(exit) if !wait.through_holds => return Ok(Followed { exit, operation: value }),
            Verdict::Stuck(_) | Verdict::GoesOn => {}
        }
        let pause = answer.retry_after().unwrap_or(POLL_USUAL).clamp(POLL_MIN, POLL_MAX);
        tokio::time::sleep_until(at + pause).await;
    }
}

/// How to come back to an operation that goes on.
pub fn resume_with(operation: &OperationRef) -> String {
    let OperationRef { tenant, tracking_id } = operation;
    format!(
        "the operation goes on; follow it again with\n    reshelf operations wait {tracking_id} --tenant {tenant}\n  \
         stop it with\n    reshelf operations cancel {tracking_id} --tenant {tenant} --reason …"
    )
}

fn left(exit: Exit, operation: &OperationRef, why: &str) -> CliError {
    CliError::new(exit, why).advise(resume_with(operation))
}

/// A gateway that does not answer says nothing about the operation.
fn resumable(error: CliError, operation: &OperationRef) -> CliError {
    if error.exit == Exit::Unavailable { error.advise(resume_with(operation)) } else { error }
}
