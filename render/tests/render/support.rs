//! Short ways to a label.

use std::collections::BTreeMap;

use picture::{Ink, Palette, Picture, Rotation};
use render::{EccInput, EccModel, Panel, RenderError, render};
use serde_json::{Value, json};

pub(crate) const STANDARD: &str = include_str!("../../demo/standard.json");
pub(crate) const PROMO: &str = include_str!("../../demo/promo.json");
pub(crate) const FRESH: &str = include_str!("../../demo/fresh.json");

pub(crate) fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn panel(width: u32, height: u32, palette: Palette) -> Panel {
    Panel { width, height, palette, rotation: Rotation::Deg0 }
}

/// A model of one variant.
pub(crate) fn layout(width: u32, height: u32, elements: &[Value]) -> String {
    json!({ "ecc": 1, "name": "test", "variants": [{ "width": width, "height": height, "elements": elements }] })
        .to_string()
}

pub(crate) fn draw(model: &str, panel: Panel, item: &[(&str, &str)]) -> Result<Picture, RenderError> {
    let model = EccModel::parse(model).unwrap();
    render(&model, &EccInput { panel, item: &values(item), parameters: &BTreeMap::new() })
}

/// One element alone on a 296 × 128 panel.
pub(crate) fn draw_one(element: &Value, palette: Palette, item: &[(&str, &str)]) -> Result<Picture, RenderError> {
    draw(&layout(296, 128, std::slice::from_ref(element)), panel(296, 128, palette), item)
}

/// Bounds (left, top, right, bottom; exclusive) of all pixels of an ink.
pub(crate) fn bounds(picture: &Picture, ink: Ink) -> Option<(u32, u32, u32, u32)> {
    let index = picture.palette().index_of(ink)?;
    let points = || (0..picture.height()).flat_map(|y| (0..picture.width()).map(move |x| (x, y)));
    points()
        .filter(|(x, y)| picture.at(*x, *y) == Some(index))
        .map(|(x, y)| (x, y, x + 1, y + 1))
        .reduce(|a, b| (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)))
}

pub(crate) fn count(picture: &Picture, ink: Ink) -> usize {
    let index = picture.palette().index_of(ink);
    picture.indices().iter().filter(|have| Some(**have) == index).count()
}
