//! Handling labels in bulk: compute, write, and again where an input changed meanwhile; one by one where bulk fails.

use std::panic::AssertUnwindSafe;

use domain::{IdSource, LeaseRef, Outcome};
use futures::FutureExt as _;

use super::{CallError, Context, Label, Platform, Service, Verdict, backoff::Backoff, write::write_many};

/// Rounds of computing a label whose inputs change meanwhile: a third change within one batch is left to a retry.
const ROUNDS_MAX: usize = 3;
/// Tries of a batch while the platform is away, before its items are deferred: some seconds, within a lease.
const AWAY_TRIES_MAX: u32 = 6;
/// How long items are deferred when the platform is away for writes but not for reports, in milliseconds.
const AWAY_DEFER_MS: i64 = 5_000;

/// The outcome of every label, in order. Errors only with a lost lease.
pub(crate) async fn handle(
    service: &dyn Service,
    context: Context<'_>,
    ids: &dyn IdSource,
    labels: &[Label],
) -> Result<Vec<Outcome>, CallError> {
    let outcomes = match bulk(service, context, ids, labels).await? {
        Bulk::Handled(outcomes) => outcomes,
        Bulk::Away(outcome) => vec![outcome; labels.len()],
        Bulk::Broken(outcome) if labels.len() == 1 => vec![outcome],
        Bulk::Broken(_) => one_by_one(service, context, ids, labels).await?,
    };
    for (label, outcome) in labels.iter().zip(&outcomes) {
        log(&context.lease.queue, label, outcome);
    }
    Ok(outcomes)
}

/// What came of handling labels together.
enum Bulk {
    /// An outcome for each.
    Handled(Vec<Outcome>),
    /// The platform stayed away: this is the outcome of each, and would be of any other.
    Away(Outcome),
    /// It fails as a whole: this is the outcome of the label that is alone, and of nobody else.
    Broken(Outcome),
}

async fn one_by_one(
    service: &dyn Service,
    context: Context<'_>,
    ids: &dyn IdSource,
    labels: &[Label],
) -> Result<Vec<Outcome>, CallError> {
    tracing::warn!(labels = labels.len(), "the batch fails as a whole; handling its labels one by one");
    let mut outcomes = Vec::with_capacity(labels.len());
    for label in labels {
        match bulk(service, context, ids, std::slice::from_ref(label)).await? {
            Bulk::Handled(handled) => outcomes.extend(handled),
            Bulk::Broken(outcome) => outcomes.push(outcome),
            // Waiting for each of the others as long would gain nothing.
            Bulk::Away(outcome) => {
                outcomes.resize(labels.len(), outcome);
                break;
            }
        }
    }
    Ok(outcomes)
}

async fn bulk(
    service: &dyn Service,
    context: Context<'_>,
    ids: &dyn IdSource,
    labels: &[Label],
) -> Result<Bulk, CallError> {
    let mut backoff = Backoff::default();
    loop {
        let tried = AssertUnwindSafe(rounds(service, context, labels)).catch_unwind().await;
        match tried {
            Ok(Ok(outcomes)) => return Ok(Bulk::Handled(outcomes)),
            Ok(Err(CallError::Stale)) => return Err(CallError::Stale),
            Ok(Err(CallError::NotNow(refusal))) => {
                if backoff.failures() >= AWAY_TRIES_MAX {
                    let until = context.clock.now().plus_ms(AWAY_DEFER_MS);
                    return Ok(Bulk::Away(Outcome::Defer { until, cause: refusal.to_string() }));
                }
                tracing::warn!(%refusal, "the platform is away; trying again");
                tokio::time::sleep(backoff.next(ids)).await;
            }
            Ok(Err(CallError::Never(refusal))) => {
                return Ok(Bulk::Broken(Outcome::Failed { cause: refusal.to_string() }));
            }
            Ok(Err(CallError::Fault(refusal))) => {
                tracing::error!(%refusal, "the platform failed");
                return Ok(Bulk::Broken(Outcome::Retry { cause: refusal.to_string() }));
            }
            Err(_) => {
                tracing::error!("the service panicked");
                return Ok(Bulk::Broken(Outcome::Failed { cause: format!("{} panicked", service.name()) }));
            }
        }
    }
}

async fn rounds(service: &dyn Service, context: Context<'_>, labels: &[Label]) -> Result<Vec<Outcome>, CallError> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; labels.len()];
    for _ in 0..ROUNDS_MAX {
        let (indices, pending): (Vec<usize>, Vec<Label>) = labels
            .iter()
            .enumerate()
            .filter(|(index, _)| outcomes.get(*index).is_some_and(Option::is_none))
            .map(|(index, label)| (index, label.clone()))
            .unzip();
        if pending.is_empty() {
            break;
        }
        let verdicts = service.compute(context, &pending).await?;
        if verdicts.len() != pending.len() {
            return Err(CallError::answer("the service answered another number of verdicts than labels"));
        }
        for (index, outcome) in indices.into_iter().zip(settle(context.platform, context.lease, verdicts).await?) {
            if let Some(slot) = outcomes.get_mut(index) {
                *slot = outcome;
            }
        }
    }
    let unsettled = || Outcome::Retry { cause: "the inputs kept changing while they were handled".to_owned() };
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(unsettled)).collect())
}

/// Writes what the verdicts say; none where the label must be computed again.
async fn settle(
    platform: &Platform,
    lease: &LeaseRef,
    verdicts: Vec<Verdict>,
) -> Result<Vec<Option<Outcome>>, CallError> {
    let mut outcomes = Vec::with_capacity(verdicts.len());
    let (mut writes, mut waiting) = (Vec::new(), Vec::new());
    for (index, verdict) in verdicts.into_iter().enumerate() {
        outcomes.push(match verdict {
            Verdict::Settled(outcome) => Some(outcome),
            Verdict::Again => None,
            Verdict::Write(write, reported) => {
                writes.push(write);
                waiting.push((index, reported));
                None
            }
        });
    }
    if writes.is_empty() {
        return Ok(outcomes);
    }
    let states = write_many(platform, lease, writes).await?;
    for ((index, reported), state) in waiting.into_iter().zip(states) {
        if let Some(slot) = outcomes.get_mut(index) {
            *slot = reported.outcome(state);
        }
    }
    Ok(outcomes)
}

/// One line a label. Someone may follow a tracking id, so with one it is always shown.
fn log(queue: &domain::QueueName, label: &Label, outcome: &Outcome) {
    let (word, cause) = match outcome {
        Outcome::Done | Outcome::Confirmed { changed: true, .. } => ("done", ""),
        Outcome::Unchanged | Outcome::Confirmed { changed: false, .. } => ("unchanged", ""),
        Outcome::Retry { cause } => ("retry", cause.as_str()),
        Outcome::Defer { cause, .. } | Outcome::Follow { cause, .. } => ("defer", cause.as_str()),
        Outcome::Failed { cause } => ("failed", cause.as_str()),
    };
    let urn = &label.name;
    if let Some(tracking_id) = &label.tracking_id {
        tracing::info!(%queue, %tracking_id, %urn, outcome = word, cause, "label handled");
    } else if cause.is_empty() {
        tracing::debug!(%queue, %urn, outcome = word, "label handled");
    } else {
        tracing::info!(%queue, %urn, outcome = word, cause, "label handled");
    }
}
