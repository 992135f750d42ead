//! Which bytes a tag holds when it shows a picture: what proves that it does.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use md5::{Digest as _, Md5};
use picture::{Encoding, PIXELS_MAX, Panel, Picture, Rotation};

/// Behind the length and inside the stream: a mark, width, height, bits.
const ZLIB_HEADER_BYTES: usize = 6;

/// Why a picture cannot be shown by a panel. The access point would take it all the same.
pub(super) fn misfit(picture: &Picture, panel: &Panel) -> Option<String> {
    if (picture.width(), picture.height()) != (panel.width, panel.height) {
        return Some(format!(
            "the picture has {} × {} pixels, the panel ({}) {} × {}",
            picture.width(),
            picture.height(),
            panel.name,
            panel.width,
            panel.height
        ));
    }
    let used = |index: usize| picture.indices().iter().any(|have| usize::from(*have) == index);
    let (_, lacking) = picture
        .palette()
        .inks()
        .iter()
        .enumerate()
        .find(|(index, ink)| panel.inks.number_of(**ink).is_none() && used(*index))?;
    Some(format!("the picture uses {lacking}, which the panel ({}) does not have", panel.name))
}

/// First halves of the hashes that a picture (which fits the panel) may have on a tag; the second half counts for nothing
/// over there. Which way a quarter turn of the panel goes is not settled without the hardware, so both count; only one can
/// be this picture, unless it looks the same both ways.
pub(super) fn hashes(picture: &Picture, panel: &Panel) -> Vec<String> {
    let turns: &[Rotation] = match panel.quarter_turns {
        0 => &[Rotation::Deg0],
        2 => &[Rotation::Deg180],
        _ => &[Rotation::Deg90, Rotation::Deg270],
    };
    turns.iter().map(|turn| half_hash(&buffer(&picture.clone().rotated(*turn), panel))).collect()
}

/// Whether bytes that were read back are those the tag reports, and hold a picture of these hashes, perhaps compressed.
/// Without the first, they may be of a picture that the tag has lost since.
pub(super) fn is_read_back(bytes: &[u8], reported: &str, hashes: &[String]) -> bool {
    let is_reported = reported.get(..16).is_some_and(|half| half.eq_ignore_ascii_case(&half_hash(bytes)));
    is_reported && unzipped(bytes).is_some_and(|plain| hashes.contains(&half_hash(&plain)))
}

fn half_hash(bytes: &[u8]) -> String {
    let hash: [u8; 16] = Md5::digest(bytes).into();
    let mut text = format!("{:032x}", u128::from_be_bytes(hash));
    text.truncate(16);
    text
}

/// The planes of a compressed file; nothing where it is none, or holds more than any picture.
fn unzipped(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, stream) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= PIXELS_MAX)?;
    let mut plain = Vec::new();
    ZlibDecoder::new(stream).take(length as u64).read_to_end(&mut plain).ok()?;
    plain.get(ZLIB_HEADER_BYTES..).map(<[u8]>::to_vec)
}

/// A turned picture as the panel's buffer.
fn buffer(turned: &Picture, panel: &Panel) -> Vec<u8> {
    let numbers: Vec<u8> = turned.palette().inks().iter().map(|ink| panel.inks.number_of(*ink).unwrap_or(0)).collect();
    let indices: Vec<u8> =
        turned.indices().iter().map(|index| numbers.get(usize::from(*index)).copied().unwrap_or(0)).collect();
    match panel.encoding {
        Encoding::Planes => {
            let plane = |bit: u8| -> Vec<u8> { indices.iter().map(|index| index >> bit & 1).collect() };
            let mut bytes = pack(&plane(0), 8, 1);
            if indices.iter().any(|index| *index > 1) {
                bytes.extend(pack(&plane(1), 8, 1));
            }
            bytes
        }
        Encoding::Packed2 => pack(&indices, 4, 2),
        Encoding::Packed4 => pack(&indices, 2, 4),
    }
}

fn pack(indices: &[u8], per_byte: usize, bits: usize) -> Vec<u8> {
    indices
        .chunks(per_byte)
        .map(|group| {
            let filled = group.iter().fold(0_u8, |byte, index| byte << bits | index);
            filled << (bits * (per_byte - group.len()))
        })
        .collect()
}
