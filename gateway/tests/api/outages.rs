//! Peers that are down, silent or broken.

use domain::{ErrorCode, Refusal};
use http::StatusCode;
use proto::Transport;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tonic::Code;

use crate::{
    fakes::{Fault, Hold},
    harness::{Answer, Changes, World},
};

fn refresh() -> Value {
    json!({"tenant_id": "acme", "store_id": "s1", "model_id": "M", "reason": "r", "tracking_id": "t", "dry_run": false})
}

/// An address on which nobody listens.
async fn nobody() -> Transport {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    daemon::channel::connect(&[format!("http://{address}")]).unwrap()
}

fn assert_down(answer: &Answer, service: &str) {
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
    assert_eq!(answer.problem().0, "UNAVAILABLE");
    assert!(answer.headers.contains_key("retry-after"));
    assert!(answer.json()["detail"].as_str().unwrap().contains(service), "{}", answer.text());
    assert_eq!(answer.json()["retryable"], true);
}

#[tokio::test]
async fn a_trigger_service_that_is_down_is_named() {
    let world = World::with(Changes { triggers: Some(nobody().await), ..Changes::default() });
    let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh", &refresh()).await;
    assert_down(&answer, "ecc-image-render-service");
    assert!(answer.json()["detail"].as_str().unwrap().contains("nothing was done"));
    assert_eq!(world.audit_rows(), 1, "nobody else saw the request");
    let ready = world.get("", "/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    let down = json!(["ecc-image-render-service", "studio-renderer", "hardware-exporter"]);
    assert_eq!(ready.json(), json!({"ready": false, "down": down}));
}

#[tokio::test]
async fn a_platform_that_is_down_is_named() {
    let world = World::with(Changes { platform: Some(nobody().await), ..Changes::default() });
    let token = world.token();
    assert_down(&world.get(&token, "/v1/operations").await, "cqs");
    assert_down(&world.get(&token, "/v1/audit").await, "cqs");
    assert_down(&world.get(&token, "/v1/tenants").await, "dtoflow");
    assert_down(&world.get(&token, "/v1/tenants/acme/stores/s1/labels/E1").await, "dtoflow");
    let ready = world.get("", "/readyz").await.json();
    assert_eq!(ready, json!({"ready": false, "down": ["cqs", "dtoflow"]}));
    assert_eq!(world.get("", "/healthz").await.status, StatusCode::OK, "the process itself is well");
    assert_eq!(world.get(&token, "/v1/me").await.status, StatusCode::OK);
}

#[tokio::test]
async fn everything_up_is_ready_and_leaves_no_trace() {
    let world = World::new();
    let ready = world.get("", "/readyz").await;
    assert_eq!((ready.status, ready.json()), (StatusCode::OK, json!({"ready": true, "down": []})));
    assert!(world.triggers.state().seen.is_empty());
    assert_eq!(world.audit_rows(), 0);
}

/// The connection opens and then breaks: whether the request arrived is not known, and the answer must not say it did
/// not.
#[tokio::test]
async fn an_unknown_outcome_says_repeat_and_is_no_refusal() {
    let world = World::new();
    let silent = [
        Fault::Status(Code::DeadlineExceeded),
        Fault::Status(Code::Cancelled),
        Fault::Status(Code::Unknown),
        Fault::Status(Code::Internal),
        Fault::Refusal(Refusal::new(ErrorCode::DeadlineExceeded, "cqs gave no answer")),
    ];
    for fault in silent {
        let deliberate = matches!(fault, Fault::Refusal(_));
        world.triggers.state().fault = Some(fault.clone());
        let before = world.audit_rows();
        let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh", &refresh()).await;
        assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT, "{fault:?}: {}", answer.text());
        assert_eq!(answer.problem().0, "DEADLINE_EXCEEDED");
        assert!(answer.json()["detail"].as_str().unwrap().contains("repeat with the same tracking_id"));
        // The fake writes a row with any refusal of its own; the gateway adds none.
        assert_eq!(world.audit_rows() - before, usize::from(deliberate), "{fault:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_under_a_trigger_is_no_promise_that_nothing_was_done() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio::io::AsyncReadExt as _;
        while let Ok((mut stream, _)) = listener.accept().await {
            // Long enough for the request to have been sent, then gone without a word.
            let mut head = [0_u8; 512];
            let mut got = 0;
            while got < 200 {
                match stream.read(&mut head).await {
                    Ok(read) if read > 0 => got += read,
                    _ => break,
                }
            }
        }
    });
    let broken = daemon::channel::connect(&[format!("http://{address}")]).unwrap();
    let world = World::with(Changes { triggers: Some(broken), ..Changes::default() });
    let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh", &refresh()).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT, "{}", answer.text());
    assert_eq!(world.audit_rows(), 0);
}

#[tokio::test]
async fn a_peer_that_does_not_accept_the_gateway_is_our_fault_not_the_operators() {
    let world = World::new();
    for (code, audited) in [(ErrorCode::Unauthenticated, 2), (ErrorCode::PermissionDenied, 1), (ErrorCode::Internal, 1)]
    {
        world.triggers.state().fault = Some(Fault::Refusal(Refusal::new(code, "svc:operator-gateway may not")));
        let before = world.audit_rows();
        let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh", &refresh()).await;
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{code}");
        // The real service writes no row for a caller it does not know, the fake always does; so two there.
        assert_eq!(world.audit_rows() - before, audited, "{code}");
    }
    world.cqs.state().fault = Some(Fault::Refusal(Refusal::new(ErrorCode::PermissionDenied, "may not")));
    let answer = world.get(&world.token(), "/v1/operations").await;
    assert_eq!(answer.problem(), ("INTERNAL".to_owned(), String::new()));
}

/// The clock of the runtime stands still and jumps to whatever is waited for next, so this takes no time.
#[tokio::test(start_paused = true)]
async fn a_silent_trigger_service_is_given_up_after_its_limit() {
    let world = World::new();
    world.triggers.state().hold = Some(Hold::closed());
    let begun = tokio::time::Instant::now();
    let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh", &refresh()).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT, "{}", answer.text());
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert_eq!(world.audit_rows(), 0);
}

#[tokio::test]
async fn too_much_at_once_is_shed_and_health_still_answers() {
    const AT_ONCE: usize = 256;
    let world = std::sync::Arc::new(World::new());
    let hold = Hold::closed();
    world.triggers.state().hold = Some(hold.clone());
    let token = world.token();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        // Of many operators: one alone is told to wait long before the gateway is full.
        let token = world.token_with(|claims| claims.subject = format!("op-{}", number % 16).parse().unwrap());
        let world = std::sync::Arc::clone(&world);
        let mut body = refresh();
        body["tracking_id"] = json!(format!("op-{number}"));
        waiting.spawn(async move { world.post_json(&token, "/v1/triggers/model-refresh", &body).await.status });
    }
    hold.held(AT_ONCE).await;
    let shed = world.get(&token, "/v1/me").await;
    assert_eq!(shed.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(shed.problem().0, "UNAVAILABLE");
    assert!(shed.headers.contains_key("retry-after"));
    assert_eq!(world.get("", "/healthz").await.status, StatusCode::OK);
    // Each asks for a dry run first, then calls live.
    hold.let_go(2 * AT_ONCE);
    let statuses = waiting.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == StatusCode::ACCEPTED).count(), AT_ONCE);
    assert_eq!(world.get(&token, "/v1/me").await.status, StatusCode::OK);
}

#[tokio::test]
async fn hanging_up_does_not_leave_an_action_without_its_audit_row() {
    let world = std::sync::Arc::new(World::new());
    let hold = Hold::closed();
    world.dtoflow.state().touch_hold = Some(hold.clone());
    let record = json!({"dto_type": "eccmodel.v1", "dto_id": "t/acme/s/s1/eccmodels/M"});
    let body = json!({"records": [record], "reason": "r", "tracking_id": "t", "dry_run": false});
    let client = tokio::spawn({
        let world = std::sync::Arc::clone(&world);
        async move { world.post_json(&world.token(), "/v1/triggers/touch", &body).await }
    });
    hold.held(1).await;
    client.abort();
    assert!(client.await.is_err_and(|error| error.is_cancelled()));
    hold.let_go(1);
    let row = async {
        while world.audit_rows() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), row).await.unwrap();
    assert_eq!(world.dtoflow.state().touched.len(), 1);
    assert_eq!(world.cqs.state().audit[0].action, "touch");
}

#[tokio::test]
async fn a_trigger_service_that_cannot_reach_the_platform_is_named() {
    let world = World::new();
    world.triggers.state().fault =
        Some(Fault::Refusal(Refusal::new(ErrorCode::Unavailable, "tcp connect error: 10.0.0.7:7400")));
    let answer = world.post_json(&world.token(), "/v1/triggers/model-refresh", &refresh()).await;
    assert_down(&answer, "ecc-image-render-service");
    assert!(!answer.text().contains("10.0.0.7"), "addresses are not for operators");
}

/// Reads work on a full disk; ready it is not.
#[tokio::test]
async fn a_full_disk_is_not_ready() {
    let world = World::with(Changes { disk_is_full: true, ..Changes::default() });
    let ready = world.get("", "/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ready.json()["down"], json!(["disk of the platform"]));
    assert_eq!(world.get(&world.token(), "/v1/tenants").await.status, StatusCode::OK);
}
