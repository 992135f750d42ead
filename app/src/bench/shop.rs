//! Stores to measure with: everything a label's picture is made of, from the demo tenant's lists.

use anyhow::Context as _;
use domain::DtoType;
use prost::Message as _;
use proto::records::v1::{AccessPoint, Design, EslType, Palette, StoreEsl, StoreItemValues};

use super::{
    TENANT,
    load::{Loader, item_id},
};
use crate::demo;

/// Items of a store, shown by labels in turn.
pub(super) const ITEMS: u32 = 360;

/// What the demo tenant lends: the items and the ECC model of its first shop, and a design.
pub(super) struct Shop {
    pub(super) items: Vec<StoreItemValues>,
    pub(super) model: Vec<u8>,
    pub(super) design: Vec<u8>,
    pub(super) layout: String,
}

impl Shop {
    pub(super) fn of_demo() -> anyhow::Result<Self> {
        let records = demo::records()?;
        let design = records.iter().find(|record| record.dto_type == DtoType::Design);
        let design = design.context("the demo tenant has no design")?.payload.to_vec();
        let items = records
            .into_iter()
            .filter(|record| record.dto_type == DtoType::StoreItemValues)
            .take(ITEMS as usize)
            .map(|record| Ok(StoreItemValues::decode(record.payload)?))
            .collect::<anyhow::Result<_>>()?;
        let model = demo::model_version_1()?.payload;
        let layout = proto::records::v1::EccModel::decode(model.clone())?.layout;
        Ok(Self { items, model: model.to_vec(), design, layout })
    }

    /// The design's document and its mappings.
    pub(super) fn design_parts(&self) -> anyhow::Result<(String, String)> {
        let Design { svg, mappings, .. } = Design::decode(self.design.as_slice())?;
        Ok((svg, mappings))
    }

    pub(super) fn item(&self, index: u32) -> anyhow::Result<&StoreItemValues> {
        self.items.get(index as usize % self.items.len().max(1)).context("the demo tenant has no items")
    }
}

/// A store's access point, models and items.
pub(super) async fn store_records(
    loader: &mut Loader,
    (store, models): (&str, &[&str]),
    shop: &Shop,
) -> anyhow::Result<()> {
    let access_point = AccessPoint { driver: "folder".to_owned(), address: String::new() };
    loader.put(DtoType::AccessPoint, format!("{store}/accesspoints/ap-1"), &access_point).await?;
    for model in models {
        loader.put_bytes(DtoType::EccModel, format!("{store}/eccmodels/{model}"), shop.model.clone()).await?;
    }
    for index in 0..ITEMS {
        loader.put(DtoType::StoreItemValues, format!("{store}/items/{}", item_id(index)), shop.item(index)?).await?;
    }
    Ok(())
}

/// The one type of every label: 296 × 128, white, black and red.
pub(super) async fn esl_type(loader: &mut Loader) -> anyhow::Result<()> {
    let esl_type =
        EslType { width: 296, height: 128, palette: Palette::Bwr.into(), rotation: 0, name: "2.9 inch".to_owned() };
    loader.put(DtoType::EslType, format!("t/{TENANT}/esltypes/X"), &esl_type).await
}

/// A label's hardware.
pub(super) async fn esl(loader: &mut Loader, (store, id): (&str, &str), label: u32) -> anyhow::Result<()> {
    let esl = StoreEsl {
        esltype_id: "X".to_owned(),
        accesspoint_id: "ap-1".to_owned(),
        hardware_address: format!("02:00:00:{:02X}:{:02X}:{:02X}", label >> 16, (label >> 8) & 255, label & 255),
    };
    loader.put(DtoType::StoreEsl, format!("{store}/esls/{id}"), &esl).await
}
