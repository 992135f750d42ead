//! Values in, picture out.
//!
//! Invariants: pure (no I/O, no clock, no system fonts, no global state that shows: the glyph cache only saves time);
//! same input, same pixels on any machine; work is bounded whatever the layout says; text is one-bit and never
//! dithered; a price is shown whole or the label fails with its reason.
//!
//! Deliberately not here: reading records, storing pictures (room `worker`), packing and PNG (room `picture`).

mod barcode;
mod canvas;
mod decimal;
mod dither;
pub mod ecc;
mod error;
pub mod studio;
mod text;

pub use crate::ecc::{EccInput, EccModel, ModelError, Panel, render};
pub use crate::error::{Cause, RenderError};
pub use crate::studio::{DesignError, StudioDesign, StudioInput, studio_render};

/// Which renderer made a picture. Raised by hand whenever any golden picture changes; a test holds it to their hash.
pub const BUILD: &str = "render-1";
