//! Five hundred labels on four simulated access points that reboot, lose, repeat and go away, while models and items
//! change: in the end each panel shows exactly the pixels its records say, and none ever went back.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use daemon::outbound::AllowList;
use domain::{Clock, DtoType, IdSource as _, SeededIds, ServiceName};
use picture::{Digest, Panel, Picture, Rotation};
use prost::Message;
use proto::{
    cqs::v1::OperationState,
    hardware_exporter::v1::TriggerStoreReexportRequest,
    records::v1::{AccessPoint as AccessPointRecord, DeliveryState, EccLink, EslType, StoreEsl, StoreItemValues},
};
use simulators::openepaperlink::{
    AccessPoint, AccessPointSettings, Control, Mac, StatusBehaviour, StatusFault, TagSettings, TransferFault,
};

use super::world::{Running, World, counts};

/// The smallest panel of the protocol's numbering: 152 by 152 pixels, white, black, red.
const PANEL: u8 = 0x00;
/// The longest lease there is, in milliseconds: time jumps here, and a batch takes its real time.
const LEASE_MS: i32 = 600_000;
/// Between two check-ins of a tag, in milliseconds.
const CHECK_IN_MS: i64 = 40_000;
/// How far time goes on while something is in hand, in milliseconds.
const SMALL_STEP_MS: i64 = 2_000;
/// How far while nothing is, in milliseconds.
const LARGE_STEP_MS: i64 = 60_000;
/// Longest wait for the end, in real time.
const PATIENCE: Duration = Duration::from_mins(2);

/// A shop whose labels hang on simulated access points.
struct Shop {
    world: World,
    access_points: Vec<AccessPoint>,
    /// Labels, by number; each hangs on access point `number % access_points`.
    labels: usize,
    /// Version of each label's item, and of the model.
    items: Vec<u32>,
    model: u32,
    /// What each label shall show now.
    wanted: Vec<Picture>,
    /// Every picture that any label was ever meant to show, by what it says.
    meant: BTreeMap<Digest, (usize, u32, u32)>,
    ids: SeededIds,
    worker: Option<Running>,
}

/// What the access points together were asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sums {
    uploads: u64,
    transfers: u64,
    clears: u64,
}

impl Shop {
    async fn new(access_points: usize, labels: usize, change: impl Fn(usize, &mut AccessPointSettings)) -> Self {
        let mut world = World::new();
        world.lease_ms = LEASE_MS;
        world.settings.reach = AllowList::loopback();
        world.settings.access_point_pause_ms = Some(0);
        let panel = Panel::of(PANEL).unwrap();
        let mut started = Vec::new();
        for number in 0..access_points {
            let mut settings = AccessPointSettings::new(Arc::clone(&world.clock) as Arc<dyn Clock>);
            settings.tags = (0..labels)
                .filter(|label| label % access_points == number)
                .map(|label| TagSettings { mac: mac(label), panel, check_in_ms: CHECK_IN_MS })
                .collect();
            change(number, &mut settings);
            started.push(AccessPoint::start(settings).await.unwrap());
        }
        let mut shop = Self {
            world,
            access_points: started,
            labels,
            items: vec![1; labels],
            model: 1,
            wanted: (0..labels).map(|label| wanted(label, 1, 1)).collect(),
            meant: BTreeMap::new(),
            ids: SeededIds::new(11),
            worker: None,
        };
        // Its queues must be there before the first record: writes notify queues that are.
        shop.worker = Some(shop.world.work().await);
        shop.records().await;
        shop
    }

    async fn records(&mut self) {
        let esl_type = EslType { width: 152, height: 152, palette: 2, rotation: 0, name: String::new() };
        let mut all = vec![record(DtoType::EslType, "t/T/esltypes/X".to_owned(), &esl_type)];
        for (number, access_point) in self.access_points.iter().enumerate() {
            let address = access_point.address().to_string();
            let access_point = AccessPointRecord { driver: "openepaperlink".into(), address };
            all.push(record(DtoType::AccessPoint, format!("t/T/s/S/accesspoints/A{number}"), &access_point));
        }
        self.put_model().await;
        for label in 0..self.labels {
            all.push(self.item(label));
            let esl = StoreEsl {
                esltype_id: "X".into(),
                accesspoint_id: format!("A{}", label % self.access_points.len()),
                hardware_address: mac(label).to_string(),
            };
            all.push(record(DtoType::StoreEsl, format!("t/T/s/S/esls/{}", id(label)), &esl));
            let link = EccLink { item_id: id(label), model_id: "M".into(), parameters: BTreeMap::new() };
            all.push(record(DtoType::EccLink, format!("t/T/s/S/ecclinks/{}", id(label)), &link));
        }
        self.world.put_many(all).await;
    }

    async fn put_model(&mut self) {
        let version = self.model;
        self.world.put_layout("M", layout(&format!("{{item.name}} m{version}"))).await;
        for label in 0..self.labels {
            self.mean(label);
        }
    }

    /// So many items change.
    async fn items_change(&mut self, count: usize) {
        let mut changed = BTreeMap::new();
        for _ in 0..count {
            let label = usize::try_from(self.ids.below(self.labels as u64)).unwrap();
            self.items[label] += 1;
            changed.insert(label, self.item(label));
        }
        self.world.put_many(changed.into_values().collect()).await;
    }

    /// The label's item as it is now.
    fn item(&mut self, label: usize) -> Record {
        self.mean(label);
        let values = BTreeMap::from([("name".to_owned(), name(label, self.items[label]))]);
        record(DtoType::StoreItemValues, format!("t/T/s/S/items/{}", id(label)), &StoreItemValues { values })
    }

    /// Notes what the label shall show from now on.
    fn mean(&mut self, label: usize) {
        let (item, model) = (self.items[label], self.model);
        self.wanted[label] = wanted(label, item, model);
        self.meant.insert(self.wanted[label].digest(), (label, item, model));
    }

    fn access_point(&self, label: usize) -> &AccessPoint {
        &self.access_points[label % self.access_points.len()]
    }

    /// Lets some time pass: little while any service has something in hand.
    async fn pass(&self) {
        let busy = self.world.in_hand().await;
        self.world.clock.advance_ms(if busy { SMALL_STEP_MS } else { LARGE_STEP_MS });
        // Real time for real sockets.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Lets time pass until every panel shows what its records say and every status says confirmed.
    async fn converges(&self) {
        self.converges_but_for(usize::MAX).await;
    }

    /// The same, whatever the labels of one access point show.
    async fn converges_but_for(&self, access_point: usize) {
        let begun = Instant::now();
        loop {
            let wrong = self.wrong(access_point).await;
            if wrong.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{} labels are not right: {:?}", wrong.len(), wrong.first());
            for _ in 0..5 {
                self.pass().await;
            }
        }
    }

    async fn wrong(&self, but_for: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        for label in (0..self.labels).filter(|label| label % self.access_points.len() != but_for) {
            let picture = &self.wanted[label];
            let status = self.world.status(&id(label)).await.unwrap_or_default();
            let confirmed = status.state() == DeliveryState::Confirmed
                && status.confirmed_digest == picture.digest().as_bytes().as_slice();
            if !confirmed || self.access_point(label).screen(mac(label)).as_ref() != Some(picture) {
                wrong.push(format!("{}: {status:?}", id(label)));
            }
        }
        wrong
    }

    /// Each panel showed only what was meant for it, never an older picture after a newer one.
    fn assert_none_went_back(&self) {
        for label in 0..self.labels {
            let mut newest = (0, 0);
            for shown in self.access_point(label).shown(mac(label)) {
                let digest = shown.digest.unwrap_or_else(|| panic!("{} showed what is no picture", id(label)));
                let (of, item, model) = self.meant[&digest];
                assert_eq!(of, label, "{} showed another label's picture", id(label));
                assert!(item >= newest.0 && model >= newest.1, "{} went back: {newest:?} {item} {model}", id(label));
                newest = (item, model);
            }
        }
    }

    fn sums(&self) -> Sums {
        let traffic = self.access_points.iter().map(AccessPoint::traffic);
        traffic.fold(Sums { uploads: 0, transfers: 0, clears: 0 }, |sums, one| Sums {
            uploads: sums.uploads + one.uploads,
            transfers: sums.transfers + one.transfers,
            clears: sums.clears + one.clears,
        })
    }

    async fn stop(mut self) {
        self.worker.take().unwrap().stop().await;
    }

    /// One thing goes wrong somewhere.
    fn mishap(&self) {
        let label = usize::try_from(self.ids.below(self.labels as u64)).unwrap();
        let access_point = self.access_point(label);
        access_point.control(match self.ids.below(8) {
            0 => Control::Reboot,
            1 => Control::RadioReset,
            2 | 3 => Control::Transfer(mac(label), TransferFault::Lost),
            4 => Control::Transfer(mac(label), TransferFault::Late(3)),
            5 => Control::Transfer(mac(label), TransferFault::Twice),
            6 => Control::Status(StatusFault { status: 500, is_taken: true }),
            _ => Control::Status(StatusFault { status: 409, is_taken: false }),
        });
    }
}

/// A record as it is written: type, name, bytes.
type Record = (DtoType, String, Vec<u8>);

fn record(dto_type: DtoType, urn: String, record: &impl Message) -> Record {
    (dto_type, urn, record.encode_to_vec())
}

fn id(label: usize) -> String {
    format!("E{label:03}")
}

fn mac(label: usize) -> Mac {
    Mac::new(0x0000_021A_0000_0000 + label as u64)
}

fn name(label: usize, version: u32) -> String {
    format!("{label}.{version}")
}

fn layout(text: &str) -> String {
    format!(
        r#"{{"ecc":1,"name":"M","variants":[{{"width":152,"height":152,"elements":[
           {{"kind":"text","id":"name","box":[0,0,152,152],"text":"{text}","size":24}}]}}]}}"#
    )
}

/// What a label shall show, drawn without the services.
fn wanted(label: usize, item: u32, model: u32) -> Picture {
    let model = render::EccModel::parse(&layout(&format!("{} m{model}", name(label, item)))).unwrap();
    let panel = render::Panel { width: 152, height: 152, palette: picture::Palette::Bwr, rotation: Rotation::Deg0 };
    let none = BTreeMap::new();
    render::render(&model, &render::EccInput { panel, item: &none, parameters: &none }).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_label_ends_with_exactly_its_pixels_whatever_happens_on_the_way() {
    let mut shop = Shop::new(4, 500, |number, settings| {
        settings.status = if number % 2 == 0 { StatusBehaviour::Replaced } else { StatusBehaviour::Real };
    })
    .await;
    shop.converges().await;
    assert_eq!(shop.sums().transfers, 500, "one transfer a label");
    shop.access_points[3].control(Control::Offline(true));
    let (away_since, away_before) = (shop.world.clock.now(), shop.access_points[3].traffic().uploads);
    for round in 0..6 {
        shop.items_change(40).await;
        if round == 3 {
            shop.model += 1;
            shop.put_model().await;
            let request = World::refresh("M", "refresh");
            shop.world.triggers(ServiceName::OperatorGateway).trigger_model_refresh(request).await.unwrap();
        }
        for _ in 0..12 {
            shop.mishap();
            shop.pass().await;
        }
    }
    shop.converges_but_for(3).await;
    while shop.world.clock.now().ms_since(away_since) < 3 * 3_600_000 {
        shop.pass().await;
    }
    let away = || shop.access_points[3].traffic().uploads - away_before;
    assert_eq!(away(), 0, "it is away");
    shop.access_points[3].control(Control::Offline(false));
    shop.converges().await;
    shop.assert_none_went_back();
    assert!(away() < 125 * 3 / 2, "each label of the one that was away got its newest picture: {}", away());

    // Confirmed is not sent again, whatever else happens.
    let before = shop.sums();
    for access_point in &shop.access_points {
        access_point.control(Control::Reboot);
    }
    for _ in 0..40 {
        shop.pass().await;
    }
    assert_eq!(shop.sums().uploads, before.uploads, "nothing was sent again");
    for (number, access_point) in shop.access_points.iter().enumerate() {
        assert_eq!(access_point.traffic().most_at_once, 1, "two requests at once at access point {number}");
    }
    let complaints = |what: &str| -> usize {
        shop.access_points.iter().map(|one| one.errors().iter().filter(|error| error.contains(what)).count()).sum()
    };
    println!(
        "500 labels, 4 access points: {before:?}; {} requests; {} reboots before the last 4, {} radio resets, {} transfers that \
         broke off; the one that was away: {} uploads; panels that went back: 0; sent again when all was confirmed: 0",
        shop.access_points.iter().map(|one| one.traffic().requests).sum::<u64>(),
        complaints("REBOOTING") - 4,
        complaints("AP did reset"),
        complaints("xfer timeout"),
        away()
    );
    shop.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_with_everything_confirmed_sends_nothing_and_a_wiped_store_is_restored_by_its_reexport() {
    let shop = Shop::new(2, 40, |_, settings| settings.reboots_nightly = true).await;
    shop.converges().await;
    let before = shop.sums();
    assert_eq!((before.uploads, before.transfers), (40, 40));

    let evening = shop.world.clock.now();
    while shop.world.clock.now().ms_since(evening) < 26 * 3_600_000 {
        shop.world.clock.advance_ms(600_000);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let reboots = shop.access_points.iter().map(|one| one.errors().iter().filter(|it| *it == "REBOOTING").count());
    assert!(reboots.sum::<usize>() >= 2, "the night came");
    assert_eq!(shop.sums().uploads, before.uploads, "a night sends nothing");

    for access_point in &shop.access_points {
        access_point.control(Control::ForgetTags);
        for tag in access_point.tags() {
            access_point.control(Control::RebootTag(tag));
        }
    }
    let blank = shop.access_points.iter().flat_map(|one| one.tags().into_iter().map(|tag| one.screen(tag)));
    assert!(blank.clone().all(|screen| screen.is_none()), "every panel is blank");
    let rendered = shop.world.version(DtoType::EccEslImage, &id(0)).await;
    let request = TriggerStoreReexportRequest {
        tenant_id: "T".into(),
        store_id: "S".into(),
        reason: "INC-1: power cut".into(),
        tracking_id: "INC-1".into(),
        operator_subject: "ops@example".into(),
        ..TriggerStoreReexportRequest::default()
    };
    let mut triggers = shop.world.exporter_triggers(ServiceName::OperatorGateway);
    assert_eq!(triggers.trigger_store_reexport(request).await.unwrap().into_inner().labels, 40);
    shop.converges().await;
    let begun = Instant::now();
    let operation = loop {
        let operation = shop.world.operation("INC-1").await.unwrap();
        if operation.state() != OperationState::Running {
            break operation;
        }
        assert!(begun.elapsed() < PATIENCE, "{operation:?}");
        shop.pass().await;
    };
    assert_eq!(operation.state(), OperationState::Succeeded, "{operation:?}");
    assert_eq!(counts(&operation, ServiceName::HardwareExporter), (40, 40, 0, 0));
    assert_eq!(shop.world.version(DtoType::EccEslImage, &id(0)).await, rendered, "nothing was rendered");
    shop.stop().await;
}
