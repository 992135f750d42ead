//! Studio: two stages, design writes and triggers, the merger's rules, another build of the renderer.

mod builds;
mod fan_out;
mod merging;
mod triggers;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use domain::{DtoType, ParentShape, ServiceName, SplitItem, Urn};
use futures::future::BoxFuture;
use picture::Picture;
use prost::Message as _;
use proto::{cqs::v1::Operation, records::v1 as records, studio_renderer::v1::TriggerDesignRefreshRequest};
use render::{EccInput, StudioDesign};

use super::world::{Running, World, eventually};
use crate::runtime::{CallError, Context, Label, Route, Service, Verdict};

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

    async fn design_refreshed(&self, design: &str, tracking_id: &str) -> Operation {
        let request = Self::design_refresh(design, tracking_id);
        self.studio_triggers(ServiceName::OperatorGateway).trigger_design_refresh(request).await.unwrap();
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
    async fn work_noting(&self) -> (Running, Arc<Noted>) {
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
