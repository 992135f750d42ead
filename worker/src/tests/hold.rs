//! Batch upon batch under one lease, with a service that works only when it is told to.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use domain::{AliasName, DtoType, Outcome, ParentShape, ServiceName, SplitItem, Target};
use futures::{FutureExt as _, future::BoxFuture};
use prost::Message as _;
use proto::{
    cqs::v1::{ControlOperationRequest, Pause, Resume, control_operation_request::Action},
    hardware_exporter::v1::TriggerAccessPointReexportRequest,
    records::v1::StoreEsl,
};
use tokio::sync::Semaphore;

use super::world::{World, eventually};
use crate::runtime::{AliasQuery, CallError, Context, Expansion, Hand, Label, LabelRef, Route, Service, Verdict};

const GATEWAY: ServiceName = ServiceName::OperatorGateway;

/// What happened, in order.
#[derive(Default)]
struct Seen {
    /// Labels of the batches that were begun, each with the generation of its lease.
    begun: Vec<(String, i64)>,
    done: Vec<String>,
    given_back: Vec<String>,
    dropped: Vec<String>,
    in_hand: BTreeSet<String>,
    /// A label was in two batches at once.
    twice: bool,
}

/// A service whose batches, of one label each, wait to be let go, one by one; meanwhile each wants more.
#[derive(Clone, Default)]
struct Patient {
    seen: Arc<Mutex<Seen>>,
    gate: Arc<Gate>,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

/// A batch's label in hand; dropped with its batch.
struct InHand<'a>(&'a Patient, Option<String>);

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        if let Some(label) = self.1.take() {
            let mut seen = self.0.seen.lock().unwrap();
            seen.in_hand.remove(&label);
            seen.dropped.push(label);
        }
    }
}

impl Patient {
    fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap())
    }

    fn let_go(&self, batches: usize) {
        self.gate.0.add_permits(batches);
    }

    async fn begins(&self, labels: &[&str]) {
        eventually(&format!("{labels:?} are begun"), async || {
            self.look(|seen| seen.begun.iter().map(|(label, _)| label.as_str()).eq(labels.iter().copied()))
        })
        .await;
    }

    fn begin(&self, label: &str, generation: i64) -> InHand<'_> {
        let mut seen = self.seen.lock().unwrap();
        seen.begun.push((label.to_owned(), generation));
        seen.twice |= !seen.in_hand.insert(label.to_owned());
        InHand(self, Some(label.to_owned()))
    }

    async fn work(&self, context: Context<'_>, label: &Label) -> Outcome {
        let name = label.name.record(DtoType::StoreEsl).record_id().unwrap().to_string();
        let mut in_hand = self.begin(&name, context.lease.generation);
        context.hand.wants_more();
        let is_hurried = tokio::select! {
            permit = self.gate.0.acquire() => {
                permit.unwrap().forget();
                false
            }
            () = hurried(context.hand) => true,
        };
        in_hand.1 = None;
        let mut seen = self.seen.lock().unwrap();
        seen.in_hand.remove(&name);
        if is_hurried {
            seen.given_back.push(name);
            return Outcome::Defer { until: context.clock.now(), cause: "hurried".to_owned() };
        }
        seen.done.push(name);
        Outcome::Done
    }
}

async fn hurried(hand: &Hand) {
    while hand.hurried().is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

impl Service for Patient {
    fn name(&self) -> ServiceName {
        ServiceName::HardwareExporter
    }

    fn subscriptions(&self) -> &'static [DtoType] {
        &[DtoType::StoreEsl]
    }

    fn shapes(&self) -> &'static [ParentShape] {
        &[ParentShape { dto_type: DtoType::StoreEsl, alias: Some(AliasName::ByAccessPoint) }]
    }

    fn exclusive_by_store(&self) -> bool {
        true
    }

    fn batch_max(&self, _: i32) -> i32 {
        1
    }

    fn route(&self, item: &SplitItem) -> Route {
        match (&item.target, item.alias) {
            (Target::Record(urn), _) => Route::Label(LabelRef::of(urn).unwrap()),
            (Target::Parent(parent), Some(alias)) => {
                let query = AliasQuery { dto_type: item.dto_type, alias, parent: parent.clone() };
                Route::Split(Expansion::Records(query))
            }
            (Target::Parent(_), None) => Route::Unknown,
        }
    }

    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        async move {
            let mut verdicts = Vec::new();
            for label in labels {
                verdicts.push(Verdict::Settled(self.work(context, label).await));
            }
            Ok(verdicts)
        }
        .boxed()
    }
}

/// Writes these labels at once.
async fn write(world: &World, labels: &[&str]) {
    let esl = |label: &&str| {
        let esl =
            StoreEsl { esltype_id: "X".into(), accesspoint_id: "A".into(), hardware_address: format!("hw-{label}") };
        (DtoType::StoreEsl, format!("t/T/s/S/esls/{label}"), esl.encode_to_vec())
    };
    world.put_many(labels.iter().map(esl).collect()).await;
}

async fn control(world: &World, action: Action) {
    let request = ControlOperationRequest {
        tenant_id: "T".into(),
        tracking_id: "op-1".into(),
        operator_subject: "ops@example".into(),
        reason: "INC-1: test".into(),
        action: Some(action),
    };
    world.cqs(GATEWAY).control_operation(request).await.unwrap();
}

#[tokio::test]
async fn the_next_batch_of_a_store_is_in_hand_under_the_same_lease_before_the_last_is_over() {
    let (world, service) = (World::new(), Patient::default());
    let running = world.work_with(vec![Arc::new(service.clone())]).await;
    write(&world, &["E1", "E2", "E3", "E4"]).await;
    service.begins(&["E1", "E2"]).await;
    assert!(service.look(|seen| seen.done.is_empty()), "two in hand at once");
    service.let_go(1);
    service.begins(&["E1", "E2", "E3"]).await;
    service.let_go(1);
    service.begins(&["E1", "E2", "E3", "E4"]).await;
    service.let_go(2);
    world.idle().await;
    service.look(|seen| {
        // Of two that are let go together either may be first.
        assert_eq!(seen.done[..2], ["E1", "E2"]);
        assert_eq!(seen.done.iter().collect::<BTreeSet<_>>().len(), 4, "{:?}", seen.done);
        let generations: BTreeSet<i64> = seen.begun.iter().map(|(_, generation)| *generation).collect();
        assert_eq!(generations.len(), 1, "{:?}", seen.begun);
    });
    running.stop().await;
}

/// Others wait for a loop of the worker, too.
#[tokio::test]
async fn a_lease_ends_after_its_tenth_batch_however_much_waits() {
    let (world, service) = (World::new(), Patient::default());
    let running = world.work_with(vec![Arc::new(service.clone())]).await;
    let labels: Vec<String> = (10..33).map(|number| format!("E{number}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    write(&world, &labels).await;
    for done in 0..labels.len() {
        // One is worked off, the next is in hand, unless the lease ends before that.
        let begun = (done + 2).min((done / 10 + 1) * 10).min(labels.len());
        service.begins(&labels[..begun]).await;
        service.let_go(1);
    }
    world.idle().await;
    service.look(|seen| {
        assert_eq!(seen.done.iter().collect::<BTreeSet<_>>().len(), labels.len(), "{:?}", seen.done);
        let lengths: Vec<usize> = seen.begun.chunk_by(|one, other| one.1 == other.1).map(<[_]>::len).collect();
        assert_eq!(lengths, [10, 10, 3], "{:?}", seen.begun);
    });
    running.stop().await;
}

#[tokio::test]
async fn what_was_made_ready_ahead_is_given_back_when_its_operation_is_paused() {
    let (world, service) = (World::new(), Patient::default());
    world.store().await;
    write(&world, &["E1", "E2", "E3", "E4"]).await;
    let running = world.work_with(vec![Arc::new(service.clone())]).await;
    let request = TriggerAccessPointReexportRequest {
        tenant_id: "T".into(),
        store_id: "S".into(),
        access_point_id: "A".into(),
        reason: "INC-1: test".into(),
        tracking_id: "op-1".into(),
        operator_subject: "ops@example".into(),
        ..TriggerAccessPointReexportRequest::default()
    };
    world.exporter_triggers(GATEWAY).trigger_access_point_reexport(request).await.unwrap();
    service.begins(&["E1", "E2"]).await;
    control(&world, Action::Pause(Pause::default())).await;
    service.let_go(1);
    eventually("the second batch is given back", async || service.look(|seen| seen.given_back == ["E2"])).await;
    eventually("nothing is in hand", async || !world.in_hand().await).await;
    service.look(|seen| {
        assert_eq!((seen.done.as_slice(), seen.begun.len()), (["E1".to_owned()].as_slice(), 2));
    });
    service.let_go(10);
    control(&world, Action::Resume(Resume::default())).await;
    world.finished("op-1").await;
    assert!(service.look(|seen| seen.done.len() == 4));
    running.stop().await;
}

#[tokio::test]
async fn with_its_lease_every_batch_is_dropped() {
    let (world, service) = (World::new(), Patient::default());
    let running = world.work_with(vec![Arc::new(service.clone())]).await;
    write(&world, &["E1", "E2"]).await;
    service.begins(&["E1", "E2"]).await;
    // Its store is lost, and nobody says so before it reports.
    world.clock.advance_ms(i64::from(world.lease_ms) + 1);
    service.let_go(1);
    eventually("the other batch is dropped", async || service.look(|seen| seen.dropped == ["E2"])).await;
    service.let_go(10);
    world.idle().await;
    service.look(|seen| {
        let lost = seen.begun[0].1;
        assert_eq!(seen.begun.iter().filter(|(_, generation)| *generation == lost).count(), 2);
        assert_eq!(seen.done.iter().filter(|label| *label == "E2").count(), 1, "{:?}", seen.done);
    });
    running.stop().await;
}

#[tokio::test]
async fn a_label_is_in_one_batch_only() {
    let (world, service) = (World::new(), Patient::default());
    let running = world.work_with(vec![Arc::new(service.clone())]).await;
    write(&world, &["E1", "E2"]).await;
    service.begins(&["E1", "E2"]).await;
    // It changes while it is in hand, and is what would be made ready next.
    world.touch(DtoType::StoreEsl, "t/T/s/S/esls/E2").await;
    service.let_go(1);
    service.begins(&["E1", "E2", "E2"]).await;
    service.look(|seen| assert_eq!((seen.twice, seen.given_back.as_slice()), (false, ["E2".to_owned()].as_slice())));
    service.let_go(10);
    world.idle().await;
    running.stop().await;
}
