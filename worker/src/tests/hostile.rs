//! What goes wrong, and what it must not harm.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use domain::{DtoType, ParentShape, ServiceName, SplitItem};
use futures::{FutureExt as _, future::BoxFuture};
use proto::cqs::v1::OperationState;
use tokio::sync::Notify;

use super::world::{LEASE_MS, World, counts, eventually};
use crate::{
    runtime::{CallError, Context, Label, Route, Service, Verdict},
    services::ecc_image_render::EccImageRender,
};

/// The ECC renderer, which lets something happen between its first computing and the writing of it.
struct Interrupted<F> {
    inner: EccImageRender,
    armed: AtomicBool,
    meanwhile: F,
}

impl<F> Interrupted<F> {
    fn by(meanwhile: F) -> Arc<Self> {
        Arc::new(Self { inner: EccImageRender::new(render::render), armed: AtomicBool::new(true), meanwhile })
    }
}

impl<F> Service for Interrupted<F>
where
    F: Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    fn name(&self) -> ServiceName {
        self.inner.name()
    }
    fn subscriptions(&self) -> &'static [DtoType] {
        self.inner.subscriptions()
    }
    fn shapes(&self) -> &'static [ParentShape] {
        self.inner.shapes()
    }
    fn route(&self, item: &SplitItem) -> Route {
        self.inner.route(item)
    }
    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        async move {
            let verdicts = Service::compute(&self.inner, context, labels).await;
            if self.armed.swap(false, Ordering::SeqCst) {
                (self.meanwhile)().await;
            }
            verdicts
        }
        .boxed()
    }
}

async fn one_label(world: &World) {
    world.store().await;
    world.model("M", "m1").await;
    world.item("I", "item").await;
    world.esl("E").await;
    world.link("E", "I", "M").await;
}

#[tokio::test]
async fn an_input_that_changes_while_it_is_rendered_is_shown() {
    let world = Arc::new(World::new());
    let meddler = Arc::clone(&world);
    let renderer = Interrupted::by(move || {
        let world = Arc::clone(&meddler);
        async move { world.model("M", "m2").await }.boxed()
    });
    let worker = world
        .work_with(vec![
            renderer,
            world.service(ServiceName::EslImageMerger),
            world.service(ServiceName::HardwareExporter),
        ])
        .await;
    one_label(&world).await;
    // Nothing renders a changed model by itself, so only handling the label again at once can show it.
    world.shown("E", "item m2").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_writes_nothing() {
    let world = Arc::new(World::new());
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, wait) = (Arc::clone(&entered), Arc::clone(&release));
    let zombie = Interrupted::by(move || {
        let (entered, release) = (Arc::clone(&enter), Arc::clone(&wait));
        async move {
            entered.notify_one();
            release.notified().await;
        }
        .boxed()
    });
    let late = world.work_with(vec![zombie]).await;
    one_label(&world).await;
    entered.notified().await;

    // It sleeps beyond its lease; another worker takes the label and renders a newer item.
    world.item("I", "newer").await;
    world.clock.advance_ms(i64::from(LEASE_MS) + 1);
    let worker = world.work().await;
    world.shown("E", "newer m1").await;
    let newest = world.version(DtoType::EccEslImage, "E").await;
    release.notify_one();
    late.stop().await;
    assert_eq!(world.version(DtoType::EccEslImage, "E").await, newest);
    assert!(world.shows("E", "newer m1"));
    worker.stop().await;
}

#[tokio::test]
async fn a_panic_while_rendering_fails_its_label_only() {
    let world = World::new();
    let renderer = EccImageRender::new(|model, input| {
        assert_ne!(input.item.get("name").map(String::as_str), Some("boom"), "a panic on purpose");
        render::render(model, input)
    });
    let worker = world
        .work_with(vec![
            Arc::new(renderer),
            world.service(ServiceName::EslImageMerger),
            world.service(ServiceName::HardwareExporter),
        ])
        .await;
    one_label(&world).await;
    world.shown("E", "item m1").await;
    world.item("J", "boom").await;
    world.esl("F").await;
    world.link("F", "J", "M").await;
    world.idle().await;
    world.model("M", "m2").await;
    let operation = world.refreshed("M", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::FinishedWithFailures);
    assert_eq!(counts(&operation, ServiceName::EccImageRender), (2, 1, 0, 1));
    assert_eq!(operation.failures.len(), 1, "{:?}", operation.failures);
    assert!(operation.failures[0].cause.ends_with("renderer panicked"), "{:?}", operation.failures);
    assert!(world.shows("E", "item m2"));
    assert!(!world.file("F").exists());
    worker.stop().await;
}

#[tokio::test]
async fn an_unparsable_model_fails_its_labels_and_keeps_their_pictures() {
    let world = World::new();
    let worker = world.work().await;
    one_label(&world).await;
    world.model("N", "n1").await;
    world.esl("F").await;
    world.link("F", "I", "N").await;
    world.shown("E", "item m1").await;
    world.shown("F", "item n1").await;

    world.idle().await;
    world.put_layout("M", "{ this is no layout".to_owned()).await;
    world.model("N", "n2").await;
    let broken = world.refreshed("M", "CHG-1").await;
    assert_eq!(broken.state(), OperationState::FinishedWithFailures);
    let cause = &broken.failures[0].cause;
    assert!(cause.contains("t/T/s/S/eccmodels/M") && cause.contains("layout"), "{cause}");
    assert!(world.shows("E", "item m1"), "the old picture stays");
    assert_eq!(world.refreshed("N", "CHG-2").await.state(), OperationState::Succeeded);
    assert!(world.shows("F", "item n2"));
    worker.stop().await;
}

/// A folder that takes nothing is as an access point that is away.
#[tokio::test]
async fn labels_wait_for_a_folder_that_cannot_be_written_and_no_attempt_counts() {
    let world = World::new();
    let blocked = world.dir.path().join("T");
    std::fs::write(&blocked, "a file where the tenant's folder should be").unwrap();
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.item("I", "item").await;
    world.esl("E").await;
    world.link("E", "I", "M").await;
    eventually("the status says why", async || {
        world.status("E").await.is_some_and(|status| status.last_error.contains("does not answer since"))
    })
    .await;
    for _ in 0..5 {
        world.clock.advance_ms(300_000);
        eventually("it is looked at again", async || {
            !world.in_hand().await && world.waits(ServiceName::HardwareExporter).await
        })
        .await;
    }
    assert_eq!(world.status("E").await.unwrap().attempts, 0);
    std::fs::remove_file(&blocked).unwrap();
    eventually("the picture is there", async || {
        world.clock.advance_ms(300_000);
        world.shows("E", "item m1")
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn an_unknown_driver_fails_the_label_and_its_status_says_so() {
    let world = World::new();
    let worker = world.work().await;
    world.store().await;
    let strange = proto::records::v1::AccessPoint { driver: "pigeon".into(), address: String::new() };
    world.put(DtoType::AccessPoint, "t/T/s/S/accesspoints/A", strange).await;
    world.model("M", "m1").await;
    world.item("I", "item").await;
    world.esl("E").await;
    world.link("E", "I", "M").await;
    eventually("the status names the driver", async || {
        world.status("E").await.is_some_and(|status| {
            status.state() == proto::records::v1::DeliveryState::Failed && status.last_error.contains("pigeon")
        })
    })
    .await;
    worker.stop().await;
}
