//! Records of a small retailer, written through DTOflow as the import service writes them.

use std::collections::BTreeMap;

use domain::{DtoType, RecordId, ServiceName, StoreId, TenantId, Urn};
use proto::{
    dtoflow::v1::{PutItem, PutManyRequest, WriteStatus},
    records::v1 as records,
};
use serde_json::json;

use crate::grpc::Doors;

/// The panel every label of a [`Shelf`] has.
const PANEL: (u32, u32) = (296, 128);
/// Records of one call, below DTOflow's bound.
const BATCH: usize = 1_000;

/// One store of one tenant with one access point, as many models as asked for, and labels hanging on them.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// The tenant.
    pub tenant: TenantId,
    /// The store.
    pub store: StoreId,
    /// Label ids by model id.
    pub labels: BTreeMap<String, Vec<String>>,
}

/// A layout of the test's panel that names its own version, so that two versions never give the same picture.
pub fn layout(name: &str, version: u32) -> String {
    let (width, height) = PANEL;
    json!({
        "ecc": 1,
        "name": name,
        "variants": [{
            "width": width,
            "height": height,
            "elements": [
                {"kind": "text", "id": "name", "box": [6, 4, 284, 34], "text": "{item.name}",
                 "size": 26, "size_min": 10, "lines_max": 1, "overflow": "ellipsis"},
                {"kind": "price", "id": "price", "box": [150, 44, 140, 56], "value": "{item.price}",
                 "size": 48, "size_min": 12, "align": "right"},
                {"kind": "text", "id": "layout", "box": [6, 104, 140, 20],
                 "text": format!("{name} layout {version}"), "size": 14},
            ],
        }],
    })
    .to_string()
}

/// A design of the test's panel that names its own version, as [`layout`] does: SVG and mappings.
pub fn design(name: &str, version: u32) -> (String, String) {
    let (width, height) = PANEL;
    let svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="DejaVu Sans Condensed">
  <rect x="0" y="0" width="{width}" height="6" fill="#000000"/>
  <text id="name" x="6" y="34" font-size="22">name</text>
  <text id="price" x="290" y="90" font-size="40" text-anchor="end">0,00</text>
  <text x="6" y="122" font-size="14">{name} design {version}</text>
</svg>"##
    );
    let mappings = json!({
        "studio": 1,
        "name": name,
        "elements": {
            "name": {"format": "text", "value": "{item.name}", "box": [6, 12, 284, 30], "size_min": 10,
                     "overflow": "ellipsis"},
            "price": {"format": "price", "value": "{item.price}", "box": [150, 50, 140, 50], "size_min": 12},
        },
    });
    (svg, mappings.to_string())
}

impl Shelf {
    /// Writes `store-1` of a tenant with so many labels on each of `models`, and waits for nothing.
    pub async fn write(doors: &Doors, tenant: &str, models: &[(&str, usize)]) -> Self {
        Self::write_store(doors, tenant, "store-1", models).await
    }

    /// As [`Self::write`], in a store of that name.
    pub async fn write_store(doors: &Doors, tenant: &str, store: &str, models: &[(&str, usize)]) -> Self {
        let mut shelf = Self {
            tenant: tenant.parse().expect("a tenant id"),
            store: store.parse().expect("a store id"),
            labels: BTreeMap::new(),
        };
        let mut puts = vec![
            shelf.esltype("panel"),
            shelf.put(
                DtoType::AccessPoint,
                "ap-1",
                &records::AccessPoint { driver: "folder".to_owned(), address: String::new() },
            ),
        ];
        for (model, count) in models {
            puts.push(shelf.model(model, layout(model, 1)));
            let ids: Vec<String> = (0..*count).map(|number| format!("{model}-{number:04}")).collect();
            for id in &ids {
                puts.extend([shelf.item(id, "1.99"), shelf.esl(id), shelf.link(id, model, 1)]);
            }
            shelf.labels.insert((*model).to_owned(), ids);
        }
        shelf.import(doors, puts).await;
        shelf
    }

    /// Writes a store with so many labels on each of `designs` of the tenant, and waits for nothing. The designs are
    /// not written.
    pub async fn write_studio_store(doors: &Doors, tenant: &str, store: &str, designs: &[(&str, usize)]) -> Self {
        let mut shelf = Self::write_store(doors, tenant, store, &[]).await;
        let mut puts = Vec::new();
        for (design, count) in designs {
            let ids: Vec<String> = (0..*count).map(|number| format!("{design}-{number:04}")).collect();
            for id in &ids {
                puts.extend([shelf.item(id, "1.99"), shelf.esl(id), shelf.studio_link(id, design)]);
            }
            shelf.labels.insert((*design).to_owned(), ids);
        }
        shelf.import(doors, puts).await;
        shelf
    }

    /// A write of a design of the tenant.
    pub fn design(&self, id: &str, version: u32) -> PutItem {
        let (svg, mappings) = design(id, version);
        self.put(DtoType::Design, id, &records::Design { svg, mappings, name: format!("Design {id}") })
    }

    /// A write of a label's Studio link; its item is the label's own.
    pub fn studio_link(&self, id: &str, design: &str) -> PutItem {
        let record = records::StudioLink { item_id: id.to_owned(), design_id: design.to_owned() };
        self.put(DtoType::StudioLink, id, &record)
    }

    /// Writes records as the import service and gives the new versions.
    pub async fn import(&self, doors: &Doors, puts: Vec<PutItem>) -> Vec<(WriteStatus, i64)> {
        let mut client = doors.dtoflow(ServiceName::RecordImport);
        let mut results = Vec::with_capacity(puts.len());
        for batch in puts.chunks(BATCH) {
            let request = PutManyRequest { items: batch.to_vec(), lease: None };
            let answer = client.put_many(request).await.unwrap_or_else(|status| panic!("PutMany: {status}"));
            results.extend(answer.into_inner().results.iter().map(|result| (result.status(), result.version)));
        }
        results
    }

    /// How many labels hang on all models.
    pub fn label_count(&self) -> usize {
        self.labels.values().map(Vec::len).sum()
    }

    /// The URN of a record of this store (or tenant).
    pub fn urn(&self, dto_type: DtoType, id: &str) -> String {
        let id: RecordId = id.parse().expect("a record id");
        match dto_type.scope() {
            domain::RecordScope::Store => Urn::in_store(&self.tenant, &self.store, dto_type, &id),
            domain::RecordScope::Tenant => Urn::in_tenant(&self.tenant, dto_type, &id),
        }
        .to_string()
    }

    /// The parent under which a model's links are found.
    pub fn model_parent(&self, model: &str) -> String {
        self.urn(DtoType::EccModel, model)
    }

    /// A write of `record`.
    pub fn put(&self, dto_type: DtoType, id: &str, record: &impl prost::Message) -> PutItem {
        PutItem {
            dto_type: dto_type.to_string(),
            dto_id: self.urn(dto_type, id),
            payload: record.encode_to_vec().into(),
            ..PutItem::default()
        }
    }

    /// A write of the panel type.
    fn esltype(&self, id: &str) -> PutItem {
        let (width, height) = PANEL;
        let record = records::EslType {
            width,
            height,
            palette: records::Palette::Bwr.into(),
            rotation: 0,
            name: "2.9 inch".to_owned(),
        };
        self.put(DtoType::EslType, id, &record)
    }

    /// A write of a model.
    pub fn model(&self, id: &str, layout: String) -> PutItem {
        self.put(DtoType::EccModel, id, &records::EccModel { layout, name: format!("Model {id}") })
    }

    /// A write of an item's values.
    pub fn item(&self, id: &str, price: &str) -> PutItem {
        let values = [
            ("name", format!("Äpfel {id}")),
            ("price", price.to_owned()),
            ("currency", "EUR".to_owned()),
            ("locale", "de-DE".to_owned()),
        ];
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.put(DtoType::StoreItemValues, id, &records::StoreItemValues { values })
    }

    /// A write of a label's hardware.
    pub fn esl(&self, id: &str) -> PutItem {
        let record = records::StoreEsl {
            esltype_id: "panel".to_owned(),
            accesspoint_id: "ap-1".to_owned(),
            hardware_address: format!("hw-{id}"),
        };
        self.put(DtoType::StoreEsl, id, &record)
    }

    /// A write of a label's link. `facings` is a parameter no layout of ours shows: changing it changes the link only.
    pub fn link(&self, id: &str, model: &str, facings: u32) -> PutItem {
        let record = records::EccLink {
            item_id: id.to_owned(),
            model_id: model.to_owned(),
            parameters: [("facings".to_owned(), facings.to_string())].into(),
        };
        self.put(DtoType::EccLink, id, &record)
    }
}
