//! The bytes of a picture as the tag takes them: rows on whole bytes, leftmost pixel highest.

use picture::{Ink, Palette, Picture};

use super::TagSettings;

/// Bits a pixel has in a plane, and planes.
const fn layout(palette: Palette) -> (usize, usize) {
    match palette {
        Palette::Bw => (1, 1),
        Palette::Bwr => (1, 2),
        Palette::Bwry | Palette::Grey4 => (2, 1),
        Palette::Spectra6 => (4, 1),
    }
}

/// How many bytes make a picture.
pub(super) fn bytes(settings: &TagSettings) -> usize {
    let (bits, planes) = layout(settings.palette);
    (settings.width as usize * bits).div_ceil(8) * settings.height as usize * planes
}

/// The picture, if the bytes are one.
pub(super) fn decode(bytes: &[u8], settings: &TagSettings) -> Option<Picture> {
    if bytes.len() != self::bytes(settings) {
        return None;
    }
    let (bits, planes) = layout(settings.palette);
    let stride = (settings.width as usize * bits).div_ceil(8);
    let plane = bytes.len() / planes;
    let value = |plane_at: usize, x: usize, y: usize| {
        let byte = bytes.get(plane_at * plane + y * stride + x * bits / 8).copied().unwrap_or(0);
        byte >> (8 - bits - x * bits % 8) & ((1 << bits) - 1)
    };
    let mut indices = Vec::with_capacity((settings.width * settings.height) as usize);
    for y in 0..settings.height as usize {
        for x in 0..settings.width as usize {
            let first = value(0, x, y);
            let ink = match (settings.palette, first) {
                (Palette::Bwr, first) => match (first, value(1, x, y)) {
                    (0, 0) => Ink::Black,
                    (1, 0) => Ink::White,
                    (1, 1) => Ink::Red,
                    _ => return None,
                },
                (Palette::Bw | Palette::Bwry | Palette::Spectra6, 0) => Ink::Black,
                (Palette::Bw | Palette::Bwry | Palette::Spectra6, 1) => Ink::White,
                (Palette::Bwry | Palette::Spectra6, 2) => Ink::Yellow,
                (Palette::Bwry | Palette::Spectra6, 3) => Ink::Red,
                (Palette::Spectra6, 5) => Ink::Blue,
                (Palette::Spectra6, 6) => Ink::Green,
                (Palette::Bw | Palette::Bwry | Palette::Spectra6 | Palette::Grey4, _) => return None,
            };
            indices.push(settings.palette.index_of(ink)?);
        }
    }
    Picture::new(settings.width, settings.height, settings.palette, indices).ok()
}
