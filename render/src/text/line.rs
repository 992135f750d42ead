//! One line of text: glyphs placed on a baseline, and the bounds of their ink.

use std::rc::Rc;

use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

use super::fonts::{Fonts, Glyph, Weight};
use super::raster::Span;
use crate::canvas::Canvas;
use crate::error::Cause;

/// Bounds of ink in pixels, `right` and `bottom` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ink {
    pub(crate) left: i32,
    pub(crate) top: i32,
    pub(crate) right: i32,
    pub(crate) bottom: i32,
}

impl Ink {
    pub(crate) fn around(spans: &[Span]) -> Option<Self> {
        spans
            .iter()
            .map(|span| Self {
                left: span.from.into(),
                top: span.y.into(),
                right: span.to.into(),
                bottom: i32::from(span.y) + 1,
            })
            .reduce(Self::join)
    }

    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            top: self.top.min(other.top),
            right: self.right.max(other.right),
            bottom: self.bottom.max(other.bottom),
        }
    }

    #[must_use]
    pub(crate) const fn shifted(self, x: i32, y: i32) -> Self {
        Self { left: self.left + x, top: self.top + y, right: self.right + x, bottom: self.bottom + y }
    }

    pub(crate) const fn width(self) -> i32 {
        self.right - self.left
    }

    pub(crate) const fn height(self) -> i32 {
        self.bottom - self.top
    }
}

/// A font at a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) weight: Weight,
    /// Pixels per em.
    pub(crate) size: u16,
}

/// Placed glyphs; the origin is the pen at the line's start, on its baseline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    glyphs: Vec<(i32, i32, Rc<Glyph>)>,
    /// Pixels from the first pen position to the last.
    pub(crate) advance: i32,
    /// `None` when nothing shows, as with spaces.
    pub(crate) ink: Option<Ink>,
}

/// Places the glyphs of a cleaned text. A combining mark that has no precomposed form is set over (or under) the ink
/// of the character it follows, clear of it.
pub(crate) fn shape(fonts: &mut Fonts, run: Run, text: &str) -> Result<Line, Cause> {
    let mut line = Line::default();
    let mut base: Option<Ink> = None;
    for ch in text.chars() {
        let glyph = fonts.glyph(run.weight, run.size, ch)?;
        if ch.is_ascii() || !is_combining_mark(ch) {
            let at = line.advance;
            line.advance += glyph.advance;
            base = glyph.ink.map(|ink| ink.shifted(at, 0));
            line.place(at, 0, glyph);
            continue;
        }
        let (Some(mark), Some(under)) = (glyph.ink, base) else {
            // A mark on nothing stands by itself.
            let at = line.advance - glyph.ink.map_or(0, |ink| ink.left);
            line.advance += glyph.ink.map_or(0, |ink| ink.width() + 1);
            line.place(at, 0, glyph);
            continue;
        };
        let x = (under.left + under.right - mark.left - mark.right).div_euclid(2);
        let y = match canonical_combining_class(ch) {
            // Above: its bottom at least one pixel over the ink.
            230 => (under.top - 1 - mark.bottom).min(0),
            220 => (under.bottom + 1 - mark.top).max(0),
            _ => 0,
        };
        base = Some(under.join(mark.shifted(x, y)));
        line.place(x, y, glyph);
    }
    Ok(line)
}

impl Line {
    fn place(&mut self, x: i32, y: i32, glyph: Rc<Glyph>) {
        if let Some(ink) = glyph.ink {
            let ink = ink.shifted(x, y);
            self.ink = Some(self.ink.map_or(ink, |all| all.join(ink)));
            self.glyphs.push((x, y, glyph));
        }
    }

    /// Adds another line's glyphs at an offset; the advance stays.
    pub(crate) fn append(&mut self, x: i32, y: i32, other: &Self) {
        for (gx, gy, glyph) in &other.glyphs {
            self.place(x + gx, y + gy, Rc::clone(glyph));
        }
    }

    /// Draws with the pen's start at `x` on baseline `y`.
    pub(crate) fn draw(&self, canvas: &mut Canvas, x: i32, y: i32, index: u8) {
        for (gx, gy, glyph) in &self.glyphs {
            let (x, y) = (x + gx, y + gy);
            for span in &glyph.spans {
                canvas.span(y + i32::from(span.y), x + i32::from(span.from), x + i32::from(span.to), index);
            }
        }
    }
}
