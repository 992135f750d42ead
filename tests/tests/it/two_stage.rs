//! Designs: written and triggered, counted store by store, and everything at once.

use std::collections::BTreeMap;

use domain::ServiceName;
use proto::cqs::v1::{Operation, OperationState, QueueCounts};
use serde_json::{Value, json};
use tests::{
    data::{Shelf, layout},
    topology::{START_LIMIT, Topology, expanded_through, stage, through},
};

/// The triggers.
pub(crate) const DESIGN_REFRESH: &str = "/v1/triggers/design-refresh";
const ECC_STORE: &str = "/v1/triggers/ecc-store-rerender";
const STUDIO_STORE: &str = "/v1/triggers/studio-store-rerender";
const STUDIO: ServiceName = ServiceName::StudioRenderer;
const ECC: ServiceName = ServiceName::EccImageRender;

/// A request for a refresh of a design.
pub(crate) fn refresh(tenant: &str, design: &str, tracking_id: &str, dry_run: bool) -> Value {
    json!({
        "tenant_id": tenant,
        "design_id": design,
        "reason": "CHG-121: the logo was renewed",
        "tracking_id": tracking_id,
        "dry_run": dry_run,
    })
}

/// Design `poster` in two stores and a label of design `band`; writes, dry run, run and REST view.
async fn design_job(topology: &Topology, tenant: &str) {
    let one = Shelf::write_studio_store(&topology.doors, tenant, "store-1", &[("poster", 12), ("band", 1)]).await;
    let two = Shelf::write_studio_store(&topology.doors, tenant, "store-2", &[("poster", 7)]).await;
    one.import(&topology.doors, vec![one.design("poster", 1), one.design("band", 1)]).await;
    topology.quiet().await;
    let labels = one.label_count() + two.label_count();
    assert_eq!(topology.assert_pictures(Some(tenant)).await.equal, labels);

    // A written design reaches its labels by itself.
    one.import(&topology.doors, vec![one.design("poster", 2)]).await;
    topology.quiet().await;
    assert_eq!(topology.assert_pictures(Some(tenant)).await.equal, labels, "version 2 is shown");

    // A dry run counts by store, and does nothing else.
    let operator = topology.operator(&[tenant]);
    let dry = operator.post(DESIGN_REFRESH, &refresh(tenant, "poster", "design-1", true)).await.json(200);
    let stores = json!([{"store_id": "store-1", "labels": 12}, {"store_id": "store-2", "labels": 7}]);
    assert_eq!(
        (&dry["labels"], &dry["stores"], &dry["would_run_on"]),
        (&json!(19), &stores, &json!("studio-renderer"))
    );
    assert!(topology.operation(tenant, "design-1").await.is_none(), "a dry run reserves no tracking id");

    // The run takes the same way, finds everything done, and sends nothing.
    let body = operator.post(DESIGN_REFRESH, &refresh(tenant, "poster", "design-1", false)).await.json(202);
    assert_eq!((&body["labels"], &body["items_enqueued"]), (&json!(19), &json!(1)), "one parent");
    let operation = topology.finished(tenant, "design-1", START_LIMIT).await;
    assert_eq!(operation.state(), OperationState::Succeeded);
    assert_eq!(stage(&operation, STUDIO), expanded_through(STUDIO, 3, 19, 19));
    for service in [ECC, ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
        assert_eq!(stage(&operation, service), through(service, 0, 0), "nothing goes on");
    }
    topology.assert_exact().await;

    let designs = operator.get_json(&format!("/v1/tenants/{tenant}/designs")).await;
    let listed: BTreeMap<&str, i64> = designs["designs"]
        .as_array()
        .expect("designs")
        .iter()
        .map(|design| (design["design_id"].as_str().expect("an id"), design["labels"].as_i64().expect("a count")))
        .collect();
    assert_eq!(listed, BTreeMap::from([("band", 1), ("poster", 19)]));
    let label = operator.get_json(&format!("/v1/tenants/{tenant}/stores/store-1/labels/poster-0000")).await;
    assert_eq!((&label["picture"]["source"], &label["design_id"]), (&json!("STUDIO"), &json!("poster")));
    let seen = operator.get_json(&format!("/v1/tenants/{tenant}/operations/design-1")).await;
    assert_eq!((&seen["state"], &seen["stages"][0]["stage"]), (&json!("SUCCEEDED"), &json!("rendered")), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_design_reaches_every_store_in_one_process() {
    let topology = Topology::in_process().await;
    design_job(&topology, "acme").await;
    topology.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_design_reaches_every_store_over_three_processes() {
    let topology = Topology::three().await;
    design_job(&topology, "acme").await;
    topology.stop().await;
}

/// Labels of each design in each of the two stores.
const LABELS: usize = 60;

/// Both stores with labels of two designs; in the first, half of design p's labels have an ECC link too, and there are
/// labels of the model alone.
async fn overlapping(topology: &Topology, tenant: &str) -> [Shelf; 2] {
    let designs: &[(&str, usize)] = &[("p", LABELS), ("q", LABELS)];
    let one = Shelf::write_studio_store(&topology.doors, tenant, "store-1", designs).await;
    let two = Shelf::write_studio_store(&topology.doors, tenant, "store-2", designs).await;
    let mut puts = vec![one.design("p", 1), one.design("q", 1), one.model("alpha", layout("alpha", 1))];
    puts.extend(one.labels["p"].iter().step_by(2).map(|id| one.link(id, "alpha", 1)));
    for number in 0..LABELS {
        let id = format!("alpha-{number:04}");
        puts.extend([one.item(&id, "1.99"), one.esl(&id), one.link(&id, "alpha", 1)]);
    }
    one.import(&topology.doors, puts).await;
    topology.quiet().await;
    [one, two]
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshes_rerenders_and_changes_at_once_end_right_and_exact() {
    let tenant = "acme";
    let topology = Topology::in_process().await;
    let [one, two] = overlapping(&topology, tenant).await;
    let all = 5 * LABELS;
    assert_eq!(topology.assert_pictures(Some(tenant)).await.equal, all);

    let operator = topology.operator(&[tenant]);
    let store = |tracking_id: &str| {
        json!({"tenant_id": tenant, "store_id": "store-1", "reason": "CHG-130: upgraded", "tracking_id": tracking_id,
               "dry_run": false, "sla_timestamp": "2020-01-01T00:00:00Z"})
    };
    let due = |mut request: Value| {
        request["sla_timestamp"] = json!("2020-01-01T00:00:00Z");
        request
    };
    let changes = |shelf: &Shelf, price: &str| {
        shelf.labels.values().flatten().step_by(3).map(|id| shelf.item(id, price)).collect::<Vec<_>>()
    };
    one.import(&topology.doors, vec![one.design("p", 2), one.design("q", 2)]).await;
    operator.post(DESIGN_REFRESH, &due(refresh(tenant, "p", "p", false))).await.json(202);
    one.import(&topology.doors, changes(&one, "2.99")).await;
    operator.post(STUDIO_STORE, &store("studio-store")).await.json(202);
    operator.post(DESIGN_REFRESH, &due(refresh(tenant, "q", "q", false))).await.json(202);
    two.import(&topology.doors, changes(&two, "3.99")).await;
    one.import(&topology.doors, vec![one.model("alpha", layout("alpha", 2)), one.design("p", 3)]).await;
    operator.post(ECC_STORE, &store("ecc-store")).await.json(202);
    one.import(&topology.doors, changes(&one, "4.99")).await;

    for tracking_id in ["p", "q", "studio-store", "ecc-store"] {
        let operation = topology.finished_exactly(tenant, tracking_id, START_LIMIT).await;
        assert_eq!(operation.state(), OperationState::Succeeded, "{operation:#?}");
        explained(&operation, i64::try_from(LABELS).expect("few"));
    }
    topology.quiet().await;
    assert_eq!(topology.assert_pictures(Some(tenant)).await.equal, all, "every label ends right");
    topology.assert_exact().await;
    assert_eq!(topology.tables().await.dead().await, 0);
    topology.stop().await;
}

/// Each operation handled its links once, and what changed nothing went no further unless another lane still had it.
fn explained(operation: &Operation, labels: i64) {
    let (service, parents, links) = match operation.tracking_id.as_str() {
        // Both stores' labels of the design.
        "p" | "q" => (STUDIO, 3, 2 * labels),
        "studio-store" => (STUDIO, 1, 2 * labels),
        // Those of the model alone and those of design p that have both links.
        _ => (ECC, 1, labels + labels / 2),
    };
    let rendered = stage(operation, service);
    let expected = QueueCounts { unchanged: rendered.unchanged, ..expanded_through(service, parents, links, 0) };
    assert_eq!(rendered, expected, "{}", operation.tracking_id);
    let merged = stage(operation, ServiceName::EslImageMerger);
    assert!(
        (links - rendered.unchanged..=links).contains(&merged.enqueued),
        "{}: {} rendered anew, {} merged",
        operation.tracking_id,
        links - rendered.unchanged,
        merged.enqueued
    );
}
