//! Studio: two stages, design writes and triggers, the merger's rules, another build of the renderer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use domain::{AliasName, DtoType, Outcome, ParentShape, ServiceName, SplitItem, Target, Urn};
use futures::future::BoxFuture;
use picture::Picture;
use prost::Message as _;
use proto::{
    cqs::v1::{DtoChangeNotification, Operation, OperationState},
    ecc_image_render::v1::TriggerEccStoreRerenderRequest,
    records::v1 as records,
    refusal_from_status,
    studio_renderer::v1::{
        StoreLabels, TriggerDesignRefreshRequest, TriggerDesignRefreshResponse, TriggerStudioStoreRerenderRequest,
    },
};
use render::{EccInput, RenderError, StudioDesign};
use tonic::Code;

use super::world::{World, counts, eventually};
use crate::runtime::{Ask, CallError, Context, Label, Leased, Platform, Route, Service, Splitter, Verdict};

const STUDIO: ServiceName = ServiceName::StudioRenderer;

/// SVG and mappings of a design that writes the item's name and `version`.
fn design_text(version: &str) -> (String, String) {
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="96" height="32" viewBox="0 0 96 32" font-family="DejaVu Sans Condensed"><text id="name" x="2" y="20" font-size="12">name</text></svg>"#;
    let mappings = format!(
        r#"{{"studio":1,"name":"d","elements":{{"name":{{"format":"text","value":"{{item.name}} {version}","box":[0,0,96,32],"size_min":10}}}}}}"#
    );
    (svg.to_owned(), mappings)
}

/// The picture of an item's name by such a design, drawn without the services.
fn studio_picture(name: &str, version: &str) -> Picture {
    let (svg, mappings) = design_text(version);
    let design = StudioDesign::parse(&svg, &mappings).unwrap();
    let panel =
        render::Panel { width: 96, height: 32, palette: picture::Palette::Bw, rotation: picture::Rotation::Deg0 };
    let item = BTreeMap::from([("name".to_owned(), name.to_owned())]);
    render::studio_render(&design, &EccInput { panel, item: &item, parameters: &BTreeMap::new() }).unwrap()
}

impl World {
    async fn design(&self, design: &str, version: &str) {
        let (svg, mappings) = design_text(version);
        let record = records::Design { svg, mappings, name: design.to_owned() };
        self.put(DtoType::Design, &format!("t/T/designs/{design}"), record).await;
    }

    /// Labels `L0` … of items of the same names, in a store, linked to a design.
    async fn studio_labels(&self, store: &str, design: &str, labels: i64) {
        let access_point = records::AccessPoint { driver: "folder".into(), address: String::new() };
        self.put(DtoType::AccessPoint, &format!("t/T/s/{store}/accesspoints/A"), access_point).await;
        for number in 0..labels {
            let id = format!("{design}{number}");
            let at = |dto_type: DtoType| format!("t/T/s/{store}/{}/{id}", dto_type.collection());
            let values = BTreeMap::from([("name".to_owned(), id.clone())]);
            self.put(DtoType::StoreItemValues, &at(DtoType::StoreItemValues), records::StoreItemValues { values })
                .await;
            let esl = records::StoreEsl {
                esltype_id: "X".into(),
                accesspoint_id: "A".into(),
                hardware_address: format!("hw-{store}-{id}"),
            };
            self.put(DtoType::StoreEsl, &at(DtoType::StoreEsl), esl).await;
            let link = records::StudioLink { item_id: id.clone(), design_id: design.to_owned() };
            self.put(DtoType::StudioLink, &at(DtoType::StudioLink), link).await;
        }
    }

    async fn studio_link(&self, label: &str, item: &str, design: &str) {
        let link = records::StudioLink { item_id: item.into(), design_id: design.into() };
        self.put(DtoType::StudioLink, &format!("t/T/s/S/studiolinks/{label}"), link).await;
    }

    /// Waits until a store's label shows a design's picture and says so.
    async fn shows_design(&self, store: &str, label: &str, (name, version): (&str, &str)) {
        let png = studio_picture(name, version).to_png().unwrap();
        let file = self.dir.path().join(format!("T/{store}/{label}.png"));
        let status = format!("t/T/s/{store}/eslstatuses/{label}");
        eventually(&format!("{store}/{label} shows {name} {version}"), async || {
            let delivered = self.read(DtoType::StoreEslStatus, &status).await;
            let confirmed = records::StoreEslStatus::decode(delivered.payload)
                .is_ok_and(|status| status.state() == records::DeliveryState::Confirmed);
            confirmed && std::fs::read(&file).is_ok_and(|shown| shown == png)
        })
        .await;
    }

    fn design_refresh(design: &str, tracking_id: &str) -> TriggerDesignRefreshRequest {
        TriggerDesignRefreshRequest {
            tenant_id: "T".into(),
            design_id: design.into(),
            reason: "CHG-2: test".into(),
            tracking_id: tracking_id.into(),
            operator_subject: "ops@example".into(),
            ..TriggerDesignRefreshRequest::default()
        }
    }

    async fn dry(&self, request: TriggerDesignRefreshRequest) -> TriggerDesignRefreshResponse {
        let request = TriggerDesignRefreshRequest { dry_run: true, ..request };
        let answer = self.studio_triggers(ServiceName::OperatorGateway).trigger_design_refresh(request).await;
        answer.unwrap().into_inner()
    }

    async fn design_refreshed(&self, design: &str, tracking_id: &str) -> Operation {
        let request = Self::design_refresh(design, tracking_id);
        self.studio_triggers(ServiceName::OperatorGateway).trigger_design_refresh(request).await.unwrap();
        self.finished(tracking_id).await
    }

    async fn studio_store_rerendered(&self, tracking_id: &str) -> Operation {
        let request = TriggerStudioStoreRerenderRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            reason: "CHG-3: test".into(),
            tracking_id: tracking_id.into(),
            operator_subject: "ops@example".into(),
            ..TriggerStudioStoreRerenderRequest::default()
        };
        let mut triggers = self.studio_triggers(ServiceName::OperatorGateway);
        triggers.trigger_studio_store_rerender(request).await.unwrap();
        self.finished(tracking_id).await
    }

    async fn ecc_store_rerendered(&self, tracking_id: &str) -> Operation {
        let request = TriggerEccStoreRerenderRequest {
            tenant_id: "T".into(),
            store_id: "S".into(),
            reason: "CHG-3: test".into(),
            tracking_id: tracking_id.into(),
            operator_subject: "ops@example".into(),
            ..TriggerEccStoreRerenderRequest::default()
        };
        self.triggers(ServiceName::OperatorGateway).trigger_ecc_store_rerender(request).await.unwrap();
        self.finished(tracking_id).await
    }

    /// Bytes of the Studio pictures of a store's labels, by URN.
    async fn studio_pictures(&self, labels: &[(&str, String)]) -> BTreeMap<String, Vec<u8>> {
        let mut pictures = BTreeMap::new();
        for (store, label) in labels {
            let urn = format!("t/T/s/{store}/studioeslimages/{label}");
            pictures.insert(urn.clone(), self.read(DtoType::StudioEslImage, &urn).await.payload.to_vec());
        }
        pictures
    }
}

/// The Studio renderer, which notes every notification that it is given.
struct Noted {
    inner: Arc<dyn Service>,
    notes: Mutex<Vec<SplitItem>>,
}

impl Noted {
    fn over(inner: Arc<dyn Service>) -> Arc<Self> {
        Arc::new(Self { inner, notes: Mutex::default() })
    }

    /// What came since the last look, in no particular order of arrival.
    fn taken(&self) -> Vec<SplitItem> {
        let mut notes = std::mem::take(&mut *self.notes.lock().unwrap());
        notes.sort();
        notes
    }
}

impl Service for Noted {
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
        self.notes.lock().unwrap().push(item.clone());
        self.inner.route(item)
    }
    fn forget<'a>(&'a self, urn: &'a Urn) -> BoxFuture<'a, ()> {
        self.inner.forget(urn)
    }
    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        self.inner.compute(context, labels)
    }
}

impl World {
    /// A worker with all services whose Studio renderer notes what it is given.
    async fn work_noting(&self) -> (super::world::Running, Arc<Noted>) {
        let noted = Noted::over(self.service(STUDIO));
        let services: Vec<Arc<dyn Service>> = vec![
            self.service(ServiceName::EccImageRender),
            noted.clone(),
            self.service(ServiceName::EslImageMerger),
            self.service(ServiceName::HardwareExporter),
        ];
        (self.work_with(services).await, noted)
    }
}

/// Three stores with labels of design D, one of them with a label of design E.
const STORES: [(&str, i64); 3] = [("R", 3), ("S", 1), ("U", 5)];

async fn three_stores(world: &World) -> Vec<(&'static str, String)> {
    world.store().await;
    world.design("D", "v1").await;
    world.design("E", "e1").await;
    let mut labels = Vec::new();
    for (store, count) in STORES {
        world.studio_labels(store, "D", count).await;
        labels.extend((0..count).map(|number| (store, format!("D{number}"))));
    }
    world.studio_labels("S", "E", 1).await;
    for (store, label) in &labels {
        world.shows_design(store, label, (label, "v1")).await;
    }
    world.shows_design("S", "E0", ("E0", "e1")).await;
    world.idle().await;
    labels
}

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
        let ask = Ask { max_items: 10, wait_ms: 5_000, lease_ms: super::world::LEASE_MS, worker_id: "test" };
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
    let clock = domain::ManualClock::at(domain::Timestamp::default());
    let context = Context { platform, lease: &leased.lease, clock: &clock };
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

#[tokio::test]
async fn a_dry_run_counts_by_store_exactly_what_the_run_does() {
    let world = World::new();
    let (worker, noted) = world.work_noting().await;
    three_stores(&world).await;
    noted.taken();
    let counted = world.dry(World::design_refresh("D", "CHG-1")).await;
    let expected = STORES.map(|(store, labels)| StoreLabels { store_id: store.into(), labels });
    assert_eq!(counted.stores, expected);
    assert_eq!((counted.labels, counted.items_enqueued, counted.next_page_token.as_str()), (9, 0, ""));
    assert_eq!(counted.sample_label_ids, ["D0", "D1", "D2"], "of the first store");
    assert!(noted.taken().is_empty() && world.operation("CHG-1").await.is_none());

    let mut paged = Vec::new();
    let mut page = TriggerDesignRefreshRequest { page_size: 2, ..World::design_refresh("D", "CHG-1") };
    loop {
        let answer = world.dry(page.clone()).await;
        assert_eq!(answer.labels, 9, "the total is not the page's");
        paged.extend(answer.stores);
        if answer.next_page_token.is_empty() {
            break;
        }
        page.page_token = answer.next_page_token;
    }
    assert_eq!(paged, expected);

    let operation = world.design_refreshed("D", "CHG-1").await;
    assert_eq!(operation.items_enqueued, 1, "one parent, whatever the size");
    let queue = operation.queues.iter().find(|queue| queue.queue_name == STUDIO.as_str()).unwrap();
    assert_eq!((queue.parents_enqueued, queue.parents_done), (4, 4), "the design's and one for each store");
    let mut ran = BTreeMap::<String, i64>::new();
    for note in noted.taken().iter().filter(|note| !note.target.is_parent()) {
        *ran.entry(note.target.urn().store().unwrap().to_string()).or_default() += 1;
    }
    let counted: BTreeMap<String, i64> =
        counted.stores.into_iter().map(|store| (store.store_id, store.labels)).collect();
    assert_eq!(ran, counted);
    worker.stop().await;
}

#[tokio::test]
async fn a_designs_store_parents_carry_its_alias() {
    let world = World::new();
    let (worker, noted) = world.work_noting().await;
    three_stores(&world).await;
    noted.taken();
    world.design_refreshed("D", "CHG-1").await;
    let parents: Vec<SplitItem> = noted.taken().into_iter().filter(|note| note.target.is_parent()).collect();
    let parent = |urn: &str, alias| SplitItem {
        dto_type: DtoType::StudioLink,
        target: Target::Parent(urn.parse().unwrap()),
        alias,
    };
    let mut expected = vec![parent("t/T/designs/D", None)];
    expected.extend(STORES.map(|(store, _)| parent(&format!("t/T/s/{store}/designs/D"), Some(AliasName::ByDesign))));
    expected.sort();
    assert_eq!(parents, expected);
    worker.stop().await;
}

#[tokio::test]
async fn studio_wins_and_ecc_returns_when_it_goes() {
    let world = World::new();
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.design("D", "d1").await;
    world.item("I", "item").await;
    world.item("J", "other").await;
    world.esl("E").await;
    world.link("E", "I", "M").await;
    world.shown("E", "item m1").await;

    world.studio_link("E", "J", "D").await;
    world.shows_design("S", "E", ("other", "d1")).await;
    let image: records::EslImage = world.of_label(DtoType::EslImage, "E").await.unwrap();
    assert_eq!(image.source(), records::ImageSource::Studio);

    // What changes below goes no further than the merger.
    let status = world.version(DtoType::StoreEslStatus, "E").await;
    world.item("I", "item2").await;
    world.idle().await;
    assert_eq!(world.version(DtoType::StoreEslStatus, "E").await, status);
    world.shows_design("S", "E", ("other", "d1")).await;

    world.delete(DtoType::StudioLink, "t/T/s/S/studiolinks/E").await;
    world.shown("E", "item2 m1").await;
    assert!(world.of_label::<records::SourceEslImage>(DtoType::StudioEslImage, "E").await.is_none());
    let image: records::EslImage = world.of_label(DtoType::EslImage, "E").await.unwrap();
    assert_eq!(image.source(), records::ImageSource::Ecc);

    world.delete(DtoType::EccLink, "t/T/s/S/ecclinks/E").await;
    eventually("E is unassigned", async || {
        world.status("E").await.is_some_and(|status| status.state() == records::DeliveryState::Unassigned)
    })
    .await;
    assert!(world.of_label::<records::EslImage>(DtoType::EslImage, "E").await.is_none());
    assert!(world.shows("E", "item2 m1"), "e-paper keeps what it shows");
    worker.stop().await;
}

#[tokio::test]
async fn without_its_design_a_label_shows_its_model_again() {
    let world = World::new();
    let worker = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.design("D", "d1").await;
    world.item("I", "item").await;
    world.esl("E").await;
    world.esl("F").await;
    world.link("E", "I", "M").await;
    world.studio_link("E", "I", "D").await;
    world.studio_link("F", "I", "D").await;
    world.shows_design("S", "E", ("item", "d1")).await;
    world.shows_design("S", "F", ("item", "d1")).await;
    // A delete fans out like a write.
    world.delete(DtoType::Design, "t/T/designs/D").await;
    world.shown("E", "item m1").await;
    eventually("F is unassigned", async || {
        world.status("F").await.is_some_and(|status| status.state() == records::DeliveryState::Unassigned)
    })
    .await;
    world.design("D", "d2").await;
    world.shows_design("S", "E", ("item", "d2")).await;
    world.shows_design("S", "F", ("item", "d2")).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_design_that_cannot_be_read_fails_its_labels_and_keeps_their_pictures() {
    let world = World::new();
    let worker = world.work().await;
    three_stores(&world).await;
    let hostile = records::Design { svg: "<svg".into(), mappings: "{}".into(), name: String::new() };
    world.put(DtoType::Design, "t/T/designs/D", hostile).await;
    world.idle().await;
    let operation = world.design_refreshed("D", "CHG-1").await;
    assert_eq!(operation.state(), OperationState::FinishedWithFailures);
    assert_eq!(counts(&operation, STUDIO), (9, 0, 0, 9));
    assert!(operation.failures[0].cause.starts_with("design t/T/designs/D: "), "{:?}", operation.failures);
    world.shows_design("R", "D0", ("D0", "v1")).await;
    assert_eq!(world.design_refreshed("E", "CHG-2").await.state(), OperationState::Succeeded, "neighbours go on");
    worker.stop().await;
}

/// The renderer of another build: one pixel of the items whose name begins with B comes out otherwise.
fn spotted(picture: Result<Picture, RenderError>, input: &EccInput<'_>) -> Result<Picture, RenderError> {
    let picture = picture?;
    if !input.item.get("name").is_some_and(|name| name.starts_with('B')) {
        return Ok(picture);
    }
    let mut indices = picture.indices().to_vec();
    indices[0] = 1 - indices[0];
    Ok(Picture::new(picture.width(), picture.height(), picture.palette(), indices).unwrap())
}

#[tokio::test]
async fn another_build_replaces_exactly_the_pictures_that_differ() {
    let mut world = World::new();
    let old = world.work().await;
    world.store().await;
    world.model("M", "m1").await;
    world.model("N", "n1").await;
    world.design("D", "d1").await;
    // A0, B0 on M, A1, B1 on N, all four on D too where the id ends in S.
    for (label, name, model) in [("A0", "A", "M"), ("B0", "B", "M"), ("A1", "A", "N"), ("B1", "B", "N")] {
        world.item(label, name).await;
        world.esl(label).await;
        world.link(label, label, model).await;
        let studio = format!("{label}S");
        world.esl(&studio).await;
        world.studio_link(&studio, label, "D").await;
    }
    world.idle().await;
    old.stop().await;
    let before = world.all_pictures().await;

    world.engine.ecc = |model, input| spotted(render::render(model, input), input);
    world.engine.studio = |design, input| spotted(render::studio_render(design, input), input);
    let new = world.work().await;
    let refreshed = world.refreshed("M", "CHG-1").await;
    let whole = world.ecc_store_rerendered("CHG-2").await;
    let studio = world.studio_store_rerendered("CHG-3").await;
    let again = world.studio_store_rerendered("CHG-4").await;
    let ecc = ServiceName::EccImageRender;
    // Of M's two, one differs; of all four then only N's one is left to replace; of D's four, two.
    assert_eq!((counts(&refreshed, ecc), counts(&whole, ecc)), ((2, 2, 1, 0), (4, 4, 3, 0)));
    assert_eq!((counts(&studio, STUDIO), counts(&again, STUDIO)), ((4, 4, 2, 0), (4, 4, 4, 0)));
    for (operation, further) in [(&refreshed, 1), (&whole, 1), (&studio, 2), (&again, 0)] {
        for service in [ServiceName::EslImageMerger, ServiceName::HardwareExporter] {
            assert_eq!(counts(operation, service), (further, further, 0, 0), "{service}: only what differs goes on");
        }
    }
    for (urn, (version, payload)) in world.all_pictures().await {
        let (old_version, old_payload) = &before[&urn];
        let differs = urn.rsplit('/').next().unwrap().starts_with('B');
        assert_eq!((version > *old_version, payload != *old_payload), (differs, differs), "{urn}");
    }
    new.stop().await;
}

impl World {
    /// Version and bytes of both sources' pictures of the labels of [`another_build_replaces_exactly_the_pictures_that_differ`].
    async fn all_pictures(&self) -> BTreeMap<String, (i64, Vec<u8>)> {
        let mut all = BTreeMap::new();
        for label in ["A0", "B0", "A1", "B1"] {
            for (dto_type, label) in
                [(DtoType::EccEslImage, label.to_owned()), (DtoType::StudioEslImage, format!("{label}S"))]
            {
                let urn = format!("t/T/s/S/{}/{label}", dto_type.collection());
                let dto = self.read(dto_type, &urn).await;
                assert!(dto.exists, "{urn}");
                all.insert(urn, (dto.version, dto.payload.to_vec()));
            }
        }
        all
    }
}

#[tokio::test]
async fn the_new_triggers_refuse_as_the_first_does() {
    let world = World::new();
    let worker = world.work().await;
    three_stores(&world).await;
    let mut studio = world.studio_triggers(ServiceName::OperatorGateway);
    studio.trigger_design_refresh(World::design_refresh("E", "taken")).await.unwrap();
    world.finished("taken").await;
    let replayed = studio.trigger_design_refresh(World::design_refresh("E", "taken")).await.unwrap().into_inner();
    assert!(replayed.replayed);
    for (request, code, field) in [
        (World::design_refresh("absent", "r-1"), Code::NotFound, "design_id"),
        (World::design_refresh("a/b", "r-2"), Code::InvalidArgument, "design_id"),
        (World::design_refresh("D", "taken"), Code::AlreadyExists, "design_id"),
        (
            TriggerDesignRefreshRequest {
                dry_run: true,
                page_token: "a/b".into(),
                ..World::design_refresh("D", "r-3")
            },
            Code::InvalidArgument,
            "page_token",
        ),
    ] {
        let status = studio.trigger_design_refresh(request).await.unwrap_err();
        assert_eq!((status.code(), refusal_from_status(&status).field.as_str()), (code, field));
    }
    let store = |store_id: &str, tracking_id: &str| TriggerStudioStoreRerenderRequest {
        tenant_id: "T".into(),
        store_id: store_id.into(),
        reason: "r".into(),
        tracking_id: tracking_id.into(),
        operator_subject: "ops@example".into(),
        ..TriggerStudioStoreRerenderRequest::default()
    };
    let unknown = studio.trigger_studio_store_rerender(store("nowhere", "r-4")).await.unwrap_err();
    assert_eq!((unknown.code(), refusal_from_status(&unknown).field.as_str()), (Code::NotFound, "store_id"));
    let taken = studio.trigger_studio_store_rerender(store("S", "taken")).await.unwrap_err();
    assert_eq!((taken.code(), refusal_from_status(&taken).field.as_str()), (Code::AlreadyExists, "tracking_id"));
    for service in [STUDIO, ServiceName::EccImageRender, ServiceName::RecordImport] {
        let status =
            world.studio_triggers(service).trigger_design_refresh(World::design_refresh("D", "r-5")).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{service}");
    }
    for id in ["r-1", "r-2", "r-3", "r-4", "r-5"] {
        assert!(world.operation(id).await.is_none(), "{id}");
        assert!(!world.audit(id).await.is_empty(), "{id}");
    }
    worker.stop().await;
}
