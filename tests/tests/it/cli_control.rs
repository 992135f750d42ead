//! Control from the command line: pause, resume, throttle, cancel, approve, the brake, plans. What control does to the queues
//! is shown elsewhere; here, that each command reaches it and says what came of it.

use serde_json::{Value, json};
use tests::{
    cli::{Ran, Scripted, Shell},
    data::Shelf,
    topology::Topology,
};

const TENANT: &str = "acme";
/// Enough labels that an operation of one label a second is not done before the test is.
const LABELS: usize = 40;

async fn shop() -> (Topology, Shell) {
    let topology = Topology::in_process().await;
    Shelf::write(&topology.doors, TENANT, &[("alpha", LABELS)]).await;
    topology.quiet().await;
    let shell = Shell::new(&topology.operator(&[TENANT]), topology.folder());
    (topology, shell)
}

/// Starts an operation that takes its time.
async fn start(shell: &Shell, tracking_id: &str) {
    let line = [
        "trigger",
        "model-refresh",
        "--store",
        "store-1",
        "--model",
        "alpha",
        "--reason",
        "a test",
        "--throttle",
        "1",
        "--tracking-id",
        tracking_id,
    ];
    shell.run(&line).await.ended(0);
}

/// A control action, and the operation as it is then.
async fn act(shell: &Shell, line: &[&str]) -> Value {
    shell.run(&[&["operations"], line, &["--reason", "CHG-7: a test", "-o", "json"]].concat()).await.ended(0).json()
}

fn says(ran: &Ran, words: &[&str]) {
    for word in words {
        assert!(ran.out.contains(word) || ran.err.contains(word), "{word}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_paused_resumed_throttled_and_cancelled() {
    let (topology, shell) = shop().await;
    start(&shell, "slow").await;
    let paused = act(&shell, &["pause", "slow", "--for", "1h"]).await;
    assert_eq!(paused["state"], "PAUSED", "{paused}");
    says(&shell.run(&["operations", "wait", "slow"]).await.ended(8), &["PAUSED", "CHG-7: a test", "until"]);
    let listed = async |line: &[&str]| {
        let names = shell.run(&[&["operations", "list", "-q"], line].concat()).await.ended(0).out.clone();
        names.trim().to_owned()
    };
    assert_eq!(listed(&["--state", "HELD,PAUSED"]).await, "slow");
    assert_eq!(listed(&["--state", "RUNNING", "--state", "paused", "--tenant", TENANT]).await, "slow");
    assert_eq!(listed(&["--state", "RUNNING,SUCCEEDED"]).await, "");
    says(&shell.run(&["operations", "list", "--state", "DONE"]).await.ended(2), &["AWAITING_APPROVAL"]);
    let resumed = act(&shell, &["resume", "slow"]).await;
    assert_eq!(resumed["state"], "RUNNING", "{resumed}");
    let limits = act(&shell, &["throttle", "slow", "--per-second", "0", "--max-in-flight", "7"]).await;
    assert_eq!(limits["controls"]["limits"]["max_in_flight"], 7, "{limits}");
    shell.run(&["operations", "wait", "slow"]).await.ended(0);
    // A finished one can no longer be paused: told as a conflict, with what to do.
    let late = shell.run(&["operations", "pause", "slow", "--reason", "a test"]).await.ended(6);
    says(&late, &["operations show"]);
    says(&shell.run(&["operations", "throttle", "slow", "--reason", "a test"]).await.ended(2), &["--per-second"]);

    start(&shell, "wrong").await;
    let cancelled = act(&shell, &["cancel", "wrong"]).await;
    let receipt = &cancelled["receipt"];
    assert!(receipt["not_started"].is_i64() && receipt["in_flight"].is_i64(), "{cancelled}");
    let again = shell.run(&["operations", "cancel", "wrong", "--reason", "a test"]).await.ended(0);
    says(&again, &["not started", "already effective"]);
    says(&shell.run(&["operations", "wait", "wrong"]).await.ended(5), &["CANCELLED"]);
    topology.quiet().await;
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_brake_is_seen_put_on_and_taken_off() {
    let (_topology, shell) = shop().await;
    says(&shell.run(&["brake", "show"]).await.ended(0), &["off"]);
    let on = shell.run(&["brake", "on", "--reason", "INC-7: wrong prices", "-o", "json"]).await.ended(0).json();
    assert_eq!((&on["on"], &on["by"]["operator"]), (&Value::from(true), &Value::from("operator@test")), "{on}");
    shell.run(&["brake", "on", "--reason", "INC-7: wrong prices"]).await.ended(0);
    let second = shell.run(&["brake", "on", "--reason", "INC-8: what else"]).await.ended(6);
    says(&second, &["operator@test", "since", "INC-7: wrong prices"]);
    assert_eq!(shell.run(&["brake", "show", "-o", "json"]).await.ended(0).json(), on);
    start(&shell, "braked").await;
    // Nobody waits a night for a brake that only a person takes off, and it is told as what it is.
    says(
        &shell.run(&["operations", "wait", "braked"]).await.ended(8),
        &["RUNNING", "the brake", "INC-7: wrong prices"],
    );
    says(
        &shell.run(&["operations", "watch", "braked", "--timeout", "1s"]).await.ended(124),
        &["operations wait braked"],
    );
    says(&shell.run(&["brake", "off", "--reason", "INC-7: corrected"]).await.ended(0), &["off"]);
    act(&shell, &["throttle", "braked", "--per-second", "0"]).await;
    shell.run(&["operations", "wait", "braked"]).await.ended(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_held_to_the_plan_of_its_dry_run() {
    let (topology, shell) = shop().await;
    let refresh = ["trigger", "model-refresh", "--store", "store-1", "--model", "alpha", "--reason", "a test"];
    let counted = shell.run(&[&refresh[..], &["--dry-run", "-o", "json"]].concat()).await.ended(0).json();
    let plan = counted["plan_id"].as_str().expect("a plan");
    Shelf::write(&topology.doors, TENANT, &[("alpha", LABELS + 2)]).await;
    topology.quiet().await;
    let stale = shell.run(&[&refresh[..], &["--plan", plan]].concat()).await.ended(6);
    says(&stale, &["2"]);
    shell.run(&[&refresh[..], &["--plan", plan, "--max-drift", "2", "--wait", "-q"]].concat()).await.ended(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_names_the_labels_and_the_plan_that_was_looked_at() {
    let awaiting = json!({"tracking_id": "big", "state": "AWAITING_APPROVAL", "plan": "plan-7",
                          "controls": {"approval": {"state": "AWAITING", "labels": 118_204}}});
    let gateway = Scripted::start(move |_| Some((200, Vec::new(), awaiting.clone()))).await;
    let home = tempfile::tempdir().expect("a folder");
    let shell = Shell::at(&gateway.url, home.path());
    let line = ["operations", "approve", "big", "--tenant", TENANT, "--reason", "CHG-8: agreed", "--labels", "118204"];
    says(&shell.run(&line).await.ended(0), &["118204 labels"]);
    shell.run(&["operations", "decline", "big", "--tenant", TENANT, "--reason", "CHG-8: not now"]).await.ended(0);
    let posts: Vec<(String, Value)> = gateway
        .asked()
        .into_iter()
        .filter(|asked| asked.method == "POST")
        .map(|asked| (asked.path.rsplit('/').next().unwrap_or_default().to_owned(), asked.body))
        .collect();
    let approved = json!({"reason": "CHG-8: agreed", "labels": 118_204, "plan": "plan-7"});
    let declined = json!({"reason": "CHG-8: not now"});
    assert_eq!(posts, [("approve".to_owned(), approved), ("decline".to_owned(), declined)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_listed_and_retried_alone() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 3)]).await;
    // A price that is none: one label cannot be rendered.
    shelf.import(&topology.doors, vec![shelf.item("alpha-0001", "not a price")]).await;
    topology.quiet().await;
    let shell = Shell::new(&topology.operator(&[TENANT]), topology.folder());
    let line = [
        "trigger",
        "model-refresh",
        "--store",
        "store-1",
        "--model",
        "alpha",
        "--reason",
        "a test",
        "--tracking-id",
        "partly",
        "--wait",
    ];
    says(&shell.run(&line).await.ended(3), &["FINISHED_WITH_FAILURES"]);
    let listed = shell.run(&["operations", "failures", "partly", "-o", "json"]).await.ended(0).json();
    assert!(listed[0]["urn"].as_str().is_some_and(|urn| urn.ends_with("alpha-0001")), "{listed}");
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    shelf.import(&topology.doors, vec![shelf.item("alpha-0001", "1.49")]).await;
    topology.quiet().await;
    let retry = ["operations", "retry-failed", "partly", "--as", "partly-2", "--reason", "CHG-9: mended", "--wait"];
    let done = shell.run(&[&retry[..], &["-o", "json"]].concat()).await.ended(0).json();
    assert_eq!((&done["state"], &done["summary"]["labels"]), (&json!("SUCCEEDED"), &json!(1)), "{done}");
    says(&shell.run(&["operations", "show", "partly"]).await.ended(0), &["retried by", "partly-2"]);
    topology.assert_exact().await;
}
