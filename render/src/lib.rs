//! Values in, picture out. Pure: no I/O, no clock, no system fonts; same input, same pixels on any machine.

use std::collections::BTreeMap;

use picture::{Palette, Picture, Rotation};

/// Which renderer made a picture.
pub const BUILD: &str = "render-1";

/// The panel a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Pixels of the panel itself.
    pub width: u32,
    /// Pixels of the panel itself.
    pub height: u32,
    /// Its inks.
    pub palette: Palette,
    /// How the layout is turned onto it, clockwise.
    pub rotation: Rotation,
}

/// What an ECC model is rendered with.
#[derive(Clone, Copy, Debug)]
pub struct EccInput<'a> {
    /// The label's panel.
    pub panel: Panel,
    /// Item values, `{item.KEY}`.
    pub item: &'a BTreeMap<String, String>,
    /// The link's parameters, `{param.KEY}`.
    pub parameters: &'a BTreeMap<String, String>,
}

/// A parsed ECC model; cheap to clone.
#[derive(Clone, Debug)]
pub struct EccModel(());

/// Why a document is no ECC model.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(String);

/// Why a label cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RenderError(String);

impl EccModel {
    /// Reads the JSON document.
    pub fn parse(_document: &str) -> Result<Self, ModelError> {
        Err(ModelError(
            "the layout engine is not in this build yet".to_owned(),
        ))
    }
}

/// Renders one label.
pub fn render(_model: &EccModel, _input: &EccInput<'_>) -> Result<Picture, RenderError> {
    Err(RenderError(
        "the layout engine is not in this build yet".to_owned(),
    ))
}
