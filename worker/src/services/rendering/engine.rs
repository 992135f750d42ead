//! How pictures are drawn.

use picture::Picture;
use render::{EccInput, EccModel, RenderError, StudioDesign};

/// Values in, picture out, by one kind of layout.
pub(crate) type DrawFn<L> = fn(&L, &EccInput<'_>) -> Result<Picture, RenderError>;

/// The renderer of a worker: this build's, unless a test stands another one in for another build.
///
/// Nothing else says which build drew a picture: the same inputs and the same build give the same bytes, so after an
/// upgrade a re-render replaces exactly the pictures that differ.
#[derive(Debug, Clone, Copy)]
pub struct RenderEngine {
    /// Draws a label linked to an ECC model.
    pub ecc: fn(&EccModel, &EccInput<'_>) -> Result<Picture, RenderError>,
    /// Draws a label linked to a Studio design.
    pub studio: fn(&StudioDesign, &EccInput<'_>) -> Result<Picture, RenderError>,
}

impl Default for RenderEngine {
    fn default() -> Self {
        Self { ecc: render::render, studio: render::studio_render }
    }
}
