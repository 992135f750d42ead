//! An operation that stops itself, and goes on because a person says so.

use serde_json::{Value, json};
use tests::{
    data::Shelf,
    topology::{START_LIMIT, Topology},
    wait::until,
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const PATH: &str = "/v1/tenants/acme/operations/held";
const LABELS: usize = 60;
/// Every third label has a price that the new layout has no room for.
const EVERY: usize = 3;

/// A layout whose price fits as long as it is a usual one.
fn narrow() -> String {
    json!({
        "ecc": 1,
        "name": "narrow",
        "variants": [{
            "width": 296,
            "height": 128,
            "elements": [
                {"kind": "price", "id": "price", "box": [6, 44, 284, 70], "value": "{item.price}",
                 "size": 48, "size_min": 40, "align": "right"},
            ],
        }],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_over_its_failure_budget_is_held_until_a_person_resumes_it() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", LABELS)]).await;
    let long: Vec<&String> = shelf.labels["alpha"].iter().step_by(EVERY).collect();
    shelf.import(&topology.doors, long.iter().map(|id| shelf.item(id, "123456789.99")).collect()).await;
    topology.quiet().await;
    assert_eq!(topology.assert_pictures(Some("acme")).await.equal, LABELS, "the old layout shows every price");
    shelf.import(&topology.doors, vec![shelf.model("alpha", narrow())]).await;
    topology.quiet().await;
    let operator = topology.operator(&["acme"]);
    let mut asked = refresh(&shelf, "alpha", "held", false);
    asked["limits"] = json!({"throttle_per_s": 20});
    asked["stop_when"] = json!({"failure_ratio_percent": 20, "min_sample": 12});
    operator.post(MODEL_REFRESH, &asked).await.json(202);

    let shows = |what: &'static str, wanted: fn(&Value) -> bool| {
        let operator = operator.clone();
        async move {
            until(what, START_LIMIT, || async {
                let shown = operator.get_json(PATH).await;
                if wanted(&shown) { Ok(shown) } else { Err(shown.to_string()) }
            })
            .await
        }
    };
    let rendered = |shown: &Value| shown["stages"][0]["labels"].clone();
    let held = shows("it holds itself", |shown| {
        shown["state"] == "HELD" && shown["stages"].as_array().is_some_and(|stages| stages.iter().all(idle))
    })
    .await;
    assert_eq!(held["controls"]["paused"], Value::Null, "a hold is no pause: {held}");
    assert_eq!(held["controls"]["held"]["operator"], Value::Null, "nobody did it: {held}");
    assert!(held["blocked_on"].to_string().contains("HELD"), "{held}");
    assert!(held["allowed"].to_string().contains("resume"), "{held}");
    assert_eq!(held["eta"]["seconds"], Value::Null, "{held}");
    assert!(rendered(&held)["failed"].as_i64().is_some_and(|failed| failed >= 3), "{held}");
    assert!(rendered(&held)["waiting"].as_i64().is_some_and(|waiting| waiting > 0), "most is spared: {held}");
    assert_eq!(held["failures"][0]["count"], rendered(&held)["failed"], "one cause: {held}");

    // Live changes go on meanwhile: the prices that did not fit become usual ones.
    shelf.import(&topology.doors, long.iter().map(|id| shelf.item(id, "2.49")).collect()).await;
    until("nothing but the operation waits", START_LIMIT, || async {
        let rows = topology.tables().await.rows_by_queue().await;
        let shown = operator.get_json(PATH).await;
        let stages = shown["stages"].as_array().expect("stages").iter();
        let waiting: i64 = stages.filter_map(|stage| stage["labels"]["waiting"].as_i64()).sum();
        if rows.values().sum::<i64>() == waiting { Ok(()) } else { Err(format!("{rows:?}")) }
    })
    .await;
    let still = operator.get_json(PATH).await;
    assert_eq!((&still["state"], rendered(&still)), (&json!("HELD"), rendered(&held)), "nothing of it moved: {still}");

    let resumed = operator.post(&format!("{PATH}/resume"), &json!({"reason": "CHG-118: mended"})).await.json(200);
    assert_eq!((&resumed["state"], &resumed["controls"]["held"]), (&json!("RUNNING"), &Value::Null), "{resumed}");
    let over = shows("it ends", |shown| shown["state"] == "FINISHED_WITH_FAILURES").await;
    assert_eq!(rendered(&over)["failed"], rendered(&held)["failed"], "no more failed: {over}");
    let compared = topology.assert_pictures(Some("acme")).await;
    assert_eq!((compared.equal, compared.unrenderable), (LABELS, 0));
    let audit = operator.get_json("/v1/audit?tracking_id=held&page_size=200").await;
    let by = |action: &str| {
        let entries = audit["entries"].as_array().expect("entries");
        entries.iter().find(|entry| entry["action"] == action).map(|entry| entry["operator"].clone())
    };
    assert_eq!((by("hold"), by("resume")), (Some(json!("")), Some(json!("operator@test"))), "{audit}");
    topology.assert_exact().await;
    topology.stop().await;
}

/// Whether nothing of a stage is in a worker's hands.
fn idle(stage: &Value) -> bool {
    stage["labels"]["leased"] == 0 && stage["parents"]["leased"] == 0
}
