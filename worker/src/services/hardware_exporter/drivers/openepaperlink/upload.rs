//! The body of an upload.
//!
//! The access point deals with the file as soon as it has read it, so every parameter stands before it; a text part with
//! a content type would be taken for the file; a body without its length is not read at all. `rotate`, `lut` and `invert`
//! stick to the tag, so they are always said. `preloadtype` and `preloadlut` must never appear: naming one is enough to
//! have the picture stored and not shown.

use bytes::Bytes;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use picture::{Ink, Picture};

use super::mac::Mac;

/// Palette colours are at least 128 apart, so at this quality none is mistaken, and the file stays small.
const QUALITY: u8 = 85;

/// What parts the parts. Text before the file is ours and holds none; no JPEG holds this line by chance.
pub(super) struct Boundary {
    text: &'static str,
    pub(super) content_type: &'static str,
}

pub(super) const BOUNDARY: Boundary = Boundary {
    text: "----label-picture-7e1d0f6b5a2c49d8",
    content_type: "multipart/form-data; boundary=----label-picture-7e1d0f6b5a2c49d8",
};

/// A picture on its way to a tag.
#[derive(Debug)]
pub(super) struct Upload<'a> {
    pub(super) mac: Mac,
    pub(super) jpeg: &'a [u8],
    /// Whether the panel is to take its time: coloured inks come out pale otherwise.
    pub(super) has_colour: bool,
}

impl Upload<'_> {
    pub(super) fn body(&self) -> Bytes {
        let mac = self.mac.to_string();
        let lut = if self.has_colour { "1" } else { "0" };
        let parameters = [
            ("mac", mac.as_str()),
            ("dither", "0"),
            ("rotate", "0"),
            ("lut", lut),
            ("invert", "0"),
            ("contentmode", "24"),
        ];
        let boundary = BOUNDARY.text;
        let mut body = Vec::with_capacity(self.jpeg.len() + 1_024);
        for (name, value) in parameters {
            body.extend_from_slice(
                format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                    .as_bytes(),
            );
        }
        body.extend_from_slice(
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"label.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
            )
            .as_bytes(),
        );
        body.extend_from_slice(self.jpeg);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        body.into()
    }
}

/// Whether a picture uses other inks than black and white.
pub(super) fn has_colour(picture: &Picture) -> bool {
    let is_colour = |index: &u8| {
        let ink = picture.palette().inks().get(usize::from(*index));
        !matches!(ink, Some(Ink::White | Ink::Black) | None)
    };
    picture.indices().iter().any(is_colour)
}

/// A baseline JPEG with whole colours (4:4:4). The colours are the pure ones the access point looks for, not how the inks
/// look.
pub(super) fn jpeg(picture: &Picture) -> Result<Vec<u8>, String> {
    let inks: Vec<[u8; 3]> = picture.palette().inks().iter().map(|ink| colour(*ink)).collect();
    let rgb: Vec<u8> = picture
        .indices()
        .iter()
        .flat_map(|index| inks.get(usize::from(*index)).copied().unwrap_or([255, 255, 255]))
        .collect();
    let side = |pixels: u32| u16::try_from(pixels).map_err(|_| "the picture is too large for a JPEG".to_owned());
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
    encoder.set_progressive(false);
    encoder
        .encode(&rgb, side(picture.width())?, side(picture.height())?, ColorType::Rgb)
        .map_err(|error| format!("the JPEG encoder refused the picture: {error}"))?;
    Ok(bytes)
}

const fn colour(ink: Ink) -> [u8; 3] {
    match ink {
        Ink::White => [255, 255, 255],
        Ink::Black => [0, 0, 0],
        Ink::Red => [255, 0, 0],
        Ink::Yellow => [255, 255, 0],
        Ink::Blue => [0, 0, 255],
        Ink::Green => [0, 255, 0],
        Ink::LightGrey => [170, 170, 170],
        Ink::DarkGrey => [85, 85, 85],
    }
}
