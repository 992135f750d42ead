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

/// Streams that are opened one after the other, each a day at most, before looking goes on instead.
const STREAMS_MAX: usize = 100;

/// How to wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// How far it must be.
    pub until: Until,
    /// Until when at most; none: as long as it takes.
    pub deadline: Option<Instant>,
    /// Whether to go on looking while only a person can make it go on; then every change is shown as it comes.
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
    let looking = async {
        if wait.through_holds
            && let Some(followed) = streamed(client, operation, wait, progress).await?
        {
            return Ok(followed);
        }
        look(client, operation, wait, progress).await
    };
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

/// Takes the gateway's events as they come. None when it gives none (too many streams are open, or a proxy does not let them
/// through), or when the stream went: then looking goes on.
async fn streamed(
    client: &Client,
    operation: &OperationRef,
    wait: Wait,
    progress: &mut Progress,
) -> Result<Option<Followed>, CliError> {
    let path = format!("{}/events", operation.path());
    let mut last = String::new();
    for _ in 0..STREAMS_MAX {
        let Ok(Some(mut events)) = client.events(&path, &last).await else { return Ok(None) };
        let mut came = false;
        while let Some(event) = events.next().await? {
            came = true;
            last = event.id;
            let Some((value, snapshot)) = read(event.data.as_bytes()) else { return Ok(None) };
            progress.show(&snapshot);
            if let Verdict::Over(exit) = snapshot.verdict(wait.until) {
                return Ok(Some(Followed { exit, operation: value }));
            }
        }
        if !came {
            return Ok(None);
        }
        tokio::time::sleep(POLL_USUAL).await;
    }
    Ok(None)
}

fn read(bytes: &[u8]) -> Option<(Value, Snapshot)> {
    let value = serde_json::from_slice(bytes).ok()?;
    let snapshot = Snapshot::read(&value)?;
    Some((value, snapshot))
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
