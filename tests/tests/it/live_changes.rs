//! A price that changes for a label which waits in a stopped or slow operation: it is on the label, and the operation is
//! as it was.

use serde_json::{Value, json};
use tests::{
    data::{Shelf, layout},
    rest::Rest,
    topology::{START_LIMIT, Topology},
    wait::until,
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

const TENANT: &str = "acme";
/// Labels of each operation: at one a second it is not done before the test is.
const LABELS: usize = 90;
/// An operation for each way to wait; its model is named like it.
const WAYS: [&str; 3] = ["paused", "throttled", "cancelled"];

fn path(id: &str) -> String {
    format!("/v1/tenants/{TENANT}/operations/{id}")
}

/// The label whose price changes: the last one that the operation would come to.
fn label(way: &str) -> String {
    format!("{way}-{:04}", LABELS - 1)
}

async fn state(operator: &Rest, way: &str) -> Value {
    operator.get_json(&path(way)).await
}

/// Labels that do not show what their records say.
async fn wrong(topology: &Topology) -> Vec<String> {
    let records = topology.tables().await.records(Some(TENANT)).await;
    tests::pictures::compare(&records, |key| topology.png_of(key)).err().unwrap_or_default()
}

fn names(wrong: &[String], label: &str) -> bool {
    wrong.iter().any(|line| line.starts_with(&format!("store-1/{label}:")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_reaches_a_label_that_waits_in_a_paused_throttled_or_cancelled_operation() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &WAYS.map(|way| (way, LABELS))).await;
    topology.quiet().await;
    shelf.import(&topology.doors, WAYS.map(|way| shelf.model(way, layout(way, 2))).to_vec()).await;
    topology.quiet().await;
    let operator = topology.operator(&[TENANT]);
    for way in WAYS {
        let mut asked = refresh(&shelf, way, way, false);
        asked["limits"] = json!({"throttle_per_s": 1});
        operator.post(MODEL_REFRESH, &asked).await.json(202);
        until("it is expanded", START_LIMIT, || async {
            let shown = state(&operator, way).await;
            if shown["expansion_complete"] == true { Ok(()) } else { Err(shown.to_string()) }
        })
        .await;
    }
    let because = json!({"reason": "INC-9: a test"});
    operator.post(&format!("{}/pause", path("paused")), &because).await.json(200);
    let cancelled = operator.post(&format!("{}/cancel", path("cancelled")), &because).await.json(200);
    assert!(cancelled["receipt"]["not_started"].as_i64().is_some_and(|labels| labels > 0), "{cancelled}");
    let before = wrong(&topology).await;

    for way in WAYS {
        let id = label(way);
        assert!(names(&before, &id), "{id} waits, it shows the old layout: {before:?}");
        shelf.import(&topology.doors, vec![shelf.item(&id, "7.77")]).await;
        let view = format!("/v1/tenants/{TENANT}/stores/store-1/labels/{id}");
        until(&format!("the price is on {id}"), START_LIMIT, || async {
            let shown = operator.get_json(&view).await;
            let (price, picture) = (&shown["item"]["values"]["price"], &shown["picture"]["digest"]);
            let there = price == "7.77" && *picture == shown["delivery"]["confirmed_digest"];
            if there && !names(&wrong(&topology).await, &id) { Ok(()) } else { Err(shown.to_string()) }
        })
        .await;
    }
    let after = wrong(&topology).await;
    for (way, wanted) in WAYS.into_iter().zip(["PAUSED", "RUNNING", "CANCELLED"]) {
        let shown = state(&operator, way).await;
        assert_eq!(shown["state"], wanted, "{way}: {shown}");
        assert!(names(&after, &format!("{way}-{:04}", LABELS - 2)), "{way}: its neighbour still waits");
    }
    // Let go, the operation finds that label done.
    for way in ["paused", "throttled"] {
        let free = json!({"reason": "INC-9: over", "throttle_per_s": 0});
        operator.change(reqwest::Method::PATCH, &path(way), &free).await.json(200);
    }
    operator.post(&format!("{}/resume", path("paused")), &because).await.json(200);
    topology.quiet().await;
    let left = wrong(&topology).await;
    assert!(left.iter().all(|line| line.starts_with("store-1/cancelled-")), "{left:?}");
    assert!(!names(&left, &label("cancelled")), "{left:?}");
    topology.assert_exact().await;
    topology.stop().await;
}
