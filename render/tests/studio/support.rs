//! Short ways to a label.

use std::collections::BTreeMap;

use picture::{Ink, Palette, Picture, Rotation};
use render::{Panel, RenderError, StudioDesign, StudioInput, studio_render};
use serde_json::{Value, json};

pub(crate) const POSTER_400: [&str; 2] =
    [include_str!("../../demo/poster-400x300.svg"), include_str!("../../demo/poster-400x300.json")];
pub(crate) const POSTER_296: [&str; 2] =
    [include_str!("../../demo/poster-296x128.svg"), include_str!("../../demo/poster-296x128.json")];
pub(crate) const BIO_296: [&str; 2] =
    [include_str!("../../demo/bio-296x128.svg"), include_str!("../../demo/bio-296x128.json")];
pub(crate) const BIO_400: [&str; 2] =
    [include_str!("../../demo/bio-400x300.svg"), include_str!("../../demo/bio-400x300.json")];

pub(crate) fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn panel(width: u32, height: u32, palette: Palette) -> Panel {
    Panel { width, height, palette, rotation: Rotation::Deg0 }
}

/// An SVG document of a size.
pub(crate) fn svg(width: u32, height: u32, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"{width}\" height=\"{height}\">{body}</svg>"
    )
}

/// Mappings of some elements.
pub(crate) fn mappings(elements: &Value) -> String {
    json!({ "studio": 1, "name": "test", "elements": elements }).to_string()
}

pub(crate) fn render(design: &StudioDesign, panel: Panel, item: &[(&str, &str)]) -> Result<Picture, RenderError> {
    studio_render(design, &StudioInput { panel, item: &values(item), parameters: &BTreeMap::new() })
}

/// A 296 × 128 design.
pub(crate) fn draw(
    body: &str,
    elements: &Value,
    palette: Palette,
    item: &[(&str, &str)],
) -> Result<Picture, RenderError> {
    let design = StudioDesign::parse(&svg(296, 128, body), &mappings(elements)).unwrap_or_else(|e| panic!("{e}"));
    render(&design, panel(296, 128, palette), item)
}

/// Why a 296 × 128 design is refused.
pub(crate) fn refused(body: &str, elements: &Value) -> String {
    match StudioDesign::parse(&svg(296, 128, body), &mappings(elements)) {
        Ok(_) => panic!("accepted: {body} {elements}"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn count(picture: &Picture, ink: Ink) -> usize {
    let index = picture.palette().index_of(ink);
    picture.indices().iter().filter(|have| Some(**have) == index).count()
}
