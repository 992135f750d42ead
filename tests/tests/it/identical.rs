//! The same request many times at once, as a script without patience or a proxy that repeats sends it.

use reqwest::header::LOCATION;
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    rest::Rest,
    topology::{OPERATION_LIMIT, START_LIMIT, Topology},
    wait::until,
};
use tokio::task::JoinSet;

use crate::model_refresh::{MODEL_REFRESH, refresh};

const REQUESTS: usize = 100;
const LABELS: usize = 12;

/// Posts until the gateway takes it: it has only so many requests of one operator in hand, and says so.
async fn accepted(operator: &Rest, body: &Value) -> (u16, Value, Option<String>) {
    until("the gateway takes the request", START_LIMIT, || async {
        let answer = operator.post(MODEL_REFRESH, body).await;
        match answer.status {
            429 => Err(answer.text()),
            status => {
                let location = answer.header(LOCATION.as_str()).map(str::to_owned);
                Ok((status, answer.json(status), location))
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_identical_posts_at_once_open_one_operation_with_one_parent() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", LABELS)]).await;
    topology.quiet().await;
    let operator = topology.operator(&["acme"]);
    let body = refresh(&shelf, "alpha", "same", false);
    let mut posts = JoinSet::new();
    for _ in 0..REQUESTS {
        let (operator, body) = (operator.clone(), body.clone());
        posts.spawn(async move { accepted(&operator, &body).await });
    }
    let mut new = 0;
    let mut replayed = 0;
    while let Some(answer) = posts.join_next().await {
        let (status, body, location) = answer.expect("it was answered");
        let path = "/v1/tenants/acme/operations/same";
        assert_eq!((&body["operation"], &body["items_enqueued"]), (&json!(path), &json!(1)), "{body}");
        match (status, body["replayed"].as_bool()) {
            (202, Some(false)) => {
                new += 1;
                assert_eq!(location.as_deref(), Some(path));
            }
            (200, Some(true)) => replayed += 1,
            other => panic!("{other:?}: {body}"),
        }
    }
    assert_eq!((new, replayed), (1, REQUESTS - 1));
    topology.finished("acme", "same", OPERATION_LIMIT).await;
    topology.quiet().await;
    assert_eq!(topology.tables().await.operations().await, 1);
    let shown = operator.get_json("/v1/tenants/acme/operations/same").await;
    let rendered = &shown["stages"][0];
    assert_eq!((&rendered["parents"]["received"], &rendered["labels"]["received"]), (&json!(1), &json!(LABELS)));
    let audit = topology.tables().await.audit_of("same").await;
    let outcomes =
        |wanted: &str| audit.iter().filter(|entry| entry.action == "SelfEnqueue" && entry.outcome == wanted).count();
    assert_eq!((outcomes("accepted"), outcomes("replayed")), (1, REQUESTS - 1), "{audit:?}");
    topology.assert_exact().await;
    topology.stop().await;
}
