//! A design's write and its trigger fan out alike.

use domain::{DtoType, Outcome, ServiceName, SplitItem, Target};
use picture::Picture;
use prost::Message as _;
use proto::cqs::v1::{DtoChangeNotification, OperationState};

use super::{STORES, STUDIO, three_stores};
use crate::{
    runtime::{Ask, Context, Leased, Platform, Route, Service, Splitter},
    tests::world::{LEASE_MS, World, counts},
};

#[tokio::test]
async fn a_written_design_and_its_trigger_give_the_same_notifications_and_the_same_bytes() {
    let world = World::new();
    let (worker, noted) = world.work_noting().await;
    let labels = three_stores(&world).await;
    noted.taken();
    let written_before = world.version(DtoType::StudioEslImage, "E0").await;

    world.design("D", "v2").await;
    for (store, label) in &labels {
        world.shows_design(store, label, (label, "v2")).await;
    }
    world.idle().await;
    let written = noted.taken();
    let written_bytes = world.studio_pictures(&labels).await;

    let operation = world.design_refreshed("D", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:?}");
    assert_eq!(counts(&operation, STUDIO), (9, 9, 9, 0), "the write has rendered them already");
    let triggered = noted.taken();
    let write =
        SplitItem { dto_type: DtoType::Design, target: Target::Record("t/T/designs/D".parse().unwrap()), alias: None };
    assert_eq!(written.iter().filter(|note| **note == write).count(), 1);
    let fanned: Vec<SplitItem> = written.into_iter().filter(|note| *note != write).collect();
    assert_eq!(fanned, triggered, "from the parent on, nothing differs");
    assert_eq!(triggered.iter().filter(|note| note.target.is_parent()).count(), 1 + STORES.len());
    assert_eq!(triggered.len(), 1 + STORES.len() + labels.len());
    assert_eq!(world.version(DtoType::StudioEslImage, "E0").await, written_before, "E's label is left alone");
    worker.stop().await;

    // The same records, rendered wrong before: only the trigger makes them right, and the bytes are the write's.
    let mut other = World::new();
    other.engine.studio = |_, _| Ok(Picture::new(96, 32, picture::Palette::Bw, vec![1; 96 * 32]).unwrap());
    let wrong = other.work().await;
    other.store().await;
    other.design("D", "v2").await;
    for (store, count) in STORES {
        other.studio_labels(store, "D", count).await;
    }
    other.idle().await;
    wrong.stop().await;
    other.engine.studio = render::studio_render;
    let right = other.work().await;
    assert_ne!(other.studio_pictures(&labels).await, written_bytes);
    let operation = other.design_refreshed("D", "CHG-1").await;
    assert_eq!(counts(&operation, STUDIO), (9, 9, 0, 0));
    assert_eq!(counts(&operation, ServiceName::HardwareExporter), (9, 9, 0, 0));
    assert_eq!(other.studio_pictures(&labels).await, written_bytes);
    right.stop().await;
}

impl World {
    /// What the queue gives out next, with its lease.
    async fn leased(&self, platform: &Platform) -> Leased {
        let ask = Ask { max_items: 10, wait_ms: 5_000, lease_ms: LEASE_MS, worker_id: "test" };
        platform.dequeue(&ask).await.unwrap().unwrap()
    }
}

/// Splits the one notification of a batch as the runtime does.
async fn split(platform: &Platform, service: &dyn Service, leased: &Leased) {
    let [wire] = leased.notifications.as_slice() else { panic!("{leased:?}") };
    let notification = proto::notification_from_wire(wire.clone()).unwrap();
    let (Route::Split(expansion) | Route::ForgetAndSplit(_, expansion)) = service.route(&notification.item) else {
        panic!("{notification:?} is not split")
    };
    let ids = domain::SeededIds::new(3);
    let clock: std::sync::Arc<dyn domain::Clock> =
        std::sync::Arc::new(domain::ManualClock::at(domain::Timestamp::default()));
    let context = Context { platform, lease: &leased.lease, clock: &clock, hand: &std::sync::Arc::default() };
    let splitter = Splitter { service, context, ids: &ids };
    splitter.split_many(&[(notification, expansion)]).await.unwrap();
}

#[tokio::test]
async fn a_written_designs_parents_equal_injected_ones_on_the_wire_and_are_due_four_hours_later() {
    const SLA_MS: i64 = 4 * 3_600_000;
    let world = World::new();
    let service = world.service(STUDIO);
    let platform = Platform::new(world.transport(STUDIO), STUDIO.queue().unwrap());
    platform.configure(service.as_ref()).await.unwrap();
    world.studio_labels("S", "D", 1).await;
    let due = |wire: &DtoChangeNotification| {
        proto::timestamp_from_wire("sla", wire.sla_timestamp.as_ref().unwrap()).unwrap().as_ms()
    };
    // What the label's own records announced is not of this test.
    let others = world.leased(&platform).await;
    let done: Vec<(i64, Outcome)> = others.notifications.iter().map(|other| (other.id, Outcome::Done)).collect();
    platform.complete(&others.lease, &done).await.unwrap();

    world.design("D", "v1").await;
    let write = world.leased(&platform).await;
    split(&platform, service.as_ref(), &write).await;
    let mut fanned = Vec::new();
    for _ in 0..2 {
        let parent = world.leased(&platform).await;
        split(&platform, service.as_ref(), &parent).await;
        fanned.extend(parent.notifications);
    }
    let label = world.leased(&platform).await;
    platform.complete(&label.lease, &[(label.notifications[0].id, Outcome::Done)]).await.unwrap();
    fanned.extend(label.notifications);
    let written = due(&write.notifications[0]);
    assert_eq!(fanned.iter().map(|wire| due(wire) - written).collect::<Vec<_>>(), [SLA_MS; 3]);

    let request = World::design_refresh("D", "CHG-1");
    let mut triggers = world.studio_triggers(ServiceName::OperatorGateway);
    triggers.trigger_design_refresh(request).await.unwrap();
    let mut injected = Vec::new();
    for _ in 0..2 {
        let parent = world.leased(&platform).await;
        split(&platform, service.as_ref(), &parent).await;
        injected.extend(parent.notifications);
    }
    injected.extend(world.leased(&platform).await.notifications);
    // Where they lie, when they are due and who caused them is their origin's; everything else is the same bytes.
    let bare = |wire: &DtoChangeNotification| {
        let mut wire = DtoChangeNotification { id: 0, sla_timestamp: None, ..wire.clone() };
        wire.tracking_id.clear();
        wire.lane = 0;
        wire.encode_to_vec()
    };
    assert_eq!(fanned.iter().map(bare).collect::<Vec<_>>(), injected.iter().map(bare).collect::<Vec<_>>());
    assert_eq!(injected[0].tracking_id, "CHG-1");
}
