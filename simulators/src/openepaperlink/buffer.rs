//! The bytes a tag gets, and what its panel makes of them.

use picture::{Encoding, Panel, Picture};

use super::sprite::Sprite;

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

/// What the panel shows of the bytes; `None` where they are not of its size.
pub(super) fn decode(bytes: &[u8], panel: &Panel) -> Option<Picture> {
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
