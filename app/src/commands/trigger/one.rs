//! One call of a trigger.

use std::time::Duration;

use daemon::SystemIds;
use domain::{IdSource as _, StoreId, TenantId, TrackingId};
use http::Method;
use serde_json::{Value, json};

use super::Asked;
use crate::{
    cli::{
        CliError, Exit, Format, Progress, Session, duration,
        follow::{Followed, follow, interrupted},
        operation::OperationRef,
        output::{at, grid, note, pairs, time_at},
        pending::Pending,
    },
    commands::operations,
};

/// Most pages of a dry run that are followed: 100,000 stores.
const PAGES_MAX: usize = 500;

pub(super) async fn run(session: &Session, asked: Asked) -> Result<Exit, CliError> {
    let tenant = session.tenant().await?;
    if asked.common.dry_run {
        let answer = dry_run(session, &asked, &tenant, asked.store.as_ref()).await?;
        session.output.one(&answer, || counted(&answer))?;
        if session.output.format == Format::Table {
            note("nothing was done; leave out --dry-run to do it");
        }
        return Ok(asked.common.end_of_dry_run(answer["labels"].as_i64().unwrap_or_default()));
    }
    let body = asked.body(&tenant, asked.store.as_ref());
    let pending = if let Some(chosen) = &asked.common.tracking_id {
        Pending::chosen(chosen.clone())
    } else {
        let pending = Pending::of_request(session.client.base(), &asked.path, &body, &SystemIds)?;
        // Before the first attempt: whatever happens now, the operation can be found.
        note(&format!("tracking id {}", pending.tracking_id));
        pending
    };
    let tracking_id = pending.tracking_id.clone();
    let outcome = send(session, &asked.path, body, &tracking_id).await;
    pending.settle(&outcome);
    let accepted = outcome?;
    let waiting = asked.common.waiting();
    tell_accepted(session, &accepted, waiting.is_some())?;
    let Some(wait) = waiting else { return Ok(Exit::Success) };
    let mut progress = Progress::new(session.output.quiet);
    let operation = OperationRef { tenant, tracking_id };
    let Followed { exit, operation } = follow(&session.client, &operation, wait, &mut progress).await?;
    if !session.output.is_silent() {
        session.output.one(&operation, || operations::shown(&operation))?;
    }
    Ok(exit)
}

/// The request under that tracking id, until there is an answer or the operator leaves.
pub(in crate::commands) async fn send(
    session: &Session,
    path: &str,
    mut body: Value,
    tracking_id: &TrackingId,
) -> Result<Value, CliError> {
    body["tracking_id"] = json!(tracking_id.as_str());
    tokio::select! {
        answer = session.client.call(Method::POST, path, &body) => answer?.json(),
        () = interrupted() => Err(CliError::new(Exit::Detached, "left before the answer: it is unknown whether it was accepted")
            .advise(format!("repeat with the same tracking id ({tracking_id}), which never does it twice"))),
    }
}

/// What it would do, over all pages of its breakdown by store.
pub(super) async fn dry_run(
    session: &Session,
    asked: &Asked,
    tenant: &TenantId,
    store: Option<&StoreId>,
) -> Result<Value, CliError> {
    let mut body = asked.body(tenant, store);
    let tracking_id = match &asked.common.tracking_id {
        Some(chosen) => chosen.to_string(),
        // A dry run reserves nothing, so nobody needs to remember its id.
        None => format!("dry-run-{}", SystemIds.hex_id()),
    };
    body["tracking_id"] = json!(tracking_id);
    body["dry_run"] = json!(true);
    let mut answer = session.client.call(Method::POST, &asked.path, &body).await?.json()?;
    let mut next = at(&answer, "/next_page_token");
    for _ in 0..PAGES_MAX {
        if next.is_empty() {
            break;
        }
        body["page_token"] = json!(next);
        let mut page = session.client.call(Method::POST, &asked.path, &body).await?.json()?;
        next = at(&page, "/next_page_token");
        if let (Some(stores), Some(more)) = (answer["stores"].as_array_mut(), page["stores"].as_array_mut()) {
            stores.append(more);
        }
    }
    if let Some(members) = answer.as_object_mut() {
        members.remove("next_page_token");
    }
    Ok(answer)
}

fn counted(answer: &Value) -> String {
    let samples: Vec<String> =
        answer["sample_label_ids"].as_array().into_iter().flatten().map(|id| at(id, "")).collect();
    let mut text = pairs(&[
        ("labels", at(answer, "/labels")),
        ("for example", samples.join(", ")),
        ("service", at(answer, "/would_run_on")),
        ("would be due", time_at(answer, "/would_have_sla_timestamp")),
        ("stores", at(answer, "/store_count")),
        ("takes about", estimate(answer)),
        (
            "approval",
            if answer["approval"]["needed"] == true {
                "a second operator must approve it".to_owned()
            } else {
                String::new()
            },
        ),
        (
            "accepted before",
            if answer["would_replay"] == true {
                "yes: the run would be answered like then".to_owned()
            } else {
                String::new()
            },
        ),
        ("plan ends", time_at(answer, "/plan_expires_at")),
        ("plan", at(answer, "/plan_id")),
    ]);
    let stores = answer["stores"].as_array().map_or(&[][..], Vec::as_slice);
    if stores.len() > 1 {
        let rows = stores.iter().map(|store| vec![at(store, "/store_id"), at(store, "/labels")]).collect();
        text.push_str("\n\n");
        text.push_str(&grid(&[("store", false), ("labels", true)], rows));
    }
    text
}

/// How long it would take, or why nobody can say.
fn estimate(answer: &Value) -> String {
    match answer["estimate"]["seconds"].as_u64() {
        Some(seconds) => duration::text(Duration::from_secs(seconds)),
        None => at(answer, "/estimate/reason"),
    }
}

/// The tracking id first, before anything can go wrong with waiting.
fn tell_accepted(session: &Session, accepted: &Value, waits: bool) -> Result<(), CliError> {
    let output = session.output;
    match output.format {
        Format::Table => output.text(&at(accepted, "/tracking_id"))?,
        // Standard output is one document: that of the operation's end.
        Format::Json if waits => {}
        Format::Json | Format::Jsonl => output.one(accepted, String::new)?,
    }
    if !output.quiet {
        let how = if accepted["replayed"] == true {
            "had been accepted before; nothing was enqueued now"
        } else {
            "accepted"
        };
        note(&format!(
            "{how}: {} labels, due {}; follow it with\n    reshelf operations wait {} --tenant {}",
            at(accepted, "/labels"),
            time_at(accepted, "/sla_timestamp"),
            at(accepted, "/tracking_id"),
            at(accepted, "/operation").split('/').nth(3).unwrap_or_default(),
        ));
        if accepted["awaits_approval"] == true {
            note("it awaits approval: another operator must approve it, with `reshelf operations approve`");
        }
    }
    Ok(())
}
