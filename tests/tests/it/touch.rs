//! A touch announces a record again, for one hop.

use domain::DtoType;
use serde_json::{Value, json};
use tests::{
    data::Shelf,
    tables::{Records, StoredRecord},
    topology::Topology,
};

const TENANT: &str = "acme";
const TOUCH: &str = "/v1/triggers/touch";

fn touch(dto_type: DtoType, urn: &str, tracking_id: &str, dry_run: bool) -> Value {
    json!({
        "records": [{"dto_type": dto_type.as_str(), "dto_id": urn}],
        "reason": "CHG-119: announce again",
        "tracking_id": tracking_id,
        "dry_run": dry_run,
    })
}

fn record(records: &Records, dto_type: DtoType, id: &str) -> StoredRecord {
    let found = records.of(dto_type.as_str()).find(|(key, _)| key.id == id);
    found.map_or_else(|| panic!("there is a {dto_type} {id}"), |(_, record)| record.clone())
}

/// Every record but the named one, to show that nothing else moved.
fn others(records: &Records, dto_type: DtoType, id: &str) -> Vec<(String, String, StoredRecord)> {
    DtoType::ALL
        .iter()
        .flat_map(|kind| records.of(kind.as_str()).map(move |(key, record)| (*kind, key, record)))
        .filter(|(kind, key, _)| !(*kind == dto_type && key.id == id))
        .map(|(kind, key, record)| (kind.to_string(), key.id.clone(), record.clone()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn touching_a_model_bumps_it_and_renders_nothing() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 5)]).await;
    topology.quiet().await;
    let operator = topology.operator(&[TENANT]);
    let urn = shelf.urn(DtoType::EccModel, "alpha");
    let before = topology.tables().await.records(Some(TENANT)).await;
    let notifications = topology.tables().await.notifications_ever().await;

    let dry = operator.post(TOUCH, &touch(DtoType::EccModel, &urn, "touch-1", true)).await.json(200);
    assert_eq!((&dry["would_touch"], &dry["touched"]), (&json!(1), &json!(0)), "{dry}");
    topology.quiet().await;
    assert_eq!(topology.tables().await.records(Some(TENANT)).await, before, "a dry run touches nothing");
    assert_eq!(topology.tables().await.notifications_ever().await, notifications);

    let answer = operator.post(TOUCH, &touch(DtoType::EccModel, &urn, "touch-1", false)).await.json(200);
    assert_eq!(answer["touched"], 1, "{answer}");
    topology.quiet().await;
    let after = topology.tables().await.records(Some(TENANT)).await;
    let (old, new) = (record(&before, DtoType::EccModel, "alpha"), record(&after, DtoType::EccModel, "alpha"));
    assert_eq!((old.version, &old.payload), (new.version, &new.payload), "same payload and version");
    assert!(new.updated_at > old.updated_at, "new timestamp: {} {}", old.updated_at, new.updated_at);
    assert_eq!(others(&before, DtoType::EccModel, "alpha"), others(&after, DtoType::EccModel, "alpha"));
    let caused = topology.tables().await.notifications_ever().await - notifications;
    assert_eq!(caused, 1, "the model's own notification and no label's: zero renders");
    let entries = topology.tables().await.audit_of("touch-1").await;
    assert_eq!(entries.iter().filter(|entry| entry.outcome == "accepted").count(), 1, "{entries:#?}");
    assert!(topology.operation(TENANT, "touch-1").await.is_none(), "a touch is no operation");
    topology.assert_exact().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn touching_an_item_renders_its_label_unchanged_and_stops_there() {
    let topology = Topology::in_process().await;
    let shelf = Shelf::write(&topology.doors, TENANT, &[("alpha", 5)]).await;
    topology.quiet().await;
    let before = topology.tables().await.records(Some(TENANT)).await;
    let notifications = topology.tables().await.notifications_ever().await;
    let operator = topology.operator(&[TENANT]);
    let urn = shelf.urn(DtoType::StoreItemValues, "alpha-0002");
    let answer = operator.post(TOUCH, &touch(DtoType::StoreItemValues, &urn, "touch-2", false)).await.json(200);
    assert_eq!(answer["touched"], 1, "{answer}");
    topology.quiet().await;
    let after = topology.tables().await.records(Some(TENANT)).await;
    let item = DtoType::StoreItemValues;
    assert!(record(&after, item, "alpha-0002").updated_at > record(&before, item, "alpha-0002").updated_at);
    assert_eq!(others(&before, item, "alpha-0002"), others(&after, item, "alpha-0002"), "nothing is written");
    // The item's notification to either renderer, and its one link's: rendered, unchanged, so neither merger nor exporter
    // hear of it.
    assert_eq!(topology.tables().await.notifications_ever().await - notifications, 3);
    topology.assert_exact().await;
}
