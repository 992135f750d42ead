//! Totals over an operation and its retries: what failed and was handled again is counted once, and as what it became.

use serde_json::{Value, json};
use tests::{
    cli::Shell,
    data::Shelf,
    rest::Rest,
    topology::{START_LIMIT, Topology},
    wait::until,
};

use crate::{
    control::changed_shelf,
    model_refresh::{MODEL_REFRESH, refresh},
};

const LABELS: usize = 6;

fn path(id: &str) -> String {
    format!("/v1/tenants/acme/operations/{id}")
}

/// The operation once it is over.
async fn over(operator: &Rest, id: &str) -> Value {
    until(&format!("{id} is over"), START_LIMIT, || async {
        let operation = operator.get_json(&path(id)).await;
        if operation["finished_at"].is_null() { Err(operation.to_string()) } else { Ok(operation) }
    })
    .await
}

async fn prices(topology: &Topology, shelf: &Shelf, prices: &[(&str, &str)]) {
    shelf.import(&topology.doors, prices.iter().map(|(id, price)| shelf.item(id, price)).collect()).await;
    topology.quiet().await;
}

async fn retry(operator: &Rest, id: &str, child: &str) -> Value {
    let asked = json!({"reason": "CHG-1: prices mended", "tracking_id": child});
    operator.post(&format!("{}/retry-failed", path(id)), &asked).await.json(202);
    over(operator, child).await
}

/// Labels, exported and failed; and the funnel's failures in the first stage.
fn counted(totals: &Value) -> (Option<i64>, Option<i64>, Option<i64>, Option<i64>) {
    let summary = &totals["summary"];
    let rendered = totals["funnel"].as_array().into_iter().flatten().find(|stage| stage["stage"] == "rendered");
    (
        summary["labels"].as_i64(),
        summary["exported"].as_i64(),
        summary["failed"].as_i64(),
        rendered.and_then(|stage| stage["failed"].as_i64()),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_count_an_operation_with_its_retries_and_theirs() {
    let topology = Topology::in_process().await;
    let shelf = changed_shelf(&topology, LABELS).await;
    let operator = topology.operator(&["acme"]);
    // Prices that are none: three labels cannot be rendered.
    let bad = "not a price";
    prices(&topology, &shelf, &[("alpha-0001", bad), ("alpha-0003", bad), ("alpha-0005", bad)]).await;
    operator.post(MODEL_REFRESH, &refresh(&shelf, "alpha", "CHG-1", false)).await.json(202);
    let alone = over(&operator, "CHG-1").await;
    assert_eq!(
        (&alone["totals"], &alone["summary"]["failed"], &alone["percent"]),
        (&Value::Null, &json!(3), &json!(100.0)),
        "nothing was retried: {alone}"
    );

    // One is mended before the first retry. Its picture is another one by then, so nothing of it goes further.
    prices(&topology, &shelf, &[("alpha-0001", "1.49")]).await;
    let child = retry(&operator, "CHG-1", "CHG-1-b").await;
    assert_eq!((&child["parent_id"], &child["summary"]["failed"]), (&json!("CHG-1"), &json!(2)), "{child}");
    let partly = operator.get_json(&path("CHG-1")).await;
    let totals = &partly["totals"];
    assert_eq!((&totals["state"], &totals["operations"]), (&json!("FINISHED_WITH_FAILURES"), &json!(2)), "{totals}");
    assert_eq!(counted(totals), (Some(6), Some(3), Some(2), Some(2)), "{totals}");
    assert_eq!(partly["summary"]["failed"], 3, "its own counts stay as they are: {partly}");

    // The others are mended before a retry of the retry.
    prices(&topology, &shelf, &[("alpha-0003", "1.59"), ("alpha-0005", "1.69")]).await;
    let last = retry(&operator, "CHG-1-b", "CHG-1-c").await;
    assert_eq!((&last["state"], &last["totals"]), (&json!("SUCCEEDED"), &Value::Null), "{last}");
    let whole = operator.get_json(&path("CHG-1")).await;
    let totals = &whole["totals"];
    assert_eq!(
        (&totals["state"], &totals["operations"], &totals["complete"], &totals["percent"]),
        (&json!("SUCCEEDED"), &json!(3), &json!(true), &json!(100.0)),
        "{totals}"
    );
    assert_eq!(counted(totals), (Some(6), Some(3), Some(0), Some(0)), "{totals}");
    assert_eq!(totals["summary"]["unchanged"], 3, "mended prices rendered them already: {totals}");
    assert_eq!(operator.get_json(&path("CHG-1-b")).await["totals"]["operations"], 2, "from there on");
    for list in ["/v1/operations", "/v1/tenants/acme/operations"] {
        let listed = operator.get_json(list).await;
        let of = |id: &str| {
            listed["operations"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|one| one["tracking_id"] == id)
                .expect("it is listed")
        };
        assert_eq!(&of("CHG-1")["totals"], totals, "lists tell the same");
        assert_eq!((&of("CHG-1-b")["totals"]["operations"], &of("CHG-1-c")["totals"]), (&json!(2), &Value::Null));
    }
    let streamed = operator.events(&format!("{}/events", path("CHG-1")), None, |_| true).await;
    assert_eq!(&streamed.events[0].data["totals"], totals, "and so do streams");

    let shown = Shell::new(&operator, topology.folder()).run(&["operations", "show", "CHG-1"]).await.ended(0);
    assert!(shown.out.contains("with retries") && shown.out.contains("SUCCEEDED, 0 of 6 labels failed"), "{shown:?}");
    let listed = Shell::new(&operator, topology.folder()).run(&["operations", "list"]).await.ended(0);
    assert!(listed.out.contains("SUCCEEDED, 0 of 6 labels failed"), "{listed:?}");
    topology.assert_exact().await;
    topology.stop().await;
}
