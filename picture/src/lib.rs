//! The label picture: what a panel shows, as indices into the inks it has.
//!
//! Invariants: a [`Picture`] always has exactly `width * height` indices, each naming an ink of its palette; equal
//! pictures have equal packed bytes and equal digests on any machine; unpacking hostile bytes neither panics nor
//! allocates beyond [`PIXELS_MAX`].
//!
//! Deliberately not here: drawing (room `render`), any colour conversion of photographs (`render`'s dither), files.

mod difference;
mod digest;
mod pack;
mod palette;
mod panels;
mod picture;
mod png;

pub use crate::difference::Difference;
pub use crate::digest::{Digest, DigestError};
pub use crate::pack::{PACKED_BYTES_MAX, PackError, UnpackError};
pub use crate::palette::{Ink, Palette, Rotation, UnknownPalette};
pub use crate::panels::{Compression, Encoding, PANELS, Panel, PanelInks};
pub use crate::picture::{PIXELS_MAX, Picture, PictureError, SIDE_MAX};
pub use crate::png::PngError;
