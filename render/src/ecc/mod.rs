//! The ECC layout engine: a declarative JSON layout, item values and link parameters in; a picture out.
//!
//! Reading order: `model` (the document), `value` (texts with placeholders, inks), `check` (its limits), `condition`,
//! `locale` and `price` (how a price reads), `draw` (each kind of element). The format is documented in
//! `docs/ecc-layout.md`.

pub(crate) mod check;
pub(crate) mod condition;
pub(crate) mod draw;
pub(crate) mod locale;
pub(crate) mod model;
pub(crate) mod price;
pub(crate) mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use picture::{Palette, Picture, Rotation};

use crate::canvas::Canvas;
use crate::error::{Cause, RenderError};
use crate::text;
pub use check::{DOCUMENT_BYTES_MAX, ELEMENTS_MAX, PICTURE_PIXELS_MAX, VARIANTS_MAX};
use draw::Sketch;
use model::Document;
use value::{Values, index};

/// The panel a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Pixels of the panel itself; the picture has exactly this size.
    pub width: u32,
    /// Pixels of the panel itself.
    pub height: u32,
    /// Its inks.
    pub palette: Palette,
    /// How the layout is turned onto it, clockwise. For quarter turns the layout is `height` wide and `width` high.
    pub rotation: Rotation,
}

/// What an ECC model is rendered with.
#[derive(Clone, Copy, Debug)]
pub struct EccInput<'a> {
    /// The label's panel.
    pub panel: Panel,
    /// Item values, `{item.KEY}` in the layout.
    pub item: &'a BTreeMap<String, String>,
    /// The link's parameters, `{param.KEY}` in the layout.
    pub parameters: &'a BTreeMap<String, String>,
}

/// A parsed and checked ECC model; cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct EccModel(Arc<Document>);

/// Why a document is no ECC model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Longer than a model may be.
    #[error("the layout has {bytes} bytes, at most {DOCUMENT_BYTES_MAX} are allowed")]
    TooLong {
        /// Bytes.
        bytes: usize,
    },
    /// Not the documented JSON.
    #[error("the layout cannot be read: {0}")]
    Json(String),
    /// A limit or rule of the document as a whole.
    #[error("the layout is not valid: {0}")]
    Document(String),
    /// A limit or rule of one element.
    #[error("the layout is not valid: element \"{element}\": {rule}")]
    Element {
        /// The element's id.
        element: String,
        /// The rule it breaks.
        rule: String,
    },
}

impl EccModel {
    /// Reads and checks a JSON document of at most [`DOCUMENT_BYTES_MAX`] bytes.
    pub fn parse(document: &str) -> Result<Self, ModelError> {
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(ModelError::TooLong { bytes: document.len() });
        }
        let mut document: Document =
            serde_json::from_str(document).map_err(|cause| ModelError::Json(cause.to_string()))?;
        check::check(&mut document)?;
        Ok(Self(Arc::new(document)))
    }

    /// The model's name, as its document gives it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Layout sizes (width, height) in pixels, in document order.
    pub fn sizes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.variants.iter().map(|variant| (variant.width, variant.height))
    }
}

/// Renders one label, or says which element could not be drawn and why. Nothing is drawn partly.
pub fn render(model: &EccModel, input: &EccInput<'_>) -> Result<Picture, RenderError> {
    let panel = input.panel;
    let (width, height) =
        if panel.rotation.swaps_sides() { (panel.height, panel.width) } else { (panel.width, panel.height) };
    let variant =
        model.0.variants.iter().find(|variant| (variant.width, variant.height) == (width, height)).ok_or_else(
            || {
                let sizes: Vec<String> = model.sizes().map(|(width, height)| format!("{width} × {height}")).collect();
                RenderError::NoVariant { width, height, have: sizes.join(", ") }
            },
        )?;
    let values = Values { item: input.item, parameters: input.parameters };
    let background = index(&variant.background, panel.palette);
    // A variant's size was checked against the picture's limits, and the panel's equals it.
    let canvas = Canvas::new(width, height, background.index);
    let indices = text::with_fonts(|fonts| {
        let mut sketch = Sketch { canvas, fonts, palette: panel.palette, values, guarded: Vec::new() };
        for element in &variant.elements {
            let name = |cause| match cause {
                Cause::Budget => RenderError::TooCostly(text::BUDGET),
                cause => RenderError::Element { element: element.id().to_owned(), cause },
            };
            if condition::hold(element.when(), values).map_err(name)? {
                draw::draw(&mut sketch, element).map_err(name)?;
            }
        }
        sketch.finish()
    })?;
    let picture =
        Picture::new(width, height, panel.palette, indices).map_err(|cause| RenderError::Panel(cause.to_string()))?;
    Ok(picture.rotated(panel.rotation))
}

#[cfg(test)]
mod tests;
