//! The picture itself: checked size, palette, one index a pixel.

use crate::palette::{Palette, Rotation};

/// Longest side, pixels. The largest shelf panels have 1,024.
pub const SIDE_MAX: u32 = 4_096;

/// Most pixels of a picture: three times the largest panel known (1,024 × 576), and 1 byte each while drawn.
pub const PIXELS_MAX: usize = 2_097_152;

/// A label picture: row by row from the top left, one palette index a pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    palette: Palette,
    indices: Vec<u8>,
}

/// Why indices do not make a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// A side is 0 or too long, or the area is too large.
    #[error(
        "a picture of {width} × {height} pixels is out of range: sides 1 to {SIDE_MAX}, at most {PIXELS_MAX} pixels"
    )]
    Size {
        /// Pixels.
        width: u32,
        /// Pixels.
        height: u32,
    },
    /// The number of indices is not width × height.
    #[error("{got} pixels given, {want} needed")]
    Count {
        /// Pixels given.
        got: usize,
        /// Pixels needed.
        want: usize,
    },
    /// An index names no ink.
    #[error("pixel {at} has index {index}, which names no ink of {palette}")]
    Index {
        /// Position, row by row.
        at: usize,
        /// The index.
        index: u8,
        /// The palette.
        palette: Palette,
    },
}

/// The number of pixels, if the size is allowed.
pub(crate) fn pixels(width: u32, height: u32) -> Result<usize, PictureError> {
    let out = || PictureError::Size { width, height };
    if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
        return Err(out());
    }
    let count = usize::try_from(u64::from(width) * u64::from(height)).map_err(|_| out())?;
    if count > PIXELS_MAX { Err(out()) } else { Ok(count) }
}

impl Picture {
    /// Checks size, count and every index.
    pub fn new(width: u32, height: u32, palette: Palette, indices: Vec<u8>) -> Result<Self, PictureError> {
        let want = pixels(width, height)?;
        if indices.len() != want {
            return Err(PictureError::Count { got: indices.len(), want });
        }
        let inks = u8::try_from(palette.inks().len()).unwrap_or(u8::MAX);
        // The maximum first: it vectorises, and a bad index is rare.
        if indices.iter().fold(0, |most: u8, index| most.max(*index)) >= inks {
            let (at, index) = indices.iter().copied().enumerate().find(|(_, index)| *index >= inks).unwrap_or((0, 0));
            return Err(PictureError::Index { at, index, palette });
        }
        Ok(Self { width, height, palette, indices })
    }

    /// Pixels.
    pub const fn width(&self) -> u32 {
        self.width
    }

    /// Pixels.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// The inks.
    pub const fn palette(&self) -> Palette {
        self.palette
    }

    /// One index a pixel, row by row from the top left.
    pub fn indices(&self) -> &[u8] {
        &self.indices
    }

    /// The index at a point, or `None` outside.
    pub fn at(&self, x: u32, y: u32) -> Option<u8> {
        if x >= self.width || y >= self.height {
            return None;
        }
        usize::try_from(u64::from(y) * u64::from(self.width) + u64::from(x))
            .ok()
            .and_then(|at| self.indices.get(at).copied())
    }

    /// The same picture turned clockwise; sides change places for quarter turns.
    #[must_use]
    pub fn rotated(self, rotation: Rotation) -> Self {
        let Self { width, height, palette, mut indices } = self;
        let (columns, rows) = (width as usize, height as usize);
        match rotation {
            Rotation::Deg0 => Self { width, height, palette, indices },
            Rotation::Deg180 => {
                indices.reverse();
                Self { width, height, palette, indices }
            }
            Rotation::Deg90 | Rotation::Deg270 => {
                let mut turned = vec![0; indices.len()];
                for (y, row) in indices.chunks_exact(columns).enumerate() {
                    let to = if rotation == Rotation::Deg90 { rows - 1 - y } else { y };
                    let column = turned.iter_mut().skip(to).step_by(rows);
                    if rotation == Rotation::Deg90 {
                        column.zip(row).for_each(|(to, from)| *to = *from);
                    } else {
                        column.zip(row.iter().rev()).for_each(|(to, from)| *to = *from);
                    }
                }
                Self { width: height, height: width, palette, indices: turned }
            }
        }
    }
}
