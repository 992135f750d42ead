//! Exporters that die or wake up late: what labels show never goes backwards and is never taken for something else.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use domain::ServiceName;
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1::DeliveryState;
use tokio::sync::Notify;

use super::world::{LEASE_MS, Running, World, eventually};
use crate::services::hardware_exporter::{
    HardwareExporter,
    drivers::{Delivered, Driver, Manner, Shipment, folder::FolderDriver},
};

/// When the first shipment gets stuck.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stuck {
    BeforeWriting,
    AfterWriting,
}

/// The folder driver, whose first shipment waits to be released.
struct StuckDriver {
    inner: FolderDriver,
    stuck: Stuck,
    armed: AtomicBool,
    entered: Arc<Notify>,
    release: Arc<Notify>,
}

impl StuckDriver {
    async fn wait(&self, here: Stuck) {
        if self.stuck == here && self.armed.swap(false, Ordering::SeqCst) {
            self.entered.notify_one();
            self.release.notified().await;
        }
    }
}

impl Driver for StuckDriver {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn manner(&self) -> Manner {
        self.inner.manner()
    }
    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            self.wait(Stuck::BeforeWriting).await;
            let delivered = self.inner.send(shipment).await;
            self.wait(Stuck::AfterWriting).await;
            delivered
        }
        .boxed()
    }
}

/// A label that shows `item m1`, then a worker whose exporter gets stuck with `newer m1`.
async fn stuck(world: &World, stuck: Stuck) -> (Running, Arc<Notify>) {
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.item("I", "item").await;
    world.esl("E").await;
    world.link("E", "I", "M").await;
    world.shown("E", "item m1").await;
    world.idle().await;
    worker.stop().await;

    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let driver = StuckDriver {
        inner: FolderDriver::new(&world.exporter()),
        stuck,
        armed: AtomicBool::new(true),
        entered: Arc::clone(&entered),
        release: Arc::clone(&release),
    };
    let running = world
        .work_with(vec![
            world.service(ServiceName::EccImageRender),
            world.service(ServiceName::EslImageMerger),
            Arc::new(HardwareExporter::with_drivers(vec![Arc::new(driver)])),
        ])
        .await;
    world.item("I", "newer").await;
    entered.notified().await;
    (running, release)
}

#[tokio::test]
async fn a_return_to_the_confirmed_picture_is_sent_when_the_exporter_died_after_writing_another() {
    let world = World::new();
    let (dying, _release) = stuck(&world, Stuck::AfterWriting).await;
    assert!(world.shows("E", "newer m1"), "written, not reported");
    let status = world.status("E").await.unwrap();
    assert_eq!(status.state(), DeliveryState::Sent);
    dying.kill().await;

    world.item("I", "item").await;
    world.clock.advance_ms(i64::from(LEASE_MS) + 1);
    let worker = world.work().await;
    world.shown("E", "item m1").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_late_exporter_does_not_overwrite_a_newer_picture() {
    let world = World::new();
    let (late, release) = stuck(&world, Stuck::BeforeWriting).await;
    world.item("I", "newest").await;
    world.clock.advance_ms(i64::from(LEASE_MS) + 1);
    let worker = world.work().await;
    world.shown("E", "newest m1").await;

    release.notify_one();
    late.stop().await;
    assert!(world.shows("E", "newest m1"));
    eventually("the status is confirmed", async || {
        world.status("E").await.is_some_and(|status| status.state() == DeliveryState::Confirmed)
    })
    .await;
    worker.stop().await;
}
