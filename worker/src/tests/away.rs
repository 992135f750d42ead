//! A platform that fails calls, loses answers, or answers nonsense for one record.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as Poller, Poll},
    time::Duration,
};

use domain::{DtoType, ParentShape, ServiceName, SplitItem};
use futures::{FutureExt as _, future::BoxFuture};
use proto::{
    Transport, TransportError,
    cqs::v1::OperationState,
    dtoflow::v1::{PutItem, PutManyRequest},
    records::v1 as records,
};
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;

use super::world::{World, counts, eventually};
use crate::{
    runtime::{CallError, Context, Label, Route, Service, Verdict},
    services::esl_image_merger::EslImageMerger,
};

/// A transport on which every seventh call fails before it is sent and every ninth answer is lost.
#[derive(Clone)]
struct Lossy {
    inner: Transport,
    calls: Arc<AtomicU64>,
}

impl tower::Service<http::Request<Body>> for Lossy {
    type Response = http::Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Poller<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        // An answer to a dequeue that is lost takes its lease along: that is the clock's matter, not this test's.
        let dequeues = request.uri().path().ends_with("/Dequeue");
        let answer = self.inner.call(request);
        async move {
            if call % 7 == 6 {
                return Err("not sent".into());
            }
            let answer = answer.await?;
            if call % 9 == 8 && !dequeues { Err("the answer is lost".into()) } else { Ok(answer) }
        }
        .boxed()
    }
}

#[tokio::test]
async fn failed_calls_and_lost_answers_leave_exact_counts_and_right_pictures() {
    let mut world = World::new();
    // Deferred items come due while the test waits; leases outlast it.
    world.lease_ms = domain::limits::LEASE_MS_MAX;
    let clock = Arc::clone(&world.clock);
    let _ticking = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            clock.advance_ms(100);
        }
    }));
    world.worker_transport = Transport::over(Lossy { inner: world.worker_transport.clone(), calls: Arc::default() });
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    for label in 0..20 {
        let (label, item) = (format!("E{label}"), format!("I{label}"));
        world.item(&item, &item).await;
        world.esl(&label).await;
        world.link(&label, &item, "M").await;
    }
    for label in 0..20 {
        world.shown(&format!("E{label}"), &format!("I{label} m1")).await;
    }
    world.model("M", "m2").await;
    let operation = world.refreshed("M", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:?}");
    let (enqueued, done, _, failed) = counts(&operation, ServiceName::EccImageRender);
    assert_eq!((enqueued, done, failed), (20, 20, 0));
    // A label that an ordinary change was still to render may have met the new model there: then the operation finds it
    // unchanged, and what follows is not the operation's.
    for service in [ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
        let (enqueued, done, _, failed) = counts(&operation, service);
        assert_eq!((enqueued, failed), (done, 0), "{service}");
    }
    eventually("every label shows the new model", async || {
        (0..20).all(|label| world.shows(&format!("E{label}"), &format!("I{label} m2")))
    })
    .await;
    worker.stop().await;
}

/// The merger, which wants to write for one label what is no record.
struct Spoiled(EslImageMerger);

impl Service for Spoiled {
    fn name(&self) -> ServiceName {
        self.0.name()
    }
    fn subscriptions(&self) -> &'static [DtoType] {
        self.0.subscriptions()
    }
    fn shapes(&self) -> &'static [ParentShape] {
        self.0.shapes()
    }
    fn route(&self, item: &SplitItem) -> Route {
        self.0.route(item)
    }
    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        async move {
            let verdicts = self.0.compute(context, labels).await?;
            let spoil = |(label, verdict): (&Label, Verdict)| match label.name.id.as_str() {
                "E1" => Verdict::put(label, DtoType::EslImage, &records::EslImage::default(), Vec::new()),
                "E2" => panic!("a panic on purpose"),
                _ => verdict,
            };
            Ok(labels.iter().zip(verdicts).map(spoil).collect())
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_label_that_spoils_its_batch_fails_alone() {
    let world = World::new();
    world.store().await;
    world.model("M", "m1").await;
    let worker = world
        .work_with(vec![
            world.service(ServiceName::EccImageRender),
            Arc::new(Spoiled(EslImageMerger)),
            world.service(ServiceName::HardwareExporter),
        ])
        .await;
    for label in 0..4 {
        let label = format!("E{label}");
        world.item(&label, &label).await;
        world.esl(&label).await;
        world.link(&label, &label, "M").await;
    }
    world.shown("E0", "E0 m1").await;
    world.shown("E3", "E3 m1").await;
    world.idle().await;
    world.model("M", "m2").await;
    let operation = world.refreshed("M", "CHG-1").await;
    assert_eq!(counts(&operation, ServiceName::EslImageMerger), (4, 2, 0, 2), "{operation:?}");
    let mut causes: Vec<&str> = operation.failures.iter().map(|failure| failure.cause.as_str()).collect();
    causes.sort_unstable();
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(causes.iter().any(|cause| cause.contains("panicked")), "{causes:?}");
    assert!(world.shows("E0", "E0 m2") && world.shows("E3", "E3 m2"));
    worker.stop().await;
}

/// More links than two pages of a split hold; none has a label, so each is handled without a picture.
const MANY: usize = 9_000;

#[tokio::test]
async fn a_large_parent_is_split_page_by_page_and_counted_exactly() {
    let world = World::new();
    world.model("M", "m1").await;
    let mut import = world.dtoflow(ServiceName::RecordImport);
    let links: Vec<PutItem> = (0..MANY)
        .map(|label| {
            let record = records::EccLink { item_id: "I".into(), model_id: "M".into(), ..Default::default() };
            PutItem {
                dto_type: DtoType::EccLink.to_string(),
                dto_id: format!("t/T/s/S/ecclinks/E{label:05}"),
                payload: prost::Message::encode_to_vec(&record).into(),
                ..PutItem::default()
            }
        })
        .collect();
    for page in links.chunks(3_000) {
        import.put_many(PutManyRequest { items: page.to_vec(), lease: None }).await.unwrap();
    }
    let worker = world.work_with(vec![world.service(ServiceName::EccImageRender)]).await;
    let operation = world.refreshed("M", "CHG-1").await;
    let many = i64::try_from(MANY).unwrap();
    assert_eq!(counts(&operation, ServiceName::EccImageRender), (many, many, many, 0), "{operation:?}");
    assert_eq!((operation.queues[0].parents_enqueued, operation.queues[0].parents_done), (1, 1));
    assert!(operation.expansion_complete);
    worker.stop().await;
}
