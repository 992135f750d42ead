//! One call of a trigger for each of many stores.
//!
//! All are counted first, so that a store that would be refused is known before anything is done. Then each store gets an
//! operation of its own, named `{tracking id}:{store}`; repeated, a store that was accepted before answers as before.

use domain::{StoreId, TenantId, TrackingId};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{Asked, one};
use crate::cli::{
    CliError, Exit, Format, Progress, Session,
    follow::{Wait, follow, interrupted},
    operation::{OperationRef, Snapshot},
    output::{at, column, note, number},
    stores::{self, Stores},
};

/// Calls in hand at once: enough to hide the round trip, few enough that one operator never crowds a gateway.
const CALLS_AT_ONCE: usize = 4;
/// Operations that are looked at at once; each is looked at every few seconds.
const WAITS_AT_ONCE: usize = 16;
/// Most stores of a tenant that are listed.
const STORES_MAX: usize = 100_000;

/// A store and what became of its call.
struct Called {
    store: StoreId,
    tracking_id: TrackingId,
    outcome: Outcome,
}

enum Outcome {
    /// A dry run's count.
    Counted(i64),
    /// Accepted, now or before.
    Accepted {
        labels: i64,
        replayed: bool,
    },
    /// Waited for.
    Ended {
        exit: Exit,
        operation: Value,
    },
    /// The store has nothing of what was named.
    NotThere,
    Failed(CliError),
}

pub(super) async fn run(session: &Session, asked: Asked, from: &Stores) -> Result<Exit, CliError> {
    let tenant = session.tenant().await?;
    let stores = match from {
        Stores::All => all_stores(session, &tenant).await?,
        named => stores::read(named)?,
    };
    let base = asked.common.tracking_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let named: Vec<(StoreId, TrackingId)> =
        stores.into_iter().map(|store| Ok((store.clone(), id_of(&base, &store)?))).collect::<Result<_, CliError>>()?;

    let counted = count(session, &asked, &tenant, named).await;
    let nothing_found = counted.iter().all(|called| matches!(called.outcome, Outcome::NotThere));
    let refused: Vec<&Called> =
        counted.iter().filter(|called| called.is_refused(*from == Stores::All && !nothing_found)).collect();
    if let Some(first) = refused.first() {
        return Err(refusal(first, refused.len()));
    }
    if asked.common.dry_run {
        let labels = told(session, &counted)?;
        return Ok(asked.common.end_of_dry_run(labels));
    }
    if session.output.format == Format::Table {
        session.output.text(&base)?;
    }
    let doing = async {
        let called = call_all(session, &asked, &tenant, counted).await;
        match asked.common.waiting() {
            Some(wait) => wait_for_all(session, &tenant, called, wait).await,
            None => called,
        }
    };
    let called = tokio::select! {
        biased;
        () = interrupted() => return Err(CliError::new(Exit::Detached, "detached; what was accepted goes on")
            .advise("repeat the same command: it goes on where it stopped, and does nothing twice")),
        called = doing => called,
    };
    told(session, &called)?;
    Ok(called.iter().fold(Exit::Success, |worst, called| worst.worst(called.exit())))
}

fn id_of(base: &str, store: &StoreId) -> Result<TrackingId, CliError> {
    format!("{base}:{store}")
        .parse()
        .map_err(|error| CliError::usage("--tracking-id", format!("{base}:{store} {error}")))
}

async fn all_stores(session: &Session, tenant: &TenantId) -> Result<Vec<StoreId>, CliError> {
    let found = session.client.list(&format!("/v1/tenants/{tenant}/stores"), &[], "stores", STORES_MAX).await?;
    let ids = found.iter().map(|store| {
        at(store, "/store_id")
            .parse()
            .map_err(|_| CliError::new(Exit::Unexpected, "the gateway names a store that cannot be"))
    });
    let ids: Vec<StoreId> = ids.collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(CliError::new(Exit::NotAllowed, format!("tenant {tenant} has no store that the token reaches")));
    }
    Ok(ids)
}

async fn count(session: &Session, asked: &Asked, tenant: &TenantId, named: Vec<(StoreId, TrackingId)>) -> Vec<Called> {
    let counts = stream::iter(named).map(|(store, tracking_id)| async move {
        let outcome = match one::dry_run(session, asked, tenant, Some(&store)).await {
            Ok(answer) => Outcome::Counted(answer["labels"].as_i64().unwrap_or_default()),
            Err(error) if error.code == "NOT_FOUND" => Outcome::NotThere,
            Err(error) => Outcome::Failed(error),
        };
        Called { store, tracking_id, outcome }
    });
    counts.buffered(CALLS_AT_ONCE).collect().await
}

/// Says which store is refused and how many more are, before anything was done.
fn refusal(first: &Called, count: usize) -> CliError {
    let mut error = match &first.outcome {
        Outcome::Failed(error) => error.clone(),
        _ => CliError {
            code: "NOT_FOUND".to_owned(),
            ..CliError::new(Exit::NotAllowed, "there is nothing of that name, or the token may not see it")
        },
    };
    let others = if count > 1 { format!(", and {} other stores are refused too", count - 1) } else { String::new() };
    error.message = format!("store {}: {}{others}; nothing was done in any store", first.store, error.message);
    error
}

async fn call_all(session: &Session, asked: &Asked, tenant: &TenantId, counted: Vec<Called>) -> Vec<Called> {
    let calls = stream::iter(counted).map(|called| async move {
        let Called { store, tracking_id, outcome } = called;
        if matches!(outcome, Outcome::NotThere) {
            return Called { store, tracking_id, outcome };
        }
        let body = asked.body(tenant, Some(&store));
        let outcome = match one::send(session, &asked.path, body, &tracking_id).await {
            Ok(answer) => Outcome::Accepted {
                labels: answer["labels"].as_i64().unwrap_or_default(),
                replayed: answer["replayed"] == true,
            },
            Err(error) => Outcome::Failed(error),
        };
        Called { store, tracking_id, outcome }
    });
    calls.buffered(CALLS_AT_ONCE).collect().await
}

async fn wait_for_all(session: &Session, tenant: &TenantId, called: Vec<Called>, wait: Wait) -> Vec<Called> {
    let total = called.len();
    let waits = stream::iter(called).map(|called| async move {
        let Called { store, tracking_id, outcome } = called;
        let outcome = match outcome {
            Outcome::Accepted { .. } => {
                let operation = OperationRef { tenant: tenant.clone(), tracking_id: tracking_id.clone() };
                match follow(&session.client, &operation, wait, &mut Progress::Silent).await {
                    Ok(followed) => Outcome::Ended { exit: followed.exit, operation: followed.operation },
                    Err(error) => Outcome::Failed(error),
                }
            }
            other => other,
        };
        Called { store, tracking_id, outcome }
    });
    let mut done = Vec::with_capacity(total);
    let mut waits = waits.buffered(WAITS_AT_ONCE);
    while let Some(called) = waits.next().await {
        if !session.output.quiet {
            note(&format!("{} of {total} stores: {} {}", done.len() + 1, called.store, called.word()));
        }
        done.push(called);
    }
    done
}

/// Prints them and their sum; gives the labels of all.
fn told(session: &Session, called: &[Called]) -> Result<i64, CliError> {
    let rows: Vec<Value> = called.iter().map(Called::json).collect();
    let labels = called.iter().map(Called::labels).sum();
    match session.output.format {
        Format::Json => {
            let sum = json!({"stores": rows, "labels": labels, "exit": called.iter().fold(Exit::Success, |worst, called| worst.worst(called.exit())).code()});
            session.output.one(&sum, String::new)?;
        }
        Format::Table if session.output.quiet => {}
        Format::Table | Format::Jsonl => {
            let columns = [
                column("store", |row| at(row, "/store_id")),
                column("outcome", |row| at(row, "/outcome")),
                number("labels", |row| at(row, "/labels")),
                column("tracking id", |row| at(row, "/tracking_id")),
                column("error", |row| at(row, "/error/message")),
            ];
            session.output.many(&rows, &columns, "no store")?;
        }
    }
    if session.output.format == Format::Table && !session.output.quiet {
        note(&format!(
            "{labels} labels in {} stores",
            called.iter().filter(|called| called.exit() != Exit::NotAllowed).count()
        ));
    }
    Ok(labels)
}

impl Called {
    /// Whether it stands against doing anything. Of all stores of a tenant, those that have nothing of it are passed over.
    fn is_refused(&self, of_all: bool) -> bool {
        match &self.outcome {
            Outcome::Failed(_) => true,
            Outcome::NotThere => !of_all,
            Outcome::Counted(_) | Outcome::Accepted { .. } | Outcome::Ended { .. } => false,
        }
    }

    fn exit(&self) -> Exit {
        match &self.outcome {
            Outcome::Failed(error) => error.exit,
            Outcome::Ended { exit, .. } => *exit,
            Outcome::Counted(_) | Outcome::Accepted { .. } | Outcome::NotThere => Exit::Success,
        }
    }

    fn labels(&self) -> i64 {
        match &self.outcome {
            Outcome::Counted(labels) | Outcome::Accepted { labels, .. } => *labels,
            Outcome::Ended { operation, .. } => Snapshot::read(operation).map_or(0, |seen| seen.summary.labels),
            Outcome::NotThere | Outcome::Failed(_) => 0,
        }
    }

    fn word(&self) -> String {
        match &self.outcome {
            Outcome::Counted(_) => "counted".to_owned(),
            Outcome::Accepted { replayed: true, .. } => "accepted before".to_owned(),
            Outcome::Accepted { .. } => "accepted".to_owned(),
            Outcome::Ended { operation, .. } => at(operation, "/state"),
            Outcome::NotThere => "not there".to_owned(),
            Outcome::Failed(_) => "failed".to_owned(),
        }
    }

    fn json(&self) -> Value {
        let mut row = json!({"store_id": self.store.as_str(), "tracking_id": self.tracking_id.as_str(), "outcome": self.word(), "labels": self.labels()});
        match &self.outcome {
            Outcome::Failed(error) => row["error"] = error.json()["error"].clone(),
            Outcome::Ended { operation, .. } => row["operation"] = operation.clone(),
            Outcome::Counted(_) | Outcome::Accepted { .. } | Outcome::NotThere => {}
        }
        row
    }
}
