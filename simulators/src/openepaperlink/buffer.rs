//! The bytes a tag gets, and what its panel makes of them.

use std::io::Read as _;

use picture::{Encoding, Panel, Picture};

use super::sprite::Sprite;

/// Bytes of the header inside a compressed stream, and its first byte.
const ZIP_HEADER_BYTES: u8 = 6;

/// Turns the sprite and lays it out. `turns` are the record's quarter turns, on top of the panel's own.
pub(super) fn encode(sprite: &Sprite, panel: &Panel, turns: u8) -> Vec<u8> {
    let turned = (0..(panel.quarter_turns + turns) % 4).fold(sprite.clone(), |sprite, _| quarter(&sprite));
    match panel.encoding {
        Encoding::Planes => {
            let mut planes = bits(&turned.indices, 1, |index| index & 1);
            // The second plane is there only where it is needed.
            if turned.indices.iter().any(|index| *index >= 2) {
                planes.extend(bits(&turned.indices, 1, |index| index >> 1 & 1));
            }
            planes
        }
        Encoding::Packed2 => bits(&turned.indices, 2, |index| index & 3),
        Encoding::Packed4 => bits(&turned.indices, 4, |index| index & 15),
    }
}

/// The compressed form: the length, then a stream of a header (its size, sides, bits) and the planes.
pub(super) fn zip(plain: &[u8], panel: &Panel) -> Vec<u8> {
    let (width, height) = panel.buffer_size();
    let side = |pixels: u32| u16::try_from(pixels).unwrap_or(u16::MAX).to_le_bytes();
    let ([w0, w1], [h0, h1]) = (side(width), side(height));
    let mut content = vec![ZIP_HEADER_BYTES, w0, w1, h0, h1, 2];
    content.extend_from_slice(plain);
    let mut bytes = u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    let mut encoder = flate2::read::ZlibEncoder::new(content.as_slice(), flate2::Compression::default());
    // Reading from memory does not fail; a short stream would show as a garbled panel.
    let _length = encoder.read_to_end(&mut bytes);
    bytes
}

/// What a compressed form holds; `None` where it is none.
fn unzip(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let (length, stream) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let mut content = Vec::new();
    flate2::read::ZlibDecoder::new(stream).take(most as u64).read_to_end(&mut content).ok()?;
    let (header, plain) = content.split_at_checked(usize::from(ZIP_HEADER_BYTES))?;
    (content.len() == length && header.first() == Some(&ZIP_HEADER_BYTES)).then(|| plain.to_vec())
}

/// What the panel shows of the bytes; `None` where they are not of its size.
pub(super) fn decode(bytes: &[u8], panel: &Panel) -> Option<Picture> {
    let (width, height) = panel.buffer_size();
    if panel.compressed.is_some()
        && let Some(plain) = unzip(bytes, (width * height) as usize)
    {
        return decode_plain(&plain, panel);
    }
    decode_plain(bytes, panel)
}

fn decode_plain(bytes: &[u8], panel: &Panel) -> Option<Picture> {
    let (width, height) = panel.buffer_size();
    let count = (width * height) as usize;
    let plane = count.div_ceil(8);
    let indices: Vec<u8> = match panel.encoding {
        Encoding::Planes => {
            let (first, second) = bytes.split_at_checked(plane)?;
            if !second.is_empty() && second.len() != plane {
                return None;
            }
            let bit = |plane: &[u8], at: usize| plane.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
            (0..count).map(|at| bit(first, at) | bit(second, at) << 1).collect()
        }
        Encoding::Packed2 if bytes.len() == count.div_ceil(4) => {
            bytes.iter().flat_map(|byte| [byte >> 6, byte >> 4 & 3, byte >> 2 & 3, byte & 3]).take(count).collect()
        }
        Encoding::Packed4 if bytes.len() == count.div_ceil(2) => {
            bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(count).collect()
        }
        Encoding::Packed2 | Encoding::Packed4 => return None,
    };
    let lying = Sprite { width: width as usize, height: height as usize, indices };
    let seen = (0..(4 - panel.quarter_turns) % 4).fold(lying, |sprite, _| quarter(&sprite));
    let palette = panel.inks.palette();
    let inks: Option<Vec<u8>> = seen
        .indices
        .iter()
        .map(|index| {
            panel.inks.order().get(usize::from(*index)).copied().flatten().and_then(|ink| palette.index_of(ink))
        })
        .collect();
    Picture::new(panel.width, panel.height, palette, inks?).ok()
}

/// A quarter turn clockwise.
fn quarter(sprite: &Sprite) -> Sprite {
    let Sprite { width, height, indices } = sprite;
    let turned = (0..*width)
        .flat_map(|x| (0..*height).rev().map(move |y| y * width + x))
        .map(|at| indices.get(at).copied().unwrap_or(0))
        .collect();
    Sprite { width: *height, height: *width, indices: turned }
}

/// Packs `width` bits of each index, highest first, across rows.
fn bits(indices: &[u8], width: usize, of: impl Fn(u8) -> u8) -> Vec<u8> {
    indices
        .chunks(8 / width)
        .map(|group| group.iter().enumerate().fold(0, |byte, (at, index)| byte | of(*index) << (8 - width * (at + 1))))
        .collect()
}
