//! What is over is forgotten after its time, seen through the REST API and the command line: failures, operations with their
//! names, histories, the audit log. Time passes between two starts.

use serde_json::{Value, json};
use tests::{
    cli::Shell,
    data::Shelf,
    rest::Rest,
    topology::{START_LIMIT, Topology},
    wait::until,
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const TENANT: &str = "acme";
const OPERATION: &str = "/v1/tenants/acme/operations/CHG-1";
const HISTORY: &str = "/v1/tenants/acme/stores/store-1/labels/alpha-0000/history";
/// A label that an ordinary change failed for.
const FAILED: &str = "/v1/tenants/acme/stores/store-1/labels/beta-0000";
/// Longer than failures of ordinary changes are kept; then operations and histories; then audit entries.
const DAYS: [i64; 3] = [31, 60, 310];

/// Waits until a list that the gateway shows has so many entries.
async fn has(operator: &Rest, (path, list): (&str, &str), entries: usize) {
    until(&format!("{path} has {entries} {list}"), START_LIMIT, || async {
        let shown = operator.get_json(path).await;
        let found = shown[list].as_array().map(Vec::len);
        if found == Some(entries) { Ok(()) } else { Err(shown.to_string()) }
    })
    .await;
}

/// Entries of the audit log about the operation's acceptance.
async fn accepted(operator: &Rest) -> Vec<Value> {
    let listed = operator.get_json("/v1/audit?tracking_id=CHG-1&action=SelfEnqueue&outcome=ACCEPTED").await;
    listed["entries"].as_array().expect("entries").clone()
}

async fn verified(topology: &Topology, operator: &Rest) -> Value {
    let data = topology.data.path().display().to_string();
    let line = ["audit", "verify", "--data-dir", &data, "-o", "json"];
    let told = Shell::new(operator, topology.folder()).run(&line).await.ended(0).json();
    assert_eq!((&told["whole"], &told["broken"]), (&json!(true), &Value::Null), "{told}");
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_is_forgotten_after_its_time_and_not_before() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 3), ("beta", 1)]).await;
    topology.quiet().await;
    let bad = ["alpha-0001", "beta-0000"].map(|id| shelf.item(id, "not a price"));
    shelf.import(&topology.doors, bad.into()).await;
    topology.quiet().await;
    let asked = refresh(&shelf, "alpha", "CHG-1", false);
    let operator = topology.operator(&[TENANT]);
    operator.post(MODEL_REFRESH, &asked).await.json(202);
    topology.quiet().await;
    let failures = format!("{OPERATION}/failures");
    has(&operator, (&failures, "failures"), 1).await;
    has(&operator, (FAILED, "failures"), 1).await;
    let history = operator.get_json(HISTORY).await["entries"].as_array().map_or(0, Vec::len);
    assert!(history > 0, "the label was shown something");
    assert_eq!(operator.get_json(OPERATION).await["state"], "FINISHED_WITH_FAILURES");

    // A month: the ordinary failure is forgotten; the operation is not, and its name is taken.
    let topology = topology.days_later(DAYS[0]).await;
    let operator = topology.operator(&[TENANT]);
    has(&operator, (FAILED, "failures"), 0).await;
    has(&operator, (&failures, "failures"), 1).await;
    has(&operator, (HISTORY, "entries"), history).await;
    assert_eq!(operator.post(MODEL_REFRESH, &asked).await.json(200)["replayed"], true);

    // A quarter: it is, with its failures; so is what the label showed. Only now the name is free again.
    let topology = topology.days_later(DAYS[1]).await;
    let operator = topology.operator(&[TENANT]);
    until("the operation is forgotten", START_LIMIT, || async {
        let answer = operator.get(OPERATION).await;
        if answer.status == 404 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
    operator.get(&failures).await.problem(404);
    has(&operator, (HISTORY, "entries"), 0).await;
    let first = accepted(&operator).await;
    assert_eq!(first.len(), 1, "the audit log is kept longer: {first:#?}");
    assert_eq!(operator.post(MODEL_REFRESH, &asked).await.json(202)["replayed"], false);
    topology.quiet().await;
    let before = verified(&topology, &operator).await;

    // More than a year: what the log says of the first one is cut off, and the rest is whole.
    let topology = topology.days_later(DAYS[2]).await;
    let operator = topology.operator(&[TENANT]);
    let left = until("old audit entries are deleted", START_LIMIT, || async {
        let left = accepted(&operator).await;
        if left.len() == 1 { Ok(left) } else { Err(format!("{left:#?}")) }
    })
    .await;
    assert_ne!(left[0]["at"], first[0]["at"], "the second one is not that old");
    let after = verified(&topology, &operator).await;
    assert!(after["entries"].as_i64() < before["entries"].as_i64(), "{after}, before {before}");
    topology.stop().await;
}
