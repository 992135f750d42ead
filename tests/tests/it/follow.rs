//! Following an operation as a stream of server-sent events.

use serde_json::json;
use tests::{
    data::Shelf,
    topology::{OPERATION_LIMIT, Topology},
};

use crate::model_refresh::{MODEL_REFRESH, refresh};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_newer_snapshots_only_resumes_and_ends_after_the_final_state() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, "acme", &[("alpha", 30)]).await;
    topology.quiet().await;
    let operator = topology.operator(&["acme"]);
    let mut asked = refresh(&shelf, "alpha", "followed", false);
    asked["limits"] = json!({"throttle_per_s": 5});
    operator.post(MODEL_REFRESH, &asked).await.json(202);
    let path = "/v1/tenants/acme/operations/followed/events";

    // Broken off after the first two; then from there to the end.
    let begun = std::sync::atomic::AtomicUsize::new(0);
    let two = |_: &tests::rest::Event| begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1;
    let first = operator.events(path, None, two).await;
    assert_eq!((first.status, first.events.len(), first.ended), (200, 2, false), "{first:?}");
    let last = first.events[1].id.clone();
    let rest = operator.events(path, Some(&last), |_| false).await;
    assert!(rest.ended, "it ends by itself");
    let all: Vec<_> = first.events.iter().chain(&rest.events).collect();
    let ids: Vec<i64> = all.iter().map(|event| event.id.parse().expect("a revision")).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "only newer ones: {ids:?}");
    for event in &all {
        assert_eq!((event.name.as_str(), &event.data["tracking_id"]), ("operation", &json!("followed")));
        assert_eq!(event.data["revision"].to_string(), event.id);
    }
    let end = &all.last().expect("an event").data;
    assert_eq!((&end["state"], &end["summary"]["labels"]), (&json!("SUCCEEDED"), &json!(30)), "{end}");

    // Whoever has the last event is told to stop; whoever has none gets it.
    let over = operator.events(path, Some(&ids.last().expect("an id").to_string()), |_| false).await;
    assert_eq!((over.status, over.events.len()), (204, 0));
    let late = operator.events(path, None, |_| false).await;
    assert_eq!((late.events.len(), late.ended), (1, true));
    operator.get(&path.replace("followed", "nothing")).await.problem(404);
    topology.finished("acme", "followed", OPERATION_LIMIT).await;
    topology.stop().await;
}
