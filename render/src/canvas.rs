//! The surface drawn on: one palette index a pixel, everything clipped.

/// A rectangle in pixels; `x` and `y` of its top left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

impl Area {
    pub(crate) const fn right(self) -> i32 {
        self.x + self.width
    }
    pub(crate) const fn bottom(self) -> i32 {
        self.y + self.height
    }
    /// Pixels, for messages.
    pub(crate) fn size(self) -> (u32, u32) {
        (self.width.unsigned_abs(), self.height.unsigned_abs())
    }
}

/// An index that is no ink: leaves what lies beneath.
pub(crate) const TRANSPARENT: u8 = u8::MAX;

pub(crate) struct Canvas {
    width: i32,
    height: i32,
    stride: usize,
    indices: Vec<u8>,
}

impl Canvas {
    /// Sides were checked against the picture's limits.
    pub(crate) fn new(width: u32, height: u32, background: u8) -> Self {
        let side = |side: u32| i32::try_from(side).unwrap_or(0);
        let stride = usize::try_from(side(width)).unwrap_or(0);
        let rows = usize::try_from(side(height)).unwrap_or(0);
        Self { width: side(width), height: side(height), stride, indices: vec![background; stride * rows] }
    }

    pub(crate) fn into_indices(self) -> Vec<u8> {
        self.indices
    }

    /// The pixels `from..to` of a row, clipped.
    pub(crate) fn row(&self, y: i32, from: i32, to: i32) -> &[u8] {
        self.range(y, from, to).and_then(|range| self.indices.get(range)).unwrap_or_default()
    }

    fn range(&self, y: i32, from: i32, to: i32) -> Option<std::ops::Range<usize>> {
        if y < 0 || y >= self.height {
            return None;
        }
        let (from, to) = (from.clamp(0, self.width), to.clamp(0, self.width));
        let start = usize::try_from(y).ok()? * self.stride;
        let range = start + usize::try_from(from).ok()?..start + usize::try_from(to).ok()?;
        (!range.is_empty()).then_some(range)
    }

    /// Fills the pixels `from..to` of a row.
    pub(crate) fn span(&mut self, y: i32, from: i32, to: i32, index: u8) {
        if let Some(pixels) = self.range(y, from, to).and_then(|range| self.indices.get_mut(range)) {
            // Glyph spans are a few pixels: a loop beats the call `fill` makes.
            if pixels.len() < 16 {
                for pixel in pixels {
                    *pixel = index;
                }
            } else {
                pixels.fill(index);
            }
        }
    }

    /// Fills a rectangle.
    pub(crate) fn fill(&mut self, area: Area, index: u8) {
        for y in area.y.max(0)..area.bottom().min(self.height) {
            self.span(y, area.x, area.right(), index);
        }
    }

    /// Copies indices into place, except [`TRANSPARENT`] ones.
    pub(crate) fn blit(&mut self, area: Area, indices: &[u8]) {
        let Ok(width) = usize::try_from(area.width) else { return };
        for (y, row) in (area.y..area.bottom()).zip(indices.chunks_exact(width.max(1))) {
            for (x, index) in (area.x..).zip(row) {
                if *index != TRANSPARENT {
                    self.span(y, x, x + 1, *index);
                }
            }
        }
    }

    /// A copy of a region, to compare later.
    pub(crate) fn copy(&self, area: Area) -> Vec<u8> {
        (area.y..area.bottom()).flat_map(|y| self.row(y, area.x, area.right()).iter().copied()).collect()
    }

    /// Whether a region still holds what was copied.
    pub(crate) fn holds(&self, area: Area, copy: &[u8]) -> bool {
        (area.y..area.bottom()).flat_map(|y| self.row(y, area.x, area.right())).eq(copy)
    }

    /// Whether any pixel of a region has the index.
    pub(crate) fn contains(&self, area: Area, index: u8) -> bool {
        (area.y..area.bottom()).any(|y| self.row(y, area.x, area.right()).contains(&index))
    }
}
