//! What follows a reset of an access point: announced once, whoever sees it and however often workers begin anew.

use std::sync::Arc;

use domain::{Clock as _, DtoType, ServiceName, Timestamp};
use proto::records::v1::{AccessPoint, AccessPointStatus, DeliveryState, StoreEsl};

use super::{
    radio::{Radio, RadioDriver, Station},
    world::{Running, World, eventually},
};
use crate::services::hardware_exporter::{AfterReset, HardwareExporter};

/// The longest lease there is, in milliseconds.
const LEASE_MS: i32 = 600_000;

struct Shop {
    world: World,
    radio: Arc<Radio>,
    labels: std::sync::atomic::AtomicU32,
}

impl Shop {
    async fn new() -> Self {
        let mut world = World::new();
        world.lease_ms = LEASE_MS;
        let radio = Radio::new(&world.clock);
        world.store().await;
        world.model("M", "m1").await;
        let record = AccessPoint { driver: "radio".into(), address: "at-R".into() };
        world.put(DtoType::AccessPoint, "t/T/s/S/accesspoints/R", record).await;
        let up_since = world.clock.now().plus_ms(-3_600_000);
        radio.station("at-R", |station| station.reboot(up_since));
        Self { world, radio, labels: 0.into() }
    }

    /// An exporter with a memory of its own.
    fn exporter(&self) -> Arc<HardwareExporter> {
        let driver = Arc::new(RadioDriver(Arc::clone(&self.radio)));
        Arc::new(HardwareExporter::with_drivers(vec![driver]).after_reset(AfterReset::Announce))
    }

    async fn work(&self, exporter: &Arc<HardwareExporter>) -> Running {
        let world = &self.world;
        let makers = [ServiceName::EccImageRender, ServiceName::EslImageMerger].map(|name| world.service(name));
        let mut services = makers.to_vec();
        services.push(Arc::clone(exporter) as _);
        world.work_with(services).await
    }

    /// A worker with this exporter delivers a picture to a new label, and so asks the access point since when it is up.
    async fn delivers(&self, exporter: &Arc<HardwareExporter>) {
        let worker = self.work(exporter).await;
        let number = self.labels.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let label = format!("E{number}");
        self.label(&label).await;
        eventually(&format!("{label} is confirmed"), async || {
            self.radio.station("at-R", Station::check_in);
            self.world.clock.advance_ms(2_000);
            self.world.status(&label).await.is_some_and(|status| status.state() == DeliveryState::Confirmed)
        })
        .await;
        worker.stop().await;
    }

    async fn label(&self, label: &str) {
        self.world.item(label, label).await;
        let esl =
            StoreEsl { esltype_id: "X".into(), accesspoint_id: "R".into(), hardware_address: format!("hw-{label}") };
        self.world.put(DtoType::StoreEsl, &format!("t/T/s/S/esls/{label}"), esl).await;
        self.world.link(label, label, "M").await;
    }

    fn reset(&self) -> Timestamp {
        self.world.clock.advance_ms(60_000);
        let now = self.world.clock.now();
        self.radio.station("at-R", |station| station.reboot(now));
        now
    }

    async fn announced(&self) -> usize {
        self.world.audit_of("announce after reset").await.len()
    }

    async fn recorded(&self) -> AccessPointStatus {
        self.world.of_label(DtoType::AccessPointStatus, "R").await.expect("it is recorded")
    }
}

#[tokio::test]
async fn a_reset_that_two_workers_see_is_announced_once() {
    let shop = Shop::new().await;
    let (one, other) = (shop.exporter(), shop.exporter());
    // Both have asked before the reset, so both see it.
    shop.delivers(&one).await;
    shop.delivers(&other).await;
    assert_eq!(shop.announced().await, 0);
    let since = shop.reset();
    shop.delivers(&one).await;
    shop.delivers(&other).await;
    assert_eq!(shop.announced().await, 1);
    let recorded = shop.recorded().await;
    assert_eq!(recorded.up_since, Some(proto::timestamp_to_wire(since)));
    assert!(recorded.up_before.is_some());
    shop.reset();
    shop.delivers(&other).await;
    shop.delivers(&one).await;
    assert_eq!(shop.announced().await, 2, "the next reset is another one");
}

#[tokio::test]
async fn a_worker_that_begins_anew_announces_no_reset_again_and_misses_none() {
    let shop = Shop::new().await;
    shop.delivers(&shop.exporter()).await;
    shop.reset();
    shop.delivers(&shop.exporter()).await;
    assert_eq!(shop.announced().await, 1, "it happened while no worker ran");
    shop.delivers(&shop.exporter()).await;
    assert_eq!(shop.announced().await, 1);
}
