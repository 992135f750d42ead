//! Text as path data, for what cannot be set in whole pixels: turned or outlined words of a drawing. Unhinted.

use std::fmt::Write as _;

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{GlyphId, MetadataProvider};

use super::fonts::{Face, Fonts, Weight};
use crate::error::Cause;

/// A line of text as SVG path data; the origin is the pen at its start, on the baseline.
#[derive(Debug, Default)]
pub(crate) struct TextOutline {
    pub(crate) d: String,
    pub(crate) segments: usize,
    /// To the end of the line.
    pub(crate) advance: f64,
}

impl Fonts {
    /// The outlines of a clean text at `size` units per em. Marks without a precomposed form stand as the font has
    /// them.
    pub(crate) fn outline(&self, weight: Weight, size: f64, text: &str) -> Result<TextOutline, Cause> {
        #[expect(clippy::cast_possible_truncation, reason = "sizes lie far within f32")]
        let scale = Size::new(size as f32);
        let mut out = TextOutline::default();
        for ch in text.chars() {
            let has = |face: &Face| face.charmap.map(ch).filter(|id| *id != GlyphId::NOTDEF);
            let found = self.faces(weight).iter().find_map(|face| Some((face, has(face)?)));
            let (face, id) = found.ok_or(Cause::MissingGlyph { ch })?;
            if let Some(glyph) = face.outlines.get(id) {
                // A glyph that cannot be drawn would be missing; the embedded fonts have none.
                glyph
                    .draw(DrawSettings::unhinted(scale, LocationRef::default()), &mut out)
                    .map_err(|_| Cause::MissingGlyph { ch })?;
            }
            let advance = face.font.glyph_metrics(scale, LocationRef::default()).advance_width(id).unwrap_or(0.0);
            out.advance += f64::from(advance);
        }
        Ok(out)
    }
}

impl TextOutline {
    fn put(&mut self, command: char, points: &[(f32, f32)]) {
        self.segments += 1;
        self.d.push(command);
        for (x, y) in points {
            // Writing to a string cannot fail.
            let _ = write!(self.d, "{} {} ", self.advance + f64::from(*x), -y);
        }
    }
}

impl OutlinePen for TextOutline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.put('M', &[(x, y)]);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.put('L', &[(x, y)]);
    }
    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.put('Q', &[(cx, cy), (x, y)]);
    }
    fn curve_to(&mut self, c0x: f32, c0y: f32, c1x: f32, c1y: f32, x: f32, y: f32) {
        self.put('C', &[(c0x, c0y), (c1x, c1y), (x, y)]);
    }
    fn close(&mut self) {
        self.put('Z', &[]);
    }
}
