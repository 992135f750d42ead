//! One operation for people.

use serde_json::Value;

use crate::cli::{
    operation::Snapshot,
    output::{at, column, number, pairs, table, time_at},
};

/// An operation with its stages and failures.
pub(in crate::commands) fn shown(operation: &Value) -> String {
    let blocked = Snapshot::read(operation).map(|snapshot| snapshot.blocked_on()).unwrap_or_default();
    let allowed: Vec<String> =
        operation["allowed"].as_array().into_iter().flatten().map(|action| at(action, "")).collect();
    let text = |pointer: &str| at(operation, pointer);
    let time = |pointer: &str| time_at(operation, pointer);
    let expanded = match operation["expansion_complete"].as_bool() {
        Some(false) => "not complete yet: totals still grow".to_owned(),
        _ => String::new(),
    };
    let mut parts = vec![pairs(&[
        ("tracking id", text("/tracking_id")),
        ("tenant", text("/tenant_id")),
        ("trigger", text("/trigger")),
        ("scope", text("/scope")),
        ("state", text("/state")),
        ("waits for", blocked),
        ("allowed now", allowed.join(", ")),
        ("retries", text("/parent_id")),
        ("reason", text("/reason")),
        ("operator", text("/operator")),
        ("accepted", time("/accepted_at")),
        ("due", time("/sla_timestamp")),
        ("finished", time("/finished_at")),
        ("expansion", expanded),
        ("labels", text("/summary/labels")),
        ("rendered", text("/summary/rendered")),
        ("unchanged", text("/summary/unchanged")),
        ("exported", text("/summary/exported")),
        ("failed", text("/summary/failed")),
    ])];
    let rows = |key: &str| operation[key].as_array().map_or(&[][..], Vec::as_slice);
    let (stages, failures) = (rows("stages"), rows("failures"));
    if !stages.is_empty() {
        parts.push(table(
            stages,
            &[
                column("stage", |row| at(row, "/stage")),
                column("service", |row| at(row, "/service")),
                number("received", |row| at(row, "/labels/received")),
                number("done", |row| at(row, "/labels/done")),
                number("unchanged", |row| at(row, "/unchanged")),
                number("failed", |row| at(row, "/labels/failed")),
                number("cancelled", |row| at(row, "/labels/cancelled")),
                number("waiting", |row| at(row, "/labels/waiting")),
                number("leased", |row| at(row, "/labels/leased")),
            ],
        ));
    }
    if !failures.is_empty() {
        parts.push(failure_groups(failures));
    }
    parts.join("\n\n")
}

/// Failed labels by cause.
pub(in crate::commands) fn failure_groups(groups: &[Value]) -> String {
    table(
        groups,
        &[
            number("labels", |row| at(row, "/count")),
            column("stage", |row| at(row, "/stage")),
            column("cause", |row| at(row, "/cause")),
            column("for example", |row| at(row, "/sample")),
        ],
    )
}
