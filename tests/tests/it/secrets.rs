//! Planted secrets: after a day's work and many refusals none of them stands in a log, an answer, the audit log or the figures.

use std::fs;

use domain::{OperatorScope, ServiceName};
use gateway::token::mint;
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    rest::Rest,
    topology::{OPERATION_LIMIT, Topology},
};

use crate::model_refresh::MODEL_REFRESH;

/// A part of a secret long enough to be no accident.
fn canary(secret: &str) -> String {
    let secret = secret.trim();
    secret.get(secret.len().saturating_sub(40)..).expect("a secret in ASCII").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_leaves_the_processes() {
    let topology = Topology::three().await;
    Shelf::write(&topology.doors, "acme", &[("alpha", 3)]).await;
    topology.quiet().await;
    let issuer = topology.data.operator_issuer().expect("the issuer's key");
    let good = mint(&issuer, &topology.claims(&["acme"], OperatorScope::ALL)).expect("a token");
    let wrong = format!("{}{}", good.get(..good.len() - 6).expect("a token"), "AAAAAA");
    let base = topology.anonymous().base().to_owned();
    let operator = Rest::new(&base, Some(&good));

    // Work that succeeds, and work that is refused at every step.
    let body = json!({"tenant_id": "acme", "store_id": "store-1", "model_id": "alpha", "reason": "CHG-1", "tracking_id": "CHG-1",
        "dry_run": false});
    let mut answers = vec![operator.post(MODEL_REFRESH, &body).await.text()];
    topology.finished("acme", "CHG-1", OPERATION_LIMIT).await;
    let bodies: [Value; 5] = [
        json!({"tenant_id": good, "dry_run": true}),
        json!({"tenant_id": "acme", "store_id": good, "model_id": "alpha", "reason": "r", "tracking_id": "t", "dry_run": true}),
        json!({good.clone(): 1}),
        json!({"tenant_id": "acme", "store_id": "s", "model_id": "m", "reason": "r", "tracking_id": "t", "dry_run": good}),
        json!([good]),
    ];
    for body in &bodies {
        answers.push(operator.post(MODEL_REFRESH, body).await.text());
    }
    for token in [Some(wrong.as_str()), None] {
        let stranger = Rest::new(&base, token);
        answers.push(stranger.post(MODEL_REFRESH, &body).await.text());
        for path in ["/v1/me", "/readyz", "/healthz", "/openapi.json"] {
            answers.extend(stranger.try_get(path).await.map(|answer| answer.text()));
        }
        answers.extend(stranger.try_get(&format!("/v1/me?access_token={good}")).await.map(|answer| answer.text()));
    }
    for path in ["/v1/me", "/v1/audit", "/v1/operations", "/metrics", &format!("/v1/tenants/{good}/stores")] {
        answers.extend(operator.try_get(path).await.map(|answer| answer.text()));
    }

    let mut canaries = vec![("the operator's token", canary(&good)), ("the wrong token", canary(&wrong))];
    for service in ServiceName::ALL {
        let path = topology.data.keys().join(format!("{service}.key"));
        canaries.push((service.as_str(), canary(&fs::read_to_string(path).expect("a key"))));
    }
    let logs: String = topology.raw_log();
    assert!(logs.contains("operator token refused") && logs.contains("CHG-1"), "the logs are there");
    let answers = answers.join("\n");
    let places = [("the logs", logs), ("what was printed", topology.printed()), ("answers", answers)];
    for (place, text) in &places {
        for (name, canary) in &canaries {
            // What the operator itself put into a path or body may come back to that operator, never into a log.
            if *place == "answers" && *name == "the operator's token" {
                continue;
            }
            let line = text.lines().find(|line| line.contains(canary.as_str()));
            assert!(line.is_none(), "{name} stands in {place}: {line:?}");
        }
    }
    // The audit log keeps digests of bodies, not bodies.
    let audit = operator.try_get("/v1/audit").await.expect("the audit log").text();
    assert!(audit.contains("CHG-1") && !audit.contains(&canary(&good)));
}

/// Text that would end a line, move a cursor or open a spreadsheet's formula stays within its value.
#[tokio::test(flavor = "multi_thread")]
async fn reasons_and_names_cannot_forge_log_lines() {
    let topology = Topology::three().await;
    let operator = topology.operator(&["acme"]);
    for forged in ["a\nINFO accepted", "a\r\n{\"level\":\"INFO\"}", "a\u{1b}[2K", "a\u{202e}b", "a\0b", "a\u{2028}b"] {
        let body = json!({"tenant_id": "acme", "store_id": "s", "model_id": "m", "reason": forged, "tracking_id": forged,
            "dry_run": true});
        assert_eq!(operator.post(MODEL_REFRESH, &body).await.status, 400, "{forged:?}");
        let path = forged.bytes().fold(String::new(), |path, byte| path + &format!("%{byte:02x}"));
        let answer = operator.try_get(&format!("/v1/tenants/acme/operations/{path}")).await.expect("an answer");
        assert_eq!(answer.status, 400, "{forged:?}");
    }
    // Every line of every process is one JSON object of ours.
    for line in topology.raw_log().lines().filter(|line| !line.is_empty()) {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(parsed["timestamp"].is_string() && parsed["level"].is_string(), "{line}");
        assert!(!line.contains('\u{202e}') && !line.contains('\u{2028}'), "{line}");
    }
}
