//! Waiting from the command line: how it ends, what interrupts it, and what is tried again. The gateway here says what a
//! test wants, so that every state comes up.

use std::{
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tests::{
    cli::{Asked, Scripted, Shell},
    process::Program,
};
use tokio::process::Command;

/// How long a command may take to say something.
const SAY_LIMIT: Duration = Duration::from_secs(10);

const WAIT: [&str; 5] = ["operations", "wait", "CHG-1", "--tenant", "acme"];
const TRIGGER: [&str; 11] =
    ["trigger", "model-refresh", "--tenant", "acme", "--store", "s", "--model", "m", "--reason", "a test", "-q"];

fn operation(state: &str) -> Value {
    json!({"tracking_id": "CHG-1", "tenant_id": "acme", "state": state, "expansion_complete": true,
           "summary": {"labels": 3, "rendered": 1, "unchanged": 0, "exported": 0, "failed": 0}})
}

fn accepted() -> Value {
    json!({"operation": "/v1/tenants/acme/operations/CHG-1", "tracking_id": "CHG-1", "labels": 3, "replayed": false})
}

fn problem(code: &str) -> Value {
    json!({"type": "", "title": "t", "status": 0, "code": code, "detail": "a service is away", "retryable": true})
}

/// `Retry-After`, in seconds.
fn after(seconds: u32) -> Vec<(&'static str, String)> {
    vec![("retry-after", seconds.to_string())]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_as_the_operation_does_and_never_outlives_a_hold() {
    for (state, code) in [
        ("SUCCEEDED", 0),
        ("FINISHED_WITH_FAILURES", 3),
        ("FAILED", 4),
        ("CANCELLED", 5),
        ("AWAITING_APPROVAL", 7),
        ("PAUSED", 8),
        ("HELD", 8),
    ] {
        let looks = AtomicUsize::new(0);
        let gateway = Scripted::start(move |_| {
            let state = if looks.fetch_add(1, Ordering::SeqCst) == 0 { "RUNNING" } else { state };
            Some((200, after(0), operation(state)))
        })
        .await;
        let home = tempfile::tempdir().expect("a folder");
        let ran = Shell::at(&gateway.url, home.path()).run(&[&WAIT[..], &["-o", "json"]].concat()).await.ended(code);
        assert_eq!(ran.json()["state"], state, "{ran:?}");
        assert_eq!(gateway.asked().len(), 2, "{state}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_takes_events_as_they_come_and_goes_on_through_a_hold() {
    // A stream that breaks after a hold, one that goes on from there to the end; a gateway without streams is asked instead.
    for streams in [true, false] {
        let opened = AtomicUsize::new(0);
        let gateway = Scripted::start(move |asked| {
            let event = |id: u32, state: &str| format!("event: operation\nid: {id}\ndata: {}\n\n", operation(state));
            let text = match (asked.path.ends_with("/events"), streams, opened.fetch_add(1, Ordering::SeqCst)) {
                (true, true, 0) => format!(": hello\n\n{}{}", event(1, "RUNNING"), event(2, "PAUSED")),
                (true, true, _) => event(3, "SUCCEEDED"),
                (true, false, _) => return Some((404, Vec::new(), problem("NOT_FOUND"))),
                (false, _, 1) => return Some((200, after(0), operation("PAUSED"))),
                (false, _, _) => return Some((200, after(0), operation("SUCCEEDED"))),
            };
            Some((200, vec![("content-type", "text/event-stream".to_owned())], Value::String(text)))
        })
        .await;
        let home = tempfile::tempdir().expect("a folder");
        let shell = Shell::at(&gateway.url, home.path());
        let ran = shell.run(&["operations", "watch", "CHG-1", "--tenant", "acme", "-o", "json"]).await.ended(0);
        assert_eq!(ran.json()["state"], "SUCCEEDED", "{ran:?}");
        assert!(ran.err.contains("PAUSED: 3 labels"), "{ran:?}");
        let last: Vec<String> = gateway.asked().iter().filter_map(|asked| asked.header("last-event-id")).collect();
        assert_eq!(last, if streams { vec!["2".to_owned()] } else { Vec::new() });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_a_time_out_leave_and_never_cancel() {
    let gateway = Scripted::start(|_| Some((200, after(0), operation("RUNNING")))).await;
    let home = tempfile::tempdir().expect("a folder");
    let shell = Shell::at(&gateway.url, home.path());
    let ran = shell.run(&[&WAIT[..], &["--timeout", "1s"]].concat()).await.ended(124);
    assert!(ran.err.contains("reshelf operations wait CHG-1 --tenant acme"), "{ran:?}");

    let mut waiting = Program::start("waiting", shell.command(&WAIT), home.path());
    waiting.shows("to say where it stands", SAY_LIMIT, |text| text.contains("RUNNING: 3 labels").then_some(())).await;
    let id = waiting.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.is_ok_and(|status| status.success()));
    assert_eq!(waiting.ended(SAY_LIMIT).await, Some(130));
    let log = waiting.log();
    assert!(log.contains("detached") && log.contains("reshelf operations wait CHG-1 --tenant acme"), "{log}");
    assert!(log.contains("reshelf operations cancel CHG-1"), "{log}");
    assert!(gateway.asked().iter().all(|asked| asked.method == "GET"), "leaving asks for nothing");
}

/// The tracking ids that triggers were sent under.
fn tracking_ids(asked: &[Asked]) -> Vec<String> {
    let posts = asked.iter().filter(|asked| asked.method == "POST");
    posts.filter_map(|asked| asked.body["tracking_id"].as_str()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_accepted_is_repeated_under_the_same_tracking_id() {
    // 503, then nothing at all, then 504, then accepted.
    let calls = AtomicUsize::new(0);
    let gateway = Scripted::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Some((503, after(0), problem("UNAVAILABLE"))),
        1 => None,
        2 => Some((504, after(0), problem("DEADLINE_EXCEEDED"))),
        _ => Some((202, Vec::new(), accepted())),
    })
    .await;
    let home = tempfile::tempdir().expect("a folder");
    let shell = Shell::at(&gateway.url, home.path());
    assert_eq!(shell.run(&TRIGGER).await.ended(0).out, "CHG-1\n");
    let ids = tracking_ids(&gateway.asked());
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    // That one is answered: the same command is another request now.
    shell.run(&TRIGGER).await.ended(0);
    assert_ne!(tracking_ids(&gateway.asked())[4], ids[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn up_and_enter_after_a_lost_answer_is_the_same_request() {
    let gateway = Scripted::start(|_| None).await;
    let home = tempfile::tempdir().expect("a folder");
    let shell = Shell::at(&gateway.url, home.path());
    let told = shell.run(&TRIGGER).await.ended(9);
    assert!(told.err.contains("tracking id cli-") && told.err.contains("safe"), "{told:?}");
    shell.run(&TRIGGER).await.ended(9);
    let ids = tracking_ids(&gateway.asked());
    assert!(ids.len() >= 2 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_repetition_changes_is_not_repeated() {
    for (status, code, exit) in [
        (400, "INVALID_ARGUMENT", 2),
        (403, "PERMISSION_DENIED", 7),
        (409, "ALREADY_EXISTS", 6),
        (507, "STORAGE_FULL", 9),
        (500, "INTERNAL", 1),
        (302, "", 1),
    ] {
        let gateway = Scripted::start(move |_| {
            Some((status, vec![("location", "http://127.0.0.1:1/".to_owned())], problem(code)))
        })
        .await;
        let home = tempfile::tempdir().expect("a folder");
        Shell::at(&gateway.url, home.path()).run(&TRIGGER).await.ended(exit);
        assert_eq!(gateway.asked().len(), 1, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_failure() {
    let rows: Vec<Value> =
        (0..200).map(|number| json!({"tracking_id": format!("CHG-{number}"), "reason": "x".repeat(400)})).collect();
    let gateway = Scripted::start(move |_| Some((200, Vec::new(), json!({"operations": rows})))).await;
    let home = tempfile::tempdir().expect("a folder");
    let mut list = Shell::at(&gateway.url, home.path()).command(&["operations", "list", "-o", "jsonl"]);
    let mut child = list.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("reshelf runs");
    drop(child.stdout.take());
    let ended = child.wait_with_output().await.expect("it ends");
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}
