//! The three ECC models of the demo tenant, which item gets which, and version 2 of one of them.

use std::collections::BTreeMap;

/// An ECC model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    /// Id of its records.
    pub(super) id: &'static str,
    /// For people.
    pub(super) name: &'static str,
    /// The layout, for every panel size.
    pub(super) layout: &'static str,
}

/// The model of most labels; the one that gets a version 2.
pub(super) const STANDARD: &str = "standard";
/// Items on promotion.
pub(super) const PROMO: &str = "promo";
/// Fruit and vegetables: with origin and class.
pub(super) const FRESH: &str = "fresh";

/// The standard model as first loaded.
pub(super) const STANDARD_MODEL: Model =
    Model { id: STANDARD, name: "Shelf price", layout: include_str!("../../../render/demo/standard.json") };

/// All models; every shop has its own records of them.
pub(super) const MODELS: &[Model] = &[
    STANDARD_MODEL,
    Model { id: PROMO, name: "Promotion", layout: include_str!("../../../render/demo/promo.json") },
    Model { id: FRESH, name: "Fruit and vegetables", layout: include_str!("../../../render/demo/fresh.json") },
];

/// Version 2 of the standard model: the name stands white on a band, red where the panel can, black elsewhere.
pub(super) const STANDARD_VERSION_2: &str = include_str!("standard-2.json");

/// The id of the model for an item with these values.
pub(super) fn model_for(values: &BTreeMap<String, String>) -> &'static str {
    if values.contains_key("promo_text") {
        PROMO
    } else if values.contains_key("class") {
        FRESH
    } else {
        STANDARD
    }
}
