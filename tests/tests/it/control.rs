//! Operations under way, controlled through the REST API.

use daemon::SystemClock;
use domain::{Clock as _, OperatorScope, ServiceName};
use gateway::token::OperatorClaims;
use proto::cqs::v1::{ApprovalRequired, SelfEnqueueRequest, SplitItem, split_item};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    rest::Rest,
    topology::{OPERATION_LIMIT, START_LIMIT, Topology},
    wait::until,
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

fn path(id: &str) -> String {
    format!("/v1/tenants/acme/operations/{id}")
}

async fn act(operator: &Rest, id: &str, action: &str, body: Value) -> Value {
    operator.post(&format!("{}/{action}", path(id)), &body).await.json(200)
}

/// Waits until the operation, as REST shows it, is as wanted.
async fn shows(operator: &Rest, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until(&format!("{id} {what}"), START_LIMIT, || async {
        let operation = operator.get_json(&path(id)).await;
        if wanted(&operation) { Ok(operation) } else { Err(operation.to_string()) }
    })
    .await
}

fn causes(operation: &Value) -> Vec<&str> {
    operation["blocked_on"].as_array().expect("a list").iter().filter_map(|one| one["cause"].as_str()).collect()
}

fn stage<'o>(operation: &'o Value, name: &str) -> &'o Value {
    let funnel = operation["funnel"].as_array().expect("a funnel");
    funnel.iter().find(|stage| stage["stage"] == name).unwrap_or_else(|| panic!("no {name} in {operation}"))
}

/// Versions two of a model, so that a refresh has something to do.
pub(crate) async fn changed_shelf(topology: &Topology, labels: usize) -> Shelf {
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", labels)]).await;
    topology.quiet().await;
    shelf.import(&topology.doors, vec![shelf.model("alpha", tests::data::layout("alpha", 2))]).await;
    topology.quiet().await;
    shelf
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_throttled_paused_resumed_and_followed_to_its_end() {
    let topology = Topology::in_process().await;
    let shelf = changed_shelf(&topology, 60).await;
    let operator = topology.operator(&["acme"]);
    let mut asked = refresh(&shelf, "alpha", "slow", false);
    asked["limits"] = json!({"throttle_per_s": 1, "max_in_flight": 2});
    asked["stop_when"] = json!({"failure_ratio_percent": 10, "min_sample": 20});
    operator.post(MODEL_REFRESH, &asked).await.json(202);
    let other = {
        let mut other = asked.clone();
        other["limits"]["throttle_per_s"] = json!(2);
        operator.post(MODEL_REFRESH, &other).await.problem(409)
    };
    assert!(other.field.starts_with("limits"), "other limits are another request: {other:?}");

    let running = shows(&operator, "slow", "is expanded", |operation| operation["expansion_complete"] == true).await;
    assert_eq!(running["controls"]["limits"], json!({"throttle_per_s": 1, "max_in_flight": 2}), "{running}");
    assert_eq!(running["stop_when"], json!({"failure_ratio_percent": 10, "min_sample": 20}));
    assert_eq!(stage(&running, "expanded")["done"], 60, "{running}");
    assert!(running["percent"].as_f64().is_some_and(|percent| percent < 100.0), "{running}");
    assert!(running["allowed"].as_array().expect("a list").contains(&json!("pause")), "{running}");

    let paused = act(&operator, "slow", "pause", json!({"reason": "CHG-1: look at the prices"})).await;
    assert_eq!(
        (&paused["state"], &paused["controls"]["paused"]["reason"]),
        (&json!("PAUSED"), &json!("CHG-1: look at the prices"))
    );
    assert!(causes(&paused).contains(&"PAUSED"), "{paused}");
    assert_eq!(paused["eta"]["seconds"], Value::Null);
    assert!(paused["eta"]["reason"].is_string(), "{paused}");
    assert!(paused["revision"].as_i64() > running["revision"].as_i64(), "{paused}");

    // A price change goes through meanwhile.
    let label = format!("/v1/tenants/acme/stores/{}/labels/alpha-0059", shelf.store);
    let before = operator.get_json(&label).await["picture"]["digest"].clone();
    shelf.import(&topology.doors, vec![shelf.item("alpha-0059", "9.99")]).await;
    until("the price change is on the label", OPERATION_LIMIT, || async {
        let now = operator.get_json(&label).await;
        let (picture, confirmed) = (&now["picture"]["digest"], &now["delivery"]["confirmed_digest"]);
        if *picture != before && picture == confirmed { Ok(()) } else { Err(now.to_string()) }
    })
    .await;

    // Every control action needs a reason.
    for action in ["pause", "resume", "cancel", "approve", "decline"] {
        let body = json!({"reason": " ", "labels": 1});
        let body = if action == "approve" { body } else { json!({"reason": " "}) };
        let problem = operator.post(&format!("{}/{action}", path("slow")), &body).await.problem(400);
        assert_eq!(problem.field, "reason", "{action}");
    }
    let free = operator
        .change(
            Method::PATCH,
            &path("slow"),
            &json!({"reason": "CHG-1: night", "throttle_per_s": 0, "max_in_flight": 0}),
        )
        .await
        .json(200);
    assert_eq!(free["controls"]["limits"], Value::Null, "{free}");
    act(&operator, "slow", "resume", json!({"reason": "CHG-1: prices are right"})).await;
    let done = shows(&operator, "slow", "succeeds", |operation| operation["state"] == "SUCCEEDED").await;
    assert_eq!(stage(&done, "confirmed")["done"].as_i64().map(|done| done >= 59), Some(true), "{done}");
    assert_eq!(
        (&done["percent"], &done["blocked_on"], &done["allowed"]),
        (&json!(100.0), &json!([]), &json!([])),
        "{done}"
    );
    operator.post(&format!("{}/pause", path("slow")), &json!({"reason": "too late"})).await.problem(409);
    operator.post(&format!("{}/pause", path("nothing")), &json!({"reason": "r"})).await.problem(404);

    // Who did what, and what was refused, is written down.
    let audit = operator.get_json("/v1/audit?tracking_id=slow&page_size=200").await.to_string();
    for action in ["SelfEnqueue", "pause", "resume", "set limits"] {
        assert!(audit.contains(&format!("\"action\":\"{action}\"")), "{action} in {audit}");
    }
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_answers_a_receipt_and_the_brake_stops_all_but_live_work() {
    let topology = Topology::in_process().await;
    let shelf = changed_shelf(&topology, 40).await;
    let operator = topology.operator(&["acme"]);
    let brake = |on: bool, reason: &str| json!({"on": on, "reason": reason});
    let put = operator.change(Method::PUT, "/v1/brake", &brake(true, "INC-7: wrong prices")).await.json(200);
    assert_eq!((&put["on"], &put["by"]["reason"]), (&json!(true), &json!("INC-7: wrong prices")), "{put}");
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "braked", false)).await.json(202);
    let held =
        shows(&operator, "braked", "waits for the brake", |operation| causes(operation).contains(&"BRAKE")).await;
    assert_eq!(stage(&held, "expanded")["waiting"], 1, "{held}");

    let cancelled = act(&operator, "braked", "cancel", json!({"reason": "INC-7: wrong model"})).await;
    assert_eq!(cancelled["operation"]["state"], "CANCELLED", "{cancelled}");
    let receipt = json!({
        "not_started": 0, "in_flight": 0, "handed_over": 0, "already_effective": 0, "unexpanded_parents": 1,
        "quiet_by": null
    });
    assert_eq!(cancelled["receipt"], receipt);
    assert_eq!(act(&operator, "braked", "cancel", json!({"reason": "again"})).await["receipt"], receipt);

    // Live work goes on under the brake.
    shelf.import(&topology.doors, vec![shelf.item("alpha-0000", "0.49")]).await;
    topology.quiet().await;
    let brake_off = operator.change(Method::PUT, "/v1/brake", &brake(false, "INC-7: over")).await.json(200);
    assert_eq!(brake_off, json!({"on": false, "by": null}));
    assert_eq!(operator.get_json("/v1/brake").await, json!({"on": false, "by": null}));
    operator.change(Method::PUT, "/v1/brake", &brake(true, "")).await.problem(400);
    topology.stop().await;
}

/// What the ECC renderer asks of CQS for so many labels that a second operator must approve it.
pub(crate) fn large(shelf: &Shelf, id: &str) -> SelfEnqueueRequest {
    let parent = shelf.model_parent("alpha");
    SelfEnqueueRequest {
        queue_name: ServiceName::EccImageRender.to_string(),
        items: vec![SplitItem {
            dto_type: "ecclink.v1".to_owned(),
            alias_name: "by_eccmodel".to_owned(),
            urn: Some(split_item::Urn::ParentId(parent.clone())),
        }],
        reason: "CHG-121: new logo".to_owned(),
        tracking_id: id.to_owned(),
        operator_subject: "operator@test".to_owned(),
        trigger: "model-refresh".to_owned(),
        scope: parent,
        approval: Some(ApprovalRequired {
            label_count: 118_204,
            expires_at: Some(proto::timestamp_to_wire(SystemClock.now().plus_ms(3_600_000))),
        }),
        plan_id: "5f".repeat(32),
        ..SelfEnqueueRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_operation_waits_for_a_second_operator_who_names_what_is_approved() {
    let topology = Topology::in_process().await;
    let shelf = changed_shelf(&topology, 3).await;
    let mut renderer = topology.doors.cqs(ServiceName::EccImageRender);
    for id in ["large", "alone", "declined"] {
        renderer.self_enqueue(large(&shelf, id)).await.unwrap_or_else(|status| panic!("{status}"));
    }
    let requester = topology.operator(&["acme"]);
    let claims = topology.claims(&["acme"], &[OperatorScope::OperationsApprove, OperatorScope::OperationsRead]);
    let second = topology.operator_as(&OperatorClaims { subject: "second@test".parse().expect("a subject"), ..claims });

    let waits = second.get_json(&path("large")).await;
    assert_eq!((&waits["state"], causes(&waits)), (&json!("AWAITING_APPROVAL"), vec!["AWAITING_APPROVAL"]), "{waits}");
    assert_eq!(waits["controls"]["approval"]["labels"], 118_204);
    let agreed = json!({"reason": "CHG-121: agreed", "labels": 118_204, "plan": waits["plan"]});
    let approve = format!("{}/approve", path("large"));
    let problem = requester.post(&approve, &agreed).await.problem(403);
    assert_eq!(problem.code, "PERMISSION_DENIED", "whoever asked may not approve: {problem:?}");
    for (field, value) in [("labels", json!(118_205)), ("plan", json!("another")), ("plan", Value::Null)] {
        let mut other = agreed.clone();
        other[field] = value;
        assert_eq!(second.post(&approve, &other).await.problem(409).field, field);
    }
    let mut glass = agreed.clone();
    glass["break_glass"] = json!(true);
    let problem = second.post(&approve, &glass).await.problem(403);
    assert!(problem.detail.contains("operations:break-glass"), "{problem:?}");

    let approved = second.post(&approve, &agreed).await.json(200);
    assert_eq!(approved["controls"]["approval"]["state"], "APPROVED", "{approved}");
    assert_eq!(approved["controls"]["approval"]["decided"]["operator"], "second@test");
    shows(&second, "large", "succeeds", |operation| operation["state"] == "SUCCEEDED").await;

    // In an emergency the one who asked goes ahead, loudly.
    requester.post(&format!("{}/approve", path("alone")), &glass).await.json(200);
    shows(&requester, "alone", "succeeds", |operation| operation["state"] == "SUCCEEDED").await;
    let audit = requester.get_json("/v1/audit?tracking_id=alone").await.to_string();
    assert!(audit.contains("\"action\":\"break glass\""), "{audit}");

    let declined = act(&second, "declined", "decline", json!({"reason": "CHG-121: not before the sale"})).await;
    assert_eq!(
        (&declined["state"], &declined["controls"]["approval"]["state"]),
        (&json!("CANCELLED"), &json!("DECLINED"))
    );
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_listed_by_cause_and_retried_alone() {
    let topology = Topology::in_process().await;
    let shelf = changed_shelf(&topology, 5).await;
    let operator = topology.operator(&["acme"]);
    // A price that is none: two labels cannot be rendered.
    let bad = |id: &str| shelf.item(id, "not a price");
    shelf.import(&topology.doors, vec![bad("alpha-0001"), bad("alpha-0003")]).await;
    topology.quiet().await;
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "partly", false)).await.json(202);
    let over = |operation: &Value| operation["state"] == "FINISHED_WITH_FAILURES";
    let partly = shows(&operator, "partly", "finishes", over).await;
    assert_eq!((&partly["summary"]["failed"], &partly["failures_open"]), (&json!(2), &json!(2)), "{partly}");
    assert_eq!(stage(&partly, "rendered")["failed"], 2);
    let list = operator.get_json(&format!("{}/failures?page_size=1", path("partly"))).await;
    let first = &list["failures"][0];
    assert_eq!(
        (&first["stage"], &first["attempts"], &first["retried_by"]),
        (&json!("rendered"), &json!(0), &Value::Null)
    );
    assert!(first["urn"].as_str().is_some_and(|urn| urn.ends_with("/ecclinks/alpha-0001")), "{first}");
    let token = list["next_page_token"].as_str().expect("a second page");
    let second = operator.get_json(&format!("{}/failures?page_size=1&page_token={token}", path("partly"))).await;
    assert!(second["failures"][0]["urn"].as_str().is_some_and(|urn| urn.ends_with("alpha-0003")), "{second}");

    // The prices are mended; only the two are rendered again, under an operation of their own.
    shelf.import(&topology.doors, vec![shelf.item("alpha-0001", "1.49"), shelf.item("alpha-0003", "1.49")]).await;
    topology.quiet().await;
    let mut retry = json!({"reason": "CHG-118: prices mended", "tracking_id": "partly-2", "cause": "no radio"});
    let nothing = operator.post(&format!("{}/retry-failed", path("partly")), &retry).await.problem(409);
    assert!(nothing.detail.contains("nothing failed there"), "{nothing:?}");
    retry["cause"] = first["cause"].clone();
    let accepted = operator.post(&format!("{}/retry-failed", path("partly")), &retry).await;
    let body = accepted.json(202);
    assert_eq!(accepted.header("location"), Some(path("partly-2").as_str()));
    assert_eq!((&body["items"], &body["parent_id"]), (&json!(2), &json!("partly")), "{body}");
    let again = operator.post(&format!("{}/retry-failed", path("partly")), &retry).await.json(200);
    assert_eq!(again["replayed"], true, "{again}");
    let child = shows(&operator, "partly-2", "succeeds", |operation| operation["state"] == "SUCCEEDED").await;
    assert_eq!((&child["parent_id"], &child["summary"]["labels"]), (&json!("partly"), &json!(2)), "{child}");
    let parent = operator.get_json(&path("partly")).await;
    assert_eq!((&parent["state"], &parent["failures_open"]), (&json!("FINISHED_WITH_FAILURES"), &json!(0)), "{parent}");
    assert_eq!(parent["retries"][0]["tracking_id"], "partly-2");
    operator
        .post(&format!("{}/retry-failed", path("partly")), &json!({"reason": "", "tracking_id": "x"}))
        .await
        .problem(400);
    topology.stop().await;
}
