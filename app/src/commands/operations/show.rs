//! One operation for people.

use serde_json::Value;

use crate::cli::{
    operation::Snapshot,
    output::{at, column, number, pairs, table, time_at},
};

/// An operation with what stops or slows it, its stages and its failures.
pub(in crate::commands) fn shown(operation: &Value) -> String {
    let rows = |key: &str| operation[key].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts = vec![head(operation)];
    let (funnel, stages, failures) = (rows("funnel"), rows("stages"), rows("failures"));
    if !funnel.is_empty() {
        parts.push(funnel_table(funnel));
    } else if !stages.is_empty() {
        parts.push(stage_table(stages));
    }
    if !failures.is_empty() {
        parts.push(failure_groups(failures));
    }
    parts.join("\n\n")
}

fn head(operation: &Value) -> String {
    let blocked = Snapshot::read(operation).map(|snapshot| snapshot.blocked_on()).unwrap_or_default();
    let allowed: Vec<String> = operation["allowed"].as_array().into_iter().flatten().map(allowed).collect();
    let retries: Vec<String> =
        operation["retries"].as_array().into_iter().flatten().map(|retry| at(retry, "/tracking_id")).collect();
    let text = |pointer: &str| at(operation, pointer);
    let time = |pointer: &str| time_at(operation, pointer);
    let expanded = match operation["expansion_complete"].as_bool() {
        Some(false) => "not complete yet: totals still grow".to_owned(),
        _ => String::new(),
    };
    let percent = match text("/percent") {
        percent if percent.is_empty() => percent,
        percent => format!("{percent} %"),
    };
    pairs(&[
        ("tracking id", text("/tracking_id")),
        ("tenant", text("/tenant_id")),
        ("trigger", text("/trigger")),
        ("scope", text("/scope")),
        ("state", text("/state")),
        ("waits for", blocked),
        ("allowed now", allowed.join(", ")),
        ("paused", act(operation, "paused", "paused_until")),
        ("held", act(operation, "held", "")),
        ("cancelled", act(operation, "cancelled", "")),
        ("limits", limits(operation)),
        ("limited", act(operation, "limited", "limited_until")),
        ("approval", approval(operation)),
        ("retry of", text("/parent_id")),
        ("retried by", retries.join(", ")),
        ("reason", text("/reason")),
        ("operator", text("/operator")),
        ("accepted", time("/accepted_at")),
        ("due", time("/sla_timestamp")),
        ("finished", time("/finished_at")),
        ("through", percent),
        ("expansion", expanded),
        ("labels", text("/summary/labels")),
        ("rendered", text("/summary/rendered")),
        ("unchanged", text("/summary/unchanged")),
        ("exported", text("/summary/exported")),
        ("confirmed", text("/summary/confirmed")),
        ("failed", text("/summary/failed")),
        ("with retries", totals(operation)),
    ])
}

/// It and its retries, counted as one.
pub(super) fn totals(operation: &Value) -> String {
    let text = |pointer: &str| at(operation, &format!("/totals{pointer}"));
    if !operation["totals"].is_object() {
        return String::new();
    }
    format!("{}, {} of {} labels failed", text("/state"), text("/summary/failed"), text("/summary/labels"))
}

/// Who did something to it, when, why and until when.
fn act(operation: &Value, what: &str, until: &str) -> String {
    let act = &operation["controls"][what];
    if !act.is_object() {
        return String::new();
    }
    let by = match at(act, "/operator") {
        nobody if nobody.is_empty() => "by itself".to_owned(),
        operator => format!("by {operator}"),
    };
    let until = match time_at(operation, &format!("/controls/{until}")) {
        end if until.is_empty() || end.is_empty() => String::new(),
        end => format!(", until {end}"),
    };
    format!("{by} at {}{until}: {}", time_at(act, "/at"), at(act, "/reason"))
}

fn limits(operation: &Value) -> String {
    let limit = |name: &str, unit: &str| {
        operation["controls"]["limits"][name].as_i64().filter(|limit| *limit > 0).map(|limit| format!("{limit} {unit}"))
    };
    let all = [limit("throttle_per_s", "labels a second"), limit("max_in_flight", "labels in hand")];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn approval(operation: &Value) -> String {
    let approval = &operation["controls"]["approval"];
    if !approval.is_object() {
        return String::new();
    }
    let by = match at(approval, "/decided/operator") {
        nobody if nobody.is_empty() => format!("until {}", time_at(approval, "/expires_at")),
        operator => format!("by {operator}: {}", at(approval, "/decided/reason")),
    };
    format!("{} for {} labels, {by}", at(approval, "/state"), at(approval, "/labels"))
}

fn funnel_table(funnel: &[Value]) -> String {
    table(
        funnel,
        &[
            column("stage", |row| at(row, "/stage")),
            number("done", |row| at(row, "/done")),
            number("waiting", |row| at(row, "/waiting")),
            number("failed", |row| at(row, "/failed")),
            number("labels/s", |row| rate(&row["labels_per_second"])),
            column("by evidence", |row| evidence(&row["confirmed_by"])),
            column("waiting since", |row| time_at(row, "/waiting_since")),
        ],
    )
}

/// How many labels were confirmed by which evidence, strongest first.
fn evidence(confirmed_by: &Value) -> String {
    let of =
        |name: &str| confirmed_by[name].as_i64().filter(|labels| *labels != 0).map(|labels| format!("{labels} {name}"));
    ["displayed", "transferred", "written", "none"].into_iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn stage_table(stages: &[Value]) -> String {
    table(
        stages,
        &[
            column("stage", |row| at(row, "/stage")),
            column("service", |row| at(row, "/service")),
            number("received", |row| at(row, "/labels/received")),
            number("done", |row| at(row, "/labels/done")),
            number("unchanged", |row| at(row, "/unchanged")),
            number("failed", |row| at(row, "/labels/failed")),
            number("waiting", |row| at(row, "/labels/waiting")),
            number("leased", |row| at(row, "/labels/leased")),
        ],
    )
}

/// Labels a second as people read them. Empty when nobody knows.
fn rate(labels_per_second: &Value) -> String {
    labels_per_second.as_f64().map(|rate| format!("{rate:.1}")).unwrap_or_default()
}

/// What may be done, by the names of the commands that do it.
fn allowed(action: &Value) -> String {
    match at(action, "").as_str() {
        "set-limits" => "throttle".to_owned(),
        other => other.to_owned(),
    }
}

/// Failed labels by cause.
pub(in crate::commands) fn failure_groups(groups: &[Value]) -> String {
    table(
        groups,
        &[
            number("labels", |row| at(row, "/count")),
            number("of them sent", |row| at(row, "/handed_over")),
            number("retried", |row| at(row, "/retried")),
            column("stage", |row| at(row, "/stage")),
            column("cause", |row| at(row, "/cause")),
            column("for example", |row| at(row, "/sample")),
        ],
    )
}
