//! Pixels as the tags take them: rows on whole bytes, leftmost pixel highest. The numbers of the inks are this protocol's
//! own: in one plane white is 1.

use picture::{Ink, Palette, Picture};

/// The bytes of a picture.
pub(super) fn pixels(picture: &Picture) -> Result<Vec<u8>, String> {
    match picture.palette() {
        Palette::Bw => Ok(plane(picture, 1, |ink| u8::from(ink != Ink::Black))),
        Palette::Bwr => {
            let mut planes = plane(picture, 1, |ink| u8::from(ink != Ink::Black));
            planes.extend(plane(picture, 1, |ink| u8::from(ink == Ink::Red)));
            Ok(planes)
        }
        Palette::Bwry => Ok(plane(picture, 2, number)),
        Palette::Spectra6 => Ok(plane(picture, 4, number)),
        Palette::Grey4 => Err("how such tags take grey pictures is not known".to_owned()),
    }
}

const fn number(ink: Ink) -> u8 {
    match ink {
        Ink::Black | Ink::DarkGrey => 0,
        Ink::White | Ink::LightGrey => 1,
        Ink::Yellow => 2,
        Ink::Red => 3,
        Ink::Blue => 5,
        Ink::Green => 6,
    }
}

fn plane(picture: &Picture, bits: usize, value: impl Fn(Ink) -> u8) -> Vec<u8> {
    let values: Vec<u8> = picture.palette().inks().iter().map(|ink| value(*ink)).collect();
    let per_byte = 8 / bits;
    let mut bytes = Vec::with_capacity(picture.indices().len() / per_byte + picture.height() as usize);
    for row in picture.indices().chunks(picture.width() as usize) {
        for group in row.chunks(per_byte) {
            let filled = group
                .iter()
                .fold(0_u8, |byte, index| byte << bits | values.get(usize::from(*index)).copied().unwrap_or(0));
            bytes.push(filled << (bits * (per_byte - group.len())));
        }
    }
    bytes
}
