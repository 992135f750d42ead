//! Text as crisp one-bit pixels: which characters may be shown, glyphs, lines, fitting into a box.
//!
//! Invariants: outlines are hinted for one-bit output by the fonts' own instructions and filled by an integer
//! scanline filler, so glyphs are the same on every machine; a character without a glyph is an error, never a box.
//!
//! Deliberately not here: kerning and ligatures (whole-pixel advances at label sizes leave them nothing to do), scripts that
//! need shaping, right-to-left text (refused by name).

mod clean;
mod fit;
mod fonts;
mod line;
mod outline;
mod raster;

pub(crate) use clean::clean;
pub(crate) use fit::{Request, fit};
pub(crate) use fonts::{BUDGET, Fonts, SIZE_MAX, SIZE_MIN, Weight, with_fonts};
pub(crate) use line::{Ink, Line, Run, shape};

#[cfg(test)]
mod tests;
