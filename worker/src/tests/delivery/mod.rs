//! Deliveries by radio: followed until confirmed, resent when lost, parked while an access point is away.

mod told;

use std::sync::Arc;

use domain::{Clock as _, DtoType, ServiceName};
use picture::Digest;
use prost::Message as _;
use proto::records::v1::{AccessPoint, DeliveryState, EccLink, StoreEsl, StoreEslStatus};

use super::{
    radio::{Radio, RadioDriver},
    world::{Running, World, digest, eventually},
};
use crate::services::hardware_exporter::{AfterReset, HardwareExporter};

const EXPORTER: ServiceName = ServiceName::HardwareExporter;
/// The longest lease there is, in milliseconds.
const LEASE_MS: i32 = 600_000;

/// A world whose labels hang on radio access points.
struct Shop {
    world: World,
    radio: Arc<Radio>,
}

impl Shop {
    async fn new(access_points: &[&str]) -> Self {
        // Time jumps here, and a batch takes its real time.
        let mut world = World::new();
        world.lease_ms = LEASE_MS;
        Self::in_world(world, access_points).await
    }

    async fn in_world(world: World, access_points: &[&str]) -> Self {
        let radio = Radio::new(&world.clock);
        world.store().await;
        world.model("M", "m1").await;
        for access_point in access_points {
            let record = AccessPoint { driver: "radio".into(), address: format!("at-{access_point}") };
            world.put(DtoType::AccessPoint, &format!("t/T/s/S/accesspoints/{access_point}"), record).await;
        }
        Self { world, radio }
    }

    fn exporter(&self) -> HardwareExporter {
        HardwareExporter::with_drivers(vec![Arc::new(RadioDriver(Arc::clone(&self.radio)))])
    }

    async fn work(&self) -> Running {
        self.work_with(self.exporter()).await
    }

    async fn work_with(&self, exporter: HardwareExporter) -> Running {
        let world = &self.world;
        world
            .work_with(vec![
                world.service(ServiceName::EccImageRender),
                world.service(ServiceName::EslImageMerger),
                Arc::new(exporter),
            ])
            .await
    }

    /// A label on an access point that shows its own item, named as `text`.
    async fn label(&self, label: &str, access_point: &str, text: &str) {
        self.hung(label, access_point, text).await;
        self.world.link(label, label, "M").await;
    }

    /// The same without a picture.
    async fn hung(&self, label: &str, access_point: &str, text: &str) {
        self.world.item(label, text).await;
        let esl = StoreEsl {
            esltype_id: "X".into(),
            accesspoint_id: access_point.into(),
            hardware_address: format!("hw-{label}"),
        };
        self.world.put(DtoType::StoreEsl, &format!("t/T/s/S/esls/{label}"), esl).await;
    }

    async fn status(&self, label: &str) -> StoreEslStatus {
        self.world.status(label).await.unwrap_or_default()
    }

    async fn reaches(&self, label: &str, state: DeliveryState) {
        eventually(&format!("{label} reaches {state:?}"), async || self.status(label).await.state() == state).await;
    }

    /// The labels of an access point check in, and time goes on until the exporter has seen it.
    async fn arrives(&self, label: &str, access_point: &str, text: &str) {
        let wanted = digest(&format!("{text} m1"));
        eventually(&format!("{label} is confirmed to show {text}"), async || {
            self.radio.station(&format!("at-{access_point}"), super::radio::Station::check_in);
            self.world.clock.advance_ms(2_000);
            let status = self.status(label).await;
            status.state() == DeliveryState::Confirmed && status.confirmed_digest == wanted.as_bytes().as_slice()
        })
        .await;
    }

    fn sent(&self, access_point: &str, label: &str) -> Vec<Digest> {
        self.radio.station(&format!("at-{access_point}"), |station| station.sent_to(&format!("hw-{label}")))
    }

    fn shown(&self, access_point: &str, label: &str) -> Vec<Digest> {
        self.radio.station(&format!("at-{access_point}"), |station| station.shown_by(&format!("hw-{label}")))
    }
}

fn steps(status: &StoreEslStatus) -> Vec<DeliveryState> {
    status.transitions.iter().map(proto::records::v1::Transition::state).collect()
}

#[tokio::test]
async fn what_an_access_point_lost_is_sent_again_and_what_is_confirmed_is_not() {
    let shop = Shop::new(&["R"]).await;
    let worker = shop.work().await;
    shop.label("kept", "R", "pears").await;
    shop.arrives("kept", "R", "pears").await;
    shop.label("lost", "R", "apples").await;
    eventually("it waits at the access point", async || shop.sent("R", "lost").len() == 1).await;
    shop.reaches("lost", DeliveryState::Accepted).await;

    let now = shop.world.clock.now();
    shop.radio.station("at-R", |station| station.reboot(now));
    eventually("it is sent again", async || {
        shop.world.clock.advance_ms(5_000);
        shop.sent("R", "lost").len() == 2
    })
    .await;
    shop.arrives("lost", "R", "apples").await;
    let status = shop.status("lost").await;
    assert!(steps(&status).contains(&DeliveryState::Lost), "{:?}", steps(&status));
    assert_eq!(shop.sent("R", "kept").len(), 1, "what is confirmed is not sent");
    worker.stop().await;
}

#[tokio::test]
async fn an_access_point_that_is_away_costs_no_attempt_and_gets_only_the_newest_picture() {
    let shop = Shop::new(&["R", "other"]).await;
    let worker = shop.work().await;
    shop.radio.station("at-R", |station| station.offline = true);
    shop.label("E", "R", "first").await;
    shop.reaches("E", DeliveryState::Unreachable).await;
    for text in ["second", "third", "newest"] {
        shop.world.item("E", text).await;
        for _ in 0..40 {
            shop.world.clock.advance_ms(60_000);
            tokio::task::yield_now().await;
        }
        // The others go on meanwhile.
        shop.label(text, "other", text).await;
        shop.arrives(text, "other", text).await;
    }
    let away = shop.status("E").await;
    assert_eq!((away.state(), away.attempts), (DeliveryState::Unreachable, 0));
    assert!(away.last_error.contains("does not answer since"), "{}", away.last_error);
    assert!(shop.sent("R", "E").is_empty());

    shop.radio.station("at-R", |station| station.offline = false);
    shop.arrives("E", "R", "newest").await;
    assert_eq!(shop.sent("R", "E"), [digest("newest m1")]);
    assert_eq!(shop.shown("R", "E"), [digest("newest m1")]);
    worker.stop().await;
}

#[tokio::test]
async fn a_stuck_access_point_holds_nothing_but_its_own_labels() {
    let shop = Shop::new(&["slow", "R"]).await;
    let worker = shop.work().await;
    shop.radio.stick("at-slow");
    shop.label("E", "slow", "apples").await;
    shop.radio.entered.notified().await;
    eventually("its batch is over without it", async || shop.world.waits(EXPORTER).await).await;
    for label in ["F", "G"] {
        shop.label(label, "R", label).await;
        shop.arrives(label, "R", label).await;
    }
    assert!(shop.sent("slow", "E").is_empty());
    // Its answer comes when nobody waits for it any more, and counts.
    shop.radio.release.notify_one();
    shop.arrives("E", "slow", "apples").await;
    assert_eq!(shop.sent("slow", "E").len(), 1);
    assert!(!shop.radio.overlapped());
    worker.stop().await;
}

/// Access points do not wait for the platform, nor for each other: a batch goes out beside the one before it.
#[tokio::test]
async fn the_next_batch_is_sent_while_an_access_point_is_still_busy_with_the_last() {
    const LABELS: [(&str, &str); 4] = [("L1", "A"), ("L2", "B"), ("L3", "A"), ("L4", "B")];
    let mut shop = Shop::new(&["A", "B"]).await;
    let worker = shop.work().await;
    for (label, access_point) in LABELS {
        shop.hung(label, access_point, label).await;
    }
    shop.world.idle().await;
    worker.stop().await;
    // Their pictures wait, in this order, for batches of two.
    let renderers = [ServiceName::EccImageRender, ServiceName::EslImageMerger].map(|name| shop.world.service(name));
    let worker = shop.world.work_with(renderers.into()).await;
    let links = LABELS.map(|(label, _)| {
        let link = EccLink { item_id: label.into(), model_id: "M".into(), ..EccLink::default() };
        (DtoType::EccLink, format!("t/T/s/S/ecclinks/{label}"), link.encode_to_vec())
    });
    shop.world.put_many(links.into()).await;
    for (label, _) in LABELS {
        eventually("its picture is drawn", async || shop.world.version(DtoType::EslImage, label).await > 0).await;
    }
    worker.stop().await;
    shop.world.batch_max = 2;
    shop.radio.stick("at-B");
    let worker = shop.world.work_with(vec![Arc::new(shop.exporter())]).await;
    shop.radio.entered.notified().await;
    eventually("L3 is sent", async || !shop.sent("A", "L3").is_empty()).await;
    // Its batch joined the lease of the call that still runs, and waits where that runs.
    let lease = |label: &str| shop.radio.first_sent_under(&format!("hw-{label}"));
    assert!(lease("L2").is_some() && lease("L3") == lease("L2"), "{:?} {:?}", lease("L2"), lease("L3"));
    assert!(shop.sent("B", "L2").is_empty() && lease("L4").is_none());
    shop.radio.release.notify_one();
    for (label, access_point) in LABELS {
        shop.arrives(label, access_point, label).await;
        assert_eq!(shop.shown(access_point, label).len(), 1, "{label}");
    }
    assert!(!shop.radio.overlapped());
    worker.stop().await;
}

#[tokio::test]
async fn a_newer_picture_waits_until_a_lost_workers_call_with_an_older_one_is_over() {
    let shop = Shop::in_world(World::new(), &["R"]).await;
    let dying = shop.work().await;
    shop.radio.stick("at-R");
    shop.label("E", "R", "older").await;
    shop.radio.entered.notified().await;
    let announced = shop.status("E").await;
    assert_eq!(announced.state(), DeliveryState::Sent);
    assert!(announced.sent_until.is_some());
    dying.kill().await;

    shop.world.item("E", "newer").await;
    // Long enough for the lease to be over, too short for the call.
    shop.world.clock.advance_ms(i64::from(super::world::LEASE_MS) + 1);
    let worker = shop.work().await;
    let merged = digest("newer m1");
    eventually("the newer picture is there", async || {
        let image: Option<proto::records::v1::EslImage> = shop.world.of_label(DtoType::EslImage, "E").await;
        image.is_some_and(|image| image.digest == merged.as_bytes().as_slice())
    })
    .await;
    eventually("the exporter has put it off", async || shop.world.waits(EXPORTER).await).await;
    assert!(shop.sent("R", "E").is_empty());

    // The lost worker's call goes through at last; then its time is over.
    shop.radio.release.notify_one();
    eventually("the older picture arrives", async || shop.sent("R", "E") == [digest("older m1")]).await;
    shop.world.clock.advance_ms(60_000);
    shop.arrives("E", "R", "newer").await;
    assert_eq!(shop.sent("R", "E"), [digest("older m1"), merged]);
    assert_eq!(shop.shown("R", "E").last(), Some(&merged));
    worker.stop().await;
}

#[tokio::test]
async fn a_newer_picture_replaces_one_that_waits() {
    let shop = Shop::new(&["R"]).await;
    let worker = shop.work().await;
    shop.label("E", "R", "older").await;
    shop.reaches("E", DeliveryState::Accepted).await;
    shop.world.item("E", "newer").await;
    eventually("the newer one is sent", async || shop.sent("R", "E").len() == 2).await;
    shop.arrives("E", "R", "newer").await;
    assert_eq!(shop.shown("R", "E"), [digest("newer m1")], "the older one was dropped before it was shown");
    let status = shop.status("E").await;
    assert!(steps(&status).contains(&DeliveryState::Superseded), "{:?}", steps(&status));
    worker.stop().await;
}

#[tokio::test]
async fn a_corrected_access_point_gets_what_failed_because_of_it_and_nothing_else() {
    let shop = Shop::new(&["R"]).await;
    let worker = shop.work().await;
    shop.label("kept", "R", "pears").await;
    shop.arrives("kept", "R", "pears").await;
    shop.label("E", "missing", "apples").await;
    shop.reaches("E", DeliveryState::Failed).await;
    assert!(shop.status("E").await.last_error.contains("does not exist"));
    for (address, access_point) in [("at-missing", "missing"), ("at-R", "R")] {
        let record = AccessPoint { driver: "radio".into(), address: address.into() };
        shop.world.put(DtoType::AccessPoint, &format!("t/T/s/S/accesspoints/{access_point}"), record).await;
    }
    shop.arrives("E", "missing", "apples").await;
    let moved = AccessPoint { driver: "radio".into(), address: "at-elsewhere".into() };
    shop.world.put(DtoType::AccessPoint, "t/T/s/S/accesspoints/R", moved).await;
    shop.world.idle().await;
    assert_eq!(shop.sent("R", "kept").len() + shop.sent("elsewhere", "kept").len(), 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_reset_announces_what_is_not_confirmed_once_and_says_why() {
    let shop = Shop::new(&["R"]).await;
    let worker = shop.work_with(shop.exporter().after_reset(AfterReset::Announce)).await;
    shop.label("kept", "R", "pears").await;
    shop.arrives("kept", "R", "pears").await;
    shop.label("E", "R", "apples").await;
    shop.reaches("E", DeliveryState::Queued.min(DeliveryState::Accepted)).await;
    eventually("a look has seen it wait", async || {
        shop.world.clock.advance_ms(5_000);
        shop.status("E").await.state() == DeliveryState::Queued
    })
    .await;
    // Old enough for its next look to be minutes away.
    shop.world.clock.advance_ms(20 * 60_000);
    eventually("it was looked after late", async || shop.world.waits(EXPORTER).await).await;
    let now = shop.world.clock.now();
    shop.radio.station("at-R", |station| station.reboot(now));
    shop.label("F", "R", "plums").await;
    eventually("F's look finds the reset", async || {
        shop.world.clock.advance_ms(2_000);
        !shop.world.audit_of("announce after reset").await.is_empty()
    })
    .await;
    shop.arrives("E", "R", "apples").await;
    shop.arrives("F", "R", "plums").await;
    let audit = shop.world.audit_of("announce after reset").await;
    let [entry] = audit.as_slice() else { panic!("once: {audit:?}") };
    assert!(entry.reason.contains("was reset: up since"), "{}", entry.reason);
    assert_eq!(shop.sent("R", "kept").len(), 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_first_announcement_that_was_not_sent_is_taken_back_and_takes_no_other_label_of_its_batch_along() {
    let shop = Shop::new(&["slow", "R"]).await;
    let world = &shop.world;
    let makers = vec![world.service(ServiceName::EccImageRender), world.service(ServiceName::EslImageMerger)];
    // The queue is there before the exporter works it: all three labels come in one batch.
    let exporter = shop.work().await;
    exporter.stop().await;
    let makers = world.work_with(makers).await;
    for (label, access_point) in [("E", "slow"), ("F", "slow"), ("G", "R")] {
        shop.label(label, access_point, label).await;
    }
    eventually("three pictures wait", async || {
        let merged =
            async |label| world.of_label::<proto::records::v1::EslImage>(DtoType::EslImage, label).await.is_some();
        merged("E").await && merged("F").await && merged("G").await
    })
    .await;
    makers.stop().await;
    shop.radio.stick("at-slow");
    let worker = world.work_with(vec![Arc::new(shop.exporter())]).await;
    shop.radio.entered.notified().await;
    // Not one by one, each waiting for its own announcement to run out: time stands still here.
    shop.reaches("G", DeliveryState::Accepted).await;
    eventually("the batch is over", async || world.waits(EXPORTER).await).await;
    let going = shop.status("E").await;
    assert_eq!(going.state(), DeliveryState::Sent, "{going:?}");
    assert!(going.sent_until.is_some(), "nobody sends another before this is over");
    assert_eq!(world.status("F").await, None, "what was not sent is not said to be");
    shop.radio.release.notify_one();
    for (label, access_point) in [("E", "slow"), ("F", "slow"), ("G", "R")] {
        shop.arrives(label, access_point, label).await;
        assert_eq!(shop.sent(access_point, label).len(), 1, "{label}");
    }
    worker.stop().await;
}
