//! A gateway keeps nothing: killed and started again, its streams are resumed and its webhooks told, and approvals are as
//! they were. Three processes; approval is needed above ten labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use domain::OperatorScope;
use gateway::token::OperatorClaims;
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    rest::{Event, Rest},
    topology::{START_LIMIT, Topology},
    wait::until,
};

use crate::{
    model_refresh::{MODEL_REFRESH, refresh},
    webhooks::{SECRET, Told, endpoint},
};

const LARGE: usize = 30;
const SMALL: usize = 8;

fn path(id: &str) -> String {
    format!("/v1/tenants/acme/operations/{id}")
}

async fn ask(operator: &Rest, shelf: &Shelf, (model, id): (&str, &str), per_s: usize) {
    let mut asked = refresh(shelf, model, id, false);
    asked["limits"] = json!({"throttle_per_s": per_s});
    operator.post(MODEL_REFRESH, &asked).await.json(202);
}

/// The signature as the standard says: of id, time and body, by the shared secret.
fn assert_signed(told: &Told) {
    let secret = BASE64_STANDARD.decode(SECRET.trim_start_matches("whsec_")).expect("base64");
    let signed = format!("{}.{}.{}", told.headers["webhook-id"], told.headers["webhook-timestamp"], told.text);
    let tag = told.headers["webhook-signature"].strip_prefix("v1,").expect("version one");
    let tag = BASE64_STANDARD.decode(tag).expect("base64");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    assert!(hmac::verify(&key, signed.as_bytes(), &tag).is_ok(), "{told:?}");
}

/// What was told of each operation, in order.
fn by_operation(told: &[Told]) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for told in told {
        let id = told.body["data"]["tracking_id"].as_str().expect("a tracking id");
        found.entry(id).or_default().push(told.body["type"].as_str().expect("a type"));
    }
    found
}

/// The three processes with that endpoint.
async fn started(folder: &std::path::Path, url: &str) -> (Topology, Shelf) {
    let secret = folder.join("pager.secret");
    fs::write(&secret, SECRET).expect("the secret is written");
    let sections = format!(
        "[policy]\napproval_above_labels = 10\n\n[webhooks]\nallow = [\"127.0.0.0/8\"]\n\n[[webhooks.endpoints]]\n\
         name = \"pager\"\nurl = \"{url}\"\nsecret_file = \"{}\"\ntenants = [\"acme\"]\n",
        secret.display()
    );
    let topology = Topology::three_with(&sections).await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", LARGE), ("beta", SMALL)]).await;
    topology.quiet().await;
    until("the gateway follows", START_LIMIT, || async {
        let readers = topology.tables().await.audit_readers().await;
        if readers > 0 { Ok(()) } else { Err("nobody follows") }
    })
    .await;
    (topology, shelf)
}

/// One waits for a second operator, in another the glass is broken; both needed approval.
async fn approved_and_broken(topology: &Topology, shelf: &Shelf) {
    let requester = topology.operator(&["acme"]);
    let claims = topology.claims(&["acme"], &[OperatorScope::OperationsApprove, OperatorScope::OperationsRead]);
    let second = topology.operator_as(&OperatorClaims { subject: "second@test".parse().expect("a subject"), ..claims });
    let dry = requester.post(MODEL_REFRESH, &refresh(shelf, "alpha", "large", true)).await.json(200);
    assert_eq!(dry["approval"], json!({"needed": true, "above_labels": 10}), "{dry}");
    ask(&requester, shelf, ("alpha", "large"), 4).await;
    ask(&requester, shelf, ("alpha", "alone"), 0).await;
    let waits = second.get_json(&path("large")).await;
    assert_eq!(
        (&waits["state"], &waits["controls"]["approval"]["labels"]),
        (&json!("AWAITING_APPROVAL"), &json!(LARGE))
    );

    let approve = format!("{}/approve", path("large"));
    let agreed = json!({"reason": "CHG-121: agreed", "labels": LARGE});
    assert_eq!(requester.post(&approve, &agreed).await.problem(403).code, "PERMISSION_DENIED");
    let still = second.get_json(&path("large")).await;
    assert_eq!((&still["state"], &still["summary"]["labels"]), (&json!("AWAITING_APPROVAL"), &json!(0)), "{still}");
    let approved = second.post(&approve, &agreed).await.json(200);
    assert_eq!(approved["controls"]["approval"]["decided"]["operator"], "second@test", "{approved}");

    let glass = |reason: &str| json!({"reason": reason, "labels": LARGE, "break_glass": true});
    let alone = format!("{}/approve", path("alone"));
    assert_eq!(second.post(&alone, &glass("INC-7")).await.problem(403).code, "PERMISSION_DENIED", "no scope for it");
    assert_eq!(requester.post(&alone, &glass("")).await.problem(400).field, "reason");
    requester.post(&alone, &glass("INC-7: wrong prices, nobody else is awake")).await.json(200);
    let audit = requester.get_json("/v1/audit?tracking_id=alone&action=break%20glass").await;
    let [entry] = audit["entries"].as_array().expect("entries").as_slice() else { panic!("one entry: {audit}") };
    assert_eq!(
        (&entry["operator"], &entry["outcome"], &entry["reason"]),
        (&json!("operator@test"), &json!("ACCEPTED"), &json!("INC-7: wrong prices, nobody else is awake"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_webhooks_and_approvals_outlive_the_gateway() {
    let (url, inbox) = endpoint().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (mut topology, shelf) = started(folder.path(), &url).await;
    approved_and_broken(&topology, &shelf).await;

    // Followed for two events; then the gateway is killed, and something ends while there is none.
    let operator = topology.operator(&["acme"]);
    let events = format!("{}/events", path("large"));
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let two = |_: &Event| seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1;
    let first = operator.events(&events, None, two).await;
    let last = first.events[1].id.clone();
    ask(&operator, &shelf, ("beta", "small"), SMALL).await;
    topology.kill_gateway().await;
    topology.finished("acme", "small", START_LIMIT).await;
    assert!(operator.try_get("/healthz").await.is_none(), "there is no gateway");
    topology.start_gateway().await;

    let rest = operator.events(&events, Some(&last), |_| false).await;
    assert!((rest.status, rest.ended) == (200, true), "{rest:?}");
    let ids: Vec<i64> =
        first.events.iter().chain(&rest.events).map(|event| event.id.parse().expect("a revision")).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "only newer ones: {ids:?}");
    let end: &Value = &rest.events.last().expect("the final one at least").data;
    assert_eq!((&end["state"], &end["summary"]["labels"]), (&json!("SUCCEEDED"), &json!(LARGE)), "{end}");
    topology.finished("acme", "alone", START_LIMIT).await;

    // At least once: what was told when the gateway was killed may be told again, under the same id.
    let all = until("seven events are told", START_LIMIT, || async {
        let mut ids = BTreeSet::new();
        let mut once = inbox.lock().await.clone();
        once.retain(|told| ids.insert(told.headers["webhook-id"].clone()));
        if once.len() >= 7 { Ok(once) } else { Err(format!("{:?}", by_operation(&once))) }
    })
    .await;
    let finished = "operation.finished";
    let expected = BTreeMap::from([
        ("large", vec!["operation.approval_needed", "operation.approved", finished]),
        ("alone", vec!["operation.approval_needed", "operation.break_glass", finished]),
        ("small", vec![finished]),
    ]);
    assert_eq!(by_operation(&all), expected);
    for told in inbox.lock().await.iter() {
        assert_signed(told);
    }
    topology.assert_exact().await;
    topology.stop().await;
}
