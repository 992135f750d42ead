//! What labels are drawn from: ECC layouts and Studio designs. What is accepted is drawn as well, whole or not at all.

use std::collections::BTreeMap;

use picture::{Palette, Picture, Rotation};
use render::{EccInput, EccModel, Panel, RenderError, StudioDesign, render, studio_render};

use super::{Target, seeds, text};
use crate::data::layout;

/// Largest panel drawn, in pixels: larger ones only take longer.
const PIXELS_MAX: u32 = 480_000;

/// The values the demo's models read.
fn item() -> BTreeMap<String, String> {
    let values = [
        ("name", "Bio Vollmilch 3,8 %"),
        ("price", "1.29"),
        ("old_price", "1.49"),
        ("unit_price", "1.29"),
        ("currency", "EUR"),
        ("locale", "de-DE"),
        ("unit", "l"),
        ("gtin", "2001234567893"),
        ("url", "https://example.com/p/1"),
    ];
    values.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Draws on a panel of that size; a picture has it.
fn drawn((width, height): (u32, u32), draw: impl Fn(&EccInput<'_>) -> Result<Picture, RenderError>) {
    if width.saturating_mul(height) > PIXELS_MAX {
        return;
    }
    let panel = Panel { width, height, palette: Palette::Bwry, rotation: Rotation::Deg0 };
    if let Ok(picture) = draw(&EccInput { panel, item: &item(), parameters: &BTreeMap::new() }) {
        assert_eq!((picture.width(), picture.height()), (width, height));
    }
}

pub(super) fn layouts() -> Target {
    let mut seeds: Vec<Vec<u8>> = seeds::files("render/demo", "json").into_iter().map(|(_, bytes)| bytes).collect();
    seeds.extend(seeds::blocks("docs/ecc-layout.md", "json").into_iter().map(String::into_bytes));
    seeds.push(layout("fuzz", 1).into_bytes());
    assert!(seeds.iter().filter(|seed| EccModel::parse(&text(seed)).is_ok()).count() >= 4, "most seeds are layouts");
    Target::new(seeds, |bytes| {
        if let Ok(model) = EccModel::parse(&text(bytes)) {
            model.sizes().for_each(|size| drawn(size, |input| render(&model, input)));
        }
    })
}

/// The input is an SVG document, a zero byte, and mappings.
pub(super) fn designs() -> Target {
    let mappings: BTreeMap<String, Vec<u8>> = seeds::files("render/demo", "json").into_iter().collect();
    let none = br#"{"studio":1,"name":"fuzz","elements":{}}"#.to_vec();
    let svgs = seeds::files("render/demo", "svg").into_iter().chain(seeds::files("render/tests/hostile", "svg"));
    let seeds: Vec<Vec<u8>> =
        svgs.map(|(name, svg)| [&svg, &b"\0"[..], mappings.get(&name).unwrap_or(&none)].concat()).collect();
    let parsed = move |bytes: &[u8]| {
        let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        StudioDesign::parse(&text(&bytes[..at]), &text(bytes.get(at + 1..).unwrap_or(&none)))
    };
    assert!(seeds.iter().filter(|seed| parsed(seed).is_ok()).count() >= 4, "the demo's designs are read");
    Target::new(seeds, move |bytes| {
        if let Ok(design) = parsed(bytes) {
            drawn(design.size(), |input| studio_render(&design, input));
        }
    })
}
