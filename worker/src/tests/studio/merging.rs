//! Which picture a label shows, as designs and links come, go and break.

use domain::DtoType;
use proto::{cqs::v1::OperationState, records::v1 as records};

use super::{STUDIO, three_stores};
use crate::tests::world::{World, counts, eventually};

#[tokio::test]
async fn studio_wins_and_ecc_returns_when_it_goes() {
    let world = World::new();
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.design("D", "d1").await;
    world.item("I", "item").await;
    world.item("J", "other").await;
    world.esl("E").await;
    world.link("E", "I", "M").await;
    world.shown("E", "item m1").await;

    world.studio_link("E", "J", "D").await;
    world.shows_design("S", "E", ("other", "d1")).await;
    let image: records::EslImage = world.of_label(DtoType::EslImage, "E").await.unwrap();
    assert_eq!(image.source(), records::ImageSource::Studio);

    // What changes below goes no further than the merger.
    let status = world.version(DtoType::StoreEslStatus, "E").await;
    world.item("I", "item2").await;
    world.idle().await;
    assert_eq!(world.version(DtoType::StoreEslStatus, "E").await, status);
    world.shows_design("S", "E", ("other", "d1")).await;

    world.delete(DtoType::StudioLink, "t/T/s/S/studiolinks/E").await;
    world.shown("E", "item2 m1").await;
    assert!(world.of_label::<records::SourceEslImage>(DtoType::StudioEslImage, "E").await.is_none());
    let image: records::EslImage = world.of_label(DtoType::EslImage, "E").await.unwrap();
    assert_eq!(image.source(), records::ImageSource::Ecc);

    world.delete(DtoType::EccLink, "t/T/s/S/ecclinks/E").await;
    eventually("E is unassigned", async || {
        world.status("E").await.is_some_and(|status| status.state() == records::DeliveryState::Unassigned)
    })
    .await;
    assert!(world.of_label::<records::EslImage>(DtoType::EslImage, "E").await.is_none());
    assert!(world.shows("E", "item2 m1"), "e-paper keeps what it shows");
    worker.stop().await;
}

#[tokio::test]
async fn without_its_design_a_label_shows_its_model_again() {
    let world = World::new();
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.design("D", "d1").await;
    world.item("I", "item").await;
    world.esl("E").await;
    world.esl("F").await;
    world.link("E", "I", "M").await;
    world.studio_link("E", "I", "D").await;
    world.studio_link("F", "I", "D").await;
    world.shows_design("S", "E", ("item", "d1")).await;
    world.shows_design("S", "F", ("item", "d1")).await;
    // A delete fans out like a write.
    world.delete(DtoType::Design, "t/T/designs/D").await;
    world.shown("E", "item m1").await;
    eventually("F is unassigned", async || {
        world.status("F").await.is_some_and(|status| status.state() == records::DeliveryState::Unassigned)
    })
    .await;
    world.design("D", "d2").await;
    world.shows_design("S", "E", ("item", "d2")).await;
    world.shows_design("S", "F", ("item", "d2")).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_design_that_cannot_be_read_fails_its_labels_and_keeps_their_pictures() {
    let world = World::new();
    let worker = world.work().await;
    three_stores(&world).await;
    let hostile = records::Design { svg: "<svg".into(), mappings: "{}".into(), name: String::new() };
    world.put(DtoType::Design, "t/T/designs/D", hostile).await;
    world.idle().await;
    let operation = world.design_refreshed("D", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::FinishedWithFailures);
    assert_eq!(counts(&operation, STUDIO), (9, 0, 0, 9));
    assert!(operation.failures[0].cause.starts_with("design t/T/designs/D: "), "{:?}", operation.failures);
    world.shows_design("R", "D0", ("D0", "v1")).await;
    assert_eq!(world.design_refreshed("E", "CHG-2").await.state(), OperationState::Succeeded, "neighbours go on");
    worker.stop().await;
}
