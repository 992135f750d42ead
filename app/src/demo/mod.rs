//! The demo tenant: three shops with 400 labels each, several panel types, three ECC models, two Studio designs and a
//! catalogue in four scripts. Made by code from fixed lists, without clock or randomness: every start writes the same records.
//!
//! Deliberately not here: when it is loaded (`dev`), and how records are written (`records`).

mod catalogue;
mod designs;
mod gtin;
pub(crate) mod hardware;
mod items;
mod models;
mod panels;
pub(crate) mod shops;

use std::collections::BTreeMap;

use designs::Beside;
use domain::{DtoType, IdError, TenantId, Urn, UrnError};
use prost::Message;
use proto::records::v1::{AccessPoint, Design, EccLink, EccModel, EslType, StoreItemValues, StudioLink};

use crate::records::Record;

/// Labels of each shop.
pub const LABELS_PER_STORE: u32 = 400;
/// Items of each shop; the labels beyond them show an item that has a smaller label too.
pub(crate) const ITEMS_PER_STORE: u32 = 360;
/// Folder driver of the exporter: every demo shop has one access point of it.
const DRIVER: &str = "folder";
/// The access point of each shop.
const ACCESS_POINT: &str = "ap-1";

/// Why the demo tenant could not be put together: a fault of its lists, not of anyone's input.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A tenant, store or record id of the lists is not one.
    #[error("demo data: id {0}")]
    Id(#[from] IdError),
    /// A URN made from them is not one.
    #[error("demo data: URN {0}")]
    Urn(#[from] UrnError),
}

/// The tenant's id.
pub fn tenant() -> Result<TenantId, DemoError> {
    Ok(TENANT.parse()?)
}

/// The tenant's id, as text.
pub const TENANT: &str = "demo";

/// The model whose version 2 is written after everything is rendered: of the first shop.
#[derive(Debug, Clone, Copy)]
pub struct RefreshedModel {
    /// Store.
    pub store: &'static str,
    /// Model.
    pub model: &'static str,
    /// Labels linked to it.
    pub labels: u32,
}

/// Which model gets its version 2.
pub fn refreshed_model() -> RefreshedModel {
    let labels = shops::SHOPS.first().map_or(0, |shop| {
        let models = models_of_items(shop);
        (0..LABELS_PER_STORE).filter(|index| model_of(&models, *index) == models::STANDARD).count()
    });
    RefreshedModel {
        store: shops::SHOPS.first().map_or("", |shop| shop.id),
        model: models::STANDARD,
        labels: u32::try_from(labels).unwrap_or(u32::MAX),
    }
}

/// The model for each item of a shop, in their order.
fn models_of_items(shop: &'static shops::Shop) -> Vec<&'static str> {
    items::items(shop).map(|item| models::model_for(&item.values)).collect()
}

/// The model of the label `index`: that of the item it shows.
fn model_of(models: &[&'static str], index: u32) -> &'static str {
    models.get((index % ITEMS_PER_STORE) as usize).copied().unwrap_or(models::STANDARD)
}

/// Every store of the tenant.
pub fn stores() -> impl Iterator<Item = &'static str> {
    shops::SHOPS.iter().map(|shop| shop.id)
}

/// Labels of the whole tenant.
pub fn labels() -> u32 {
    u32::try_from(shops::SHOPS.len()).unwrap_or(u32::MAX).saturating_mul(LABELS_PER_STORE)
}

/// The refreshed model's record as first loaded.
pub fn model_version_1() -> Result<Record, DemoError> {
    model_record(refreshed_model().store, &models::STANDARD_MODEL, models::STANDARD_MODEL.layout)
}

/// The refreshed model's record at version 2, visibly different.
pub fn model_version_2() -> Result<Record, DemoError> {
    model_record(refreshed_model().store, &models::STANDARD_MODEL, models::STANDARD_VERSION_2)
}

/// All records of the tenant, inputs before what names them, so that a label is complete when its link arrives.
pub fn records() -> Result<Vec<Record>, DemoError> {
    let mut records = Vec::new();
    for panel in panels::PANELS {
        records.push(record(DtoType::EslType, &format!("t/{TENANT}/esltypes/{}", panel.id), &EslType::from(panel))?);
    }
    for design in designs::DESIGNS {
        records.push(record(DtoType::Design, &format!("t/{TENANT}/designs/{}", design.id), &Design::from(design))?);
    }
    for shop in shops::SHOPS {
        store_records(shop, &mut records)?;
    }
    Ok(records)
}

fn store_records(shop: &'static shops::Shop, records: &mut Vec<Record>) -> Result<(), DemoError> {
    let store = format!("t/{TENANT}/s/{}", shop.id);
    for model in models::MODELS {
        records.push(model_record(shop.id, model, model.layout)?);
    }
    let access_point = AccessPoint { driver: DRIVER.to_owned(), address: String::new() };
    records.push(record(DtoType::AccessPoint, &format!("{store}/accesspoints/{ACCESS_POINT}"), &access_point)?);
    for item in items::items(shop) {
        let values = StoreItemValues { values: item.values };
        records.push(record(DtoType::StoreItemValues, &format!("{store}/items/{}", item.id), &values)?);
    }
    let labels = hardware::labels;
    for label in labels() {
        records.push(hardware::esl(shop, label, ACCESS_POINT)?);
    }
    let item_models = models_of_items(shop);
    let studio = designs::links(&item_models);
    for (index, _) in labels() {
        let (item_id, label) = (format!("art-{:05}", index % ITEMS_PER_STORE + 1), label_id(index));
        let linked = studio.get(&index);
        if let Some(studio) = linked {
            let link = StudioLink { item_id: item_id.clone(), design_id: studio.design.to_owned() };
            records.push(record(DtoType::StudioLink, &format!("{store}/studiolinks/{label}"), &link)?);
        }
        if linked.is_none_or(|studio| studio.beside == Beside::Ecc) {
            let link = EccLink {
                item_id,
                model_id: model_of(&item_models, index).to_owned(),
                parameters: BTreeMap::from([("facings".to_owned(), (index % 4 + 1).to_string())]),
            };
            records.push(record(DtoType::EccLink, &format!("{store}/ecclinks/{label}"), &link)?);
        }
    }
    Ok(())
}

fn label_id(index: u32) -> String {
    format!("L{:04}", index + 1)
}

fn model_record(store: &str, model: &models::Model, layout: &str) -> Result<Record, DemoError> {
    let dto = EccModel { layout: layout.to_owned(), name: model.name.to_owned() };
    record(DtoType::EccModel, &format!("t/{TENANT}/s/{store}/eccmodels/{}", model.id), &dto)
}

fn record(dto_type: DtoType, urn: &str, message: &impl Message) -> Result<Record, DemoError> {
    Ok(Record { dto_type, urn: Urn::record(dto_type, urn)?, payload: message.encode_to_vec().into() })
}

#[cfg(test)]
mod tests;
