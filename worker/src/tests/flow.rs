//! What becomes of changes and triggers, from record to file.

use domain::{DtoType, ServiceName};
use proto::{cqs::v1::OperationState, records::v1 as records};

use super::world::{World, counts, eventually};

/// Labels E0 to E3 of items I0 to I3; the first two on model M, the others on model N.
async fn four_labels(world: &World) {
    world.store().await;
    world.model("M", "m1").await;
    world.model("N", "n1").await;
    for label in 0..4 {
        let (label, item) = (format!("E{label}"), format!("I{label}"));
        world.item(&item, &item).await;
        world.esl(&label).await;
        let model = if matches!(label.as_str(), "E0" | "E1") { "M" } else { "N" };
        world.link(&label, &item, model).await;
    }
    for (label, text) in [("E0", "I0 m1"), ("E1", "I1 m1"), ("E2", "I2 n1"), ("E3", "I3 n1")] {
        world.shown(label, text).await;
    }
    world.idle().await;
}

#[tokio::test]
async fn an_item_change_reaches_the_label() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    world.item("I1", "new").await;
    world.shown("E1", "new m1").await;
    let status = world.status("E1").await.unwrap();
    assert_eq!(status.confirmed_hardware_address, "hw-E1");
    assert_eq!(status.evidence(), records::Evidence::Written);
    assert!(status.sent_digest.is_empty());
    worker.stop().await;
}

#[tokio::test]
async fn a_model_change_only_evicts_and_a_refresh_renders_only_its_labels() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    let others = [world.version(DtoType::EccEslImage, "E2").await, world.version(DtoType::EccEslImage, "E3").await];

    world.model("M", "m2").await;
    world.model("N", "n2").await;
    // A later change of the same lane has come through, so the models' notifications were handled before it.
    world.item("I3", "I3x").await;
    world.shown("E3", "I3x n2").await;
    assert!(world.shows("E0", "I0 m1") && world.shows("E1", "I1 m1"), "a model change renders nothing");

    let operation = world.refreshed("M", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:?}");
    assert!(operation.expansion_complete);
    for service in [ServiceName::EccImageRender, ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
        assert_eq!(counts(&operation, service), (2, 2, 0, 0), "{service}");
    }
    assert!(world.shows("E0", "I0 m2") && world.shows("E1", "I1 m2"));
    assert_eq!(world.version(DtoType::EccEslImage, "E2").await, others[0], "N's labels are left alone");
    assert!(world.shows("E2", "I2 n1"));
    worker.stop().await;
}

#[tokio::test]
async fn a_refresh_that_changes_nothing_is_unchanged_and_sends_nothing() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    let status = world.version(DtoType::StoreEslStatus, "E0").await;
    let operation = world.refreshed("M", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:?}");
    assert_eq!(counts(&operation, ServiceName::EccImageRender), (2, 2, 2, 0));
    assert_eq!(counts(&operation, ServiceName::EslImageMerger), (0, 0, 0, 0));
    assert_eq!(counts(&operation, ServiceName::HardwareExporter), (0, 0, 0, 0));
    assert_eq!(world.version(DtoType::StoreEslStatus, "E0").await, status);
    worker.stop().await;
}

#[tokio::test]
async fn a_touched_model_renders_nothing_and_a_touched_item_is_unchanged() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    let before = world.version(DtoType::EccEslImage, "E0").await;
    world.touch(DtoType::EccModel, "t/T/s/S/eccmodels/M").await;
    world.touch(DtoType::StoreItemValues, "t/T/s/S/items/I0").await;
    world.item("I3", "later").await;
    world.shown("E3", "later n1").await;
    assert_eq!(world.version(DtoType::EccEslImage, "E0").await, before);
    worker.stop().await;
}

#[tokio::test]
async fn without_its_link_a_label_is_unassigned_and_keeps_its_last_picture() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    world.delete(DtoType::EccLink, "t/T/s/S/ecclinks/E0").await;
    eventually("E0 is unassigned", async || {
        world.status("E0").await.is_some_and(|status| status.state() == records::DeliveryState::Unassigned)
    })
    .await;
    assert!(world.of_label::<records::SourceEslImage>(DtoType::EccEslImage, "E0").await.is_none());
    assert!(world.of_label::<records::EslImage>(DtoType::EslImage, "E0").await.is_none());
    assert!(world.shows("E0", "I0 m1"), "e-paper keeps what it shows");

    world.link("E0", "I0", "N").await;
    world.shown("E0", "I0 n1").await;
    worker.stop().await;
}

#[tokio::test]
async fn without_its_label_the_status_goes() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    world.delete(DtoType::StoreEsl, "t/T/s/S/esls/E0").await;
    eventually("E0 has no status", async || world.status("E0").await.is_none()).await;
    eventually("E0 has no picture", async || {
        world.of_label::<records::SourceEslImage>(DtoType::EccEslImage, "E0").await.is_none()
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn a_replaced_label_gets_its_picture_again() {
    let world = World::new();
    let worker = world.work().await;
    four_labels(&world).await;
    std::fs::remove_file(world.file("E0")).unwrap();
    let esl =
        records::StoreEsl { esltype_id: "X".into(), accesspoint_id: "A".into(), hardware_address: "hw-new".into() };
    world.put(DtoType::StoreEsl, "t/T/s/S/esls/E0", esl).await;
    world.shown("E0", "I0 m1").await;
    eventually("the new hardware has confirmed", async || {
        world.status("E0").await.is_some_and(|status| status.confirmed_hardware_address == "hw-new")
    })
    .await;
    worker.stop().await;
}
