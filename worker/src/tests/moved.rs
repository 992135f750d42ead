//! Labels that move between access points: what waits at the old one is never shown after what came by the new one.

use std::{sync::Arc, time::Duration};

use daemon::outbound::AllowList;
use domain::{Clock, DtoType, ServiceName};
use picture::{Panel, Picture};
use proto::records::v1::{AccessPoint as AccessPointRecord, DeliveryState, EslType, StoreEsl, StoreEslStatus};
use simulators::openepaperlink::{AccessPoint, AccessPointSettings, Control, Mac, TagSettings};

use super::world::{Running, World, eventually};

/// The smallest panel of the protocol's numbering: 152 by 152 pixels, white, black, red.
const PANEL: u8 = 0x00;
const TAG: Mac = Mac::new(0x0000_021A_0000_0001);
/// The longest lease there is, in milliseconds: time jumps here, and a batch takes its real time.
const LEASE_MS: i32 = 600_000;

/// A label that both of two access points can reach. By the first its tag checks in seldom.
struct Shop {
    world: World,
    old: AccessPoint,
    new: AccessPoint,
    worker: Running,
}

impl Shop {
    async fn new(old_check_in_ms: i64) -> Self {
        let mut world = World::new();
        world.lease_ms = LEASE_MS;
        world.settings.reach = AllowList::loopback();
        world.settings.access_point_pause_ms = Some(0);
        let start = async |check_in_ms: i64| {
            let mut settings = AccessPointSettings::new(Arc::clone(&world.clock) as Arc<dyn Clock>);
            settings.tags = vec![TagSettings { mac: TAG, panel: Panel::of(PANEL).unwrap(), check_in_ms }];
            AccessPoint::start(settings).await.unwrap()
        };
        let (old, new) = (start(old_check_in_ms).await, start(40_000).await);
        let worker = world.work().await;
        let shop = Self { world, old, new, worker };
        let esl_type = EslType { width: 152, height: 152, palette: 2, rotation: 0, name: String::new() };
        shop.world.put(DtoType::EslType, "t/T/esltypes/X", esl_type).await;
        for (id, access_point) in [("old", &shop.old), ("new", &shop.new)] {
            let address = access_point.address().to_string();
            let record = AccessPointRecord { driver: "openepaperlink".into(), address };
            shop.world.put(DtoType::AccessPoint, &format!("t/T/s/S/accesspoints/{id}"), record).await;
        }
        let layout = r#"{"ecc":1,"name":"M","variants":[{"width":152,"height":152,"elements":[
            {"kind":"text","id":"name","box":[0,0,152,152],"text":"{item.name}","size":24}]}]}"#;
        shop.world.put_layout("M", layout.to_owned()).await;
        shop
    }

    async fn hangs(&self, access_point: &str) {
        let esl =
            StoreEsl { esltype_id: "X".into(), accesspoint_id: access_point.into(), hardware_address: TAG.to_string() };
        self.world.put(DtoType::StoreEsl, "t/T/s/S/esls/E", esl).await;
    }

    async fn status(&self) -> StoreEslStatus {
        self.world.status("E").await.unwrap_or_default()
    }

    /// Lets time pass, in small steps, until it holds.
    async fn passes(&self, what: &str, step_ms: i64, holds: impl AsyncFn() -> bool) {
        eventually(what, async || {
            self.world.clock.advance_ms(step_ms);
            tokio::time::sleep(Duration::from_millis(5)).await;
            holds().await
        })
        .await;
    }

    /// A picture that says `first` waits at the old access point.
    async fn waits_at_the_old(&self) {
        self.world.item("E", "first").await;
        self.hangs("old").await;
        self.world.link("E", "E", "M").await;
        eventually("the first picture is there", async || {
            self.status().await.state() == DeliveryState::Accepted && self.old.traffic().taken == 1
        })
        .await;
    }

    /// What the label's panel was refreshed with by an access point.
    fn shown(access_point: &AccessPoint) -> usize {
        access_point.shown(TAG).len()
    }

    fn screen(&self) -> Option<Picture> {
        self.new.screen(TAG)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_at_the_old_access_point_is_dropped_and_never_shown() {
    let shop = Shop::new(10 * 60_000).await;
    shop.waits_at_the_old().await;
    shop.hangs("new").await;
    shop.passes("it is shown by the new one", 2_000, async || shop.screen().is_some()).await;
    // Until the tag was due at the old one twice, and the notification is done.
    shop.passes("everything is done", 5_000, async || {
        let status = shop.status().await;
        status.state() == DeliveryState::Confirmed && status.left_behind.is_empty()
    })
    .await;
    shop.world.clock.advance_ms(30 * 60_000);
    assert_eq!(Shop::shown(&shop.old), 0, "the old access point shows nothing");
    assert_eq!(Shop::shown(&shop.new), 1);
    assert!(shop.old.traffic().clears >= 1);
    shop.world.idle().await;
    shop.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_access_point_that_is_away_delays_nothing_and_is_asked_again_when_it_is_back() {
    let shop = Shop::new(12 * 60_000).await;
    shop.waits_at_the_old().await;
    shop.old.control(Control::Offline(true));
    shop.hangs("new").await;
    shop.passes("it is confirmed at the new one", 2_000, async || {
        shop.status().await.state() == DeliveryState::Confirmed
    })
    .await;
    let status = shop.status().await;
    let [left] = status.left_behind.as_slice() else { panic!("it is not forgotten: {status:?}") };
    assert!(left.accesspoint_id == "old" && left.attempts >= 1, "{left:?}");
    eventually("the notification is not done", async || shop.world.waits(ServiceName::HardwareExporter).await).await;
    shop.old.control(Control::Offline(false));
    shop.passes("it is dropped", 5_000, async || shop.status().await.left_behind.is_empty()).await;
    shop.world.clock.advance_ms(90 * 60_000);
    assert_eq!((Shop::shown(&shop.old), Shop::shown(&shop.new)), (0, 1));
    shop.world.idle().await;
    shop.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_that_returns_is_looked_after_where_its_picture_waits() {
    let shop = Shop::new(4 * 60_000).await;
    shop.waits_at_the_old().await;
    shop.old.control(Control::Offline(true));
    shop.new.control(Control::Offline(true));
    shop.hangs("new").await;
    shop.passes("nothing reaches it", 1_000, async || shop.status().await.state() == DeliveryState::Unreachable).await;
    shop.hangs("old").await;
    shop.old.control(Control::Offline(false));
    shop.passes("it is confirmed", 2_000, async || shop.status().await.state() == DeliveryState::Confirmed).await;
    assert_eq!((Shop::shown(&shop.old), Shop::shown(&shop.new)), (1, 0));
    assert_eq!(shop.old.traffic().taken, 1, "it was there all the time");
    shop.worker.stop().await;
}
