//! What an operation is told of its deliveries: handed over, by which evidence confirmed, given up before or after.

use domain::{Clock as _, ServiceName};
use proto::{
    cqs::v1::{EvidenceCounts, Operation, OperationState, QueueCounts},
    records::v1::{DeliveryState, Evidence},
};

use super::{EXPORTER, Shop, steps};
use crate::tests::{
    radio::Station,
    world::{World, counts, digest, eventually},
};

#[tokio::test]
async fn an_operation_is_finished_only_when_its_labels_are_confirmed_and_each_step_is_kept() {
    let shop = Shop::new(&["R"]).await;
    let worker = shop.work().await;
    shop.label("E", "R", "apples").await;
    shop.arrives("E", "R", "apples").await;
    shop.world.idle().await;
    shop.world.model("M", "m2").await;
    let wanted = digest("apples m2");

    let request = World::refresh("M", "CHG-1");
    shop.world.triggers(ServiceName::OperatorGateway).trigger_model_refresh(request).await.unwrap();
    eventually("the picture waits at the access point", async || shop.sent("R", "E").last() == Some(&wanted)).await;
    shop.reaches("E", DeliveryState::Accepted).await;
    for _ in 0..5 {
        shop.world.clock.advance_ms(60_000);
        eventually("it is looked after", async || shop.radio.station("at-R", |station| station.looks() > 0)).await;
    }
    shop.reaches("E", DeliveryState::Queued).await;
    let running = shop.world.operation("CHG-1").await.unwrap();
    assert_eq!((running.state(), counts(&running, EXPORTER)), (OperationState::Running, (1, 0, 0, 0)));
    assert_eq!(handed_over(&running), 1, "its access point has it");

    shop.radio.station("at-R", Station::check_in);
    eventually("the operation is finished", async || {
        shop.world.clock.advance_ms(10_000);
        shop.world.operation("CHG-1").await.unwrap().state() == OperationState::Succeeded
    })
    .await;
    let by = EvidenceCounts { transferred: 1, ..EvidenceCounts::default() };
    assert_eq!(exported(&shop.world.operation("CHG-1").await.unwrap()).confirmed_by, Some(by));
    let status = shop.status("E").await;
    assert_eq!((status.state(), status.evidence()), (DeliveryState::Confirmed, Evidence::Transferred));
    assert_eq!(status.confirmed_digest, wanted.as_bytes().as_slice());
    let tail = [DeliveryState::Sent, DeliveryState::Accepted, DeliveryState::Queued, DeliveryState::Confirmed];
    assert!(steps(&status).ends_with(&tail), "{:?}", steps(&status));
    assert!(status.transitions.iter().all(|step| step.at.is_some() && !step.cause.is_empty()), "{status:?}");
    assert_eq!(shop.sent("R", "E").len(), 2, "one upload a picture");
    worker.stop().await;
}

/// Labels of an operation that their access points took and nobody saw arrive yet.
fn handed_over(operation: &Operation) -> i64 {
    operation.queues.iter().map(|queue| queue.handed_over).sum()
}

#[tokio::test]
async fn a_label_is_handed_over_as_long_as_its_access_point_has_its_picture_as_far_as_is_known() {
    let shop = Shop::new(&["R"]).await;
    let worker = shop.work().await;
    shop.label("E", "R", "apples").await;
    shop.arrives("E", "R", "apples").await;
    shop.world.idle().await;
    shop.world.model("M", "m2").await;
    shop.radio.station("at-R", |station| station.refuses = true);
    let request = World::refresh("M", "CHG-1");
    shop.world.triggers(ServiceName::OperatorGateway).trigger_model_refresh(request).await.unwrap();
    let becomes = async |what: &str, wanted: i64, state: Option<DeliveryState>| {
        eventually(what, async || {
            shop.world.clock.advance_ms(20_000);
            let seen = state.is_none() || Some(shop.status("E").await.state()) == state;
            seen && handed_over(&shop.world.operation("CHG-1").await.unwrap()) == wanted
        })
        .await;
    };
    becomes("it was announced and not taken", 0, Some(DeliveryState::Sent)).await;
    shop.radio.station("at-R", |station| station.refuses = false);
    becomes("it is taken", 1, Some(DeliveryState::Queued)).await;
    // Away is not lost.
    shop.radio.station("at-R", |station| station.offline = true);
    becomes("its access point is away", 1, Some(DeliveryState::Unreachable)).await;
    // Back after a reset, it has nothing, and takes nothing yet.
    let now = shop.world.clock.now();
    shop.radio.station("at-R", |station| {
        station.reboot(now);
        (station.offline, station.refuses) = (false, true);
    });
    becomes("it was lost", 0, None).await;
    shop.radio.station("at-R", |station| station.refuses = false);
    becomes("it is taken again", 1, None).await;
    eventually("it is confirmed", async || {
        shop.radio.station("at-R", Station::check_in);
        shop.world.clock.advance_ms(20_000);
        let operation = shop.world.operation("CHG-1").await.unwrap();
        (operation.state(), handed_over(&operation)) == (OperationState::Succeeded, 0)
    })
    .await;
    worker.stop().await;
}

/// The operation's counts at the exporter.
fn exported(operation: &Operation) -> QueueCounts {
    operation.queues.iter().find(|queue| queue.queue_name == EXPORTER.as_str()).cloned().unwrap_or_default()
}

#[tokio::test]
async fn what_is_given_up_is_told_apart_by_whether_its_access_point_had_it() {
    let shop = Shop::new(&["R", "other"]).await;
    let worker = shop.work().await;
    for (label, access_point) in [("taken", "R"), ("refused", "other")] {
        shop.label(label, access_point, "apples").await;
        shop.arrives(label, access_point, "apples").await;
    }
    shop.world.idle().await;
    shop.world.model("M", "m2").await;
    shop.radio.station("at-other", |station| station.refuses = true);
    let request = World::refresh("M", "CHG-1");
    shop.world.triggers(ServiceName::OperatorGateway).trigger_model_refresh(request).await.unwrap();
    shop.reaches("taken", DeliveryState::Accepted).await;
    let given_up = async |failed: i64| {
        eventually("it is given up", async || {
            shop.world.clock.advance_ms(60_000);
            exported(&shop.world.operation("CHG-1").await.unwrap()).failed == failed
        })
        .await;
    };
    given_up(1).await;
    // The other one's tag does not check in for longer than anybody waits.
    shop.world.clock.advance_ms(8 * 24 * 60 * 60 * 1_000);
    given_up(2).await;
    let operation = shop.world.operation("CHG-1").await.unwrap();
    let counts = exported(&operation);
    assert_eq!((counts.failed, counts.failed_handed_over, counts.handed_over), (2, 1, 0), "{counts:?}");
    let groups: Vec<(&str, i64)> =
        operation.failures.iter().map(|group| (group.cause.as_str(), group.handed_over)).collect();
    assert!(groups.iter().any(|(cause, taken)| cause.starts_with("not confirmed within") && *taken == 1), "{groups:?}");
    assert!(groups.iter().any(|(cause, taken)| cause.starts_with("given up after") && *taken == 0), "{groups:?}");
    worker.stop().await;
}
