//! From the uploaded JPEG to indices of the tag's inks, as an access point does it.

use jpeg_decoder::{CodingProcess, Decoder, PixelFormat};
use picture::{Ink, PanelInks};

/// Largest picture an access point has memory for, in pixels; a bound for hostile uploads, above every panel.
const PIXELS_MAX: usize = 1 << 20;
/// Channels that differ by less make a pixel near grey: it takes black or white, never a colour.
const GREY_SPREAD: i32 = 20;
/// Weights of the squared differences in red, green and blue, in hundredths.
const WEIGHTS: [i64; 3] = [300, 547, 153];
/// Burkes: where the error goes (columns right, rows down) and how much of it, in 32nds.
const BURKES: [(isize, usize, i32); 7] =
    [(1, 0, 8), (2, 0, 4), (-2, 1, 2), (-1, 1, 4), (0, 1, 8), (1, 1, 4), (2, 1, 2)];
/// A 4 × 4 threshold matrix.
const BAYER: [[i32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// A picture of the JPEG's own size: the tag's is not asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sprite {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Positions in the panel's ink order, row by row.
    pub(super) indices: Vec<u8>,
}

/// How colours that are none of the panel's are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dither {
    None,
    Burkes,
    Ordered,
}

impl Dither {
    /// The upload's parameter; what is not a number means 0.
    pub(super) fn of(parameter: &str) -> Self {
        match parameter.trim().parse() {
            Ok(1) => Self::Burkes,
            Ok(2) => Self::Ordered,
            Ok(_) | Err(_) => Self::None,
        }
    }
}

/// Decodes and maps. `None`: not a baseline JPEG, or too large.
pub(super) fn sprite(jpeg: &[u8], inks: PanelInks, dither: Dither, has_psram: bool) -> Option<Sprite> {
    let mut decoder = Decoder::new(jpeg);
    decoder.set_max_decoding_buffer_size(PIXELS_MAX * 3);
    let pixels = decoder.decode().ok()?;
    let info = decoder.info()?;
    if info.coding_process != CodingProcess::DctSequential {
        return None;
    }
    let rgb: Vec<[i32; 3]> = match info.pixel_format {
        PixelFormat::RGB24 => {
            pixels.as_chunks::<3>().0.iter().map(|[r, g, b]| [i32::from(*r), i32::from(*g), i32::from(*b)]).collect()
        }
        PixelFormat::L8 => pixels.iter().map(|grey| [i32::from(*grey); 3]).collect(),
        PixelFormat::L16 | PixelFormat::CMYK32 => return None,
    };
    let reduced = rgb.into_iter().map(|pixel| if has_psram { rgb565(pixel) } else { rgb332(pixel) }).collect();
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    Some(Sprite { width, height, indices: map(reduced, width, inks, dither) })
}

/// What 5, 6 and 5 bits leave of a colour.
fn rgb565([r, g, b]: [i32; 3]) -> [i32; 3] {
    [(r & 0xF8) | (r >> 5), (g & 0xFC) | (g >> 6), (b & 0xF8) | (b >> 5)]
}

/// What 3, 3 and 2 bits leave of a colour.
fn rgb332([r, g, b]: [i32; 3]) -> [i32; 3] {
    let three = |channel: i32| (channel >> 5) * 255 / 7;
    [three(r), three(g), (b >> 6) * 255 / 3]
}

/// The colour that stands for an ink in an access point's table.
fn colour(ink: Option<Ink>) -> [i32; 3] {
    match ink {
        Some(Ink::White) => [255, 255, 255],
        Some(Ink::Black) => [0, 0, 0],
        Some(Ink::Red) => [255, 0, 0],
        Some(Ink::Yellow) => [255, 255, 0],
        Some(Ink::Blue) => [0, 0, 255],
        Some(Ink::Green) => [0, 255, 0],
        Some(Ink::LightGrey) => [170, 170, 170],
        Some(Ink::DarkGrey) => [85, 85, 85],
        // The unused place of the seven-ink table.
        None => [255, 128, 0],
    }
}

fn map(mut pixels: Vec<[i32; 3]>, width: usize, inks: PanelInks, dither: Dither) -> Vec<u8> {
    let table: Vec<[i32; 3]> = inks.order().iter().map(|ink| colour(*ink)).collect();
    let mut indices = Vec::with_capacity(pixels.len());
    for at in 0..pixels.len() {
        let Some(&here) = pixels.get(at) else { break };
        let (x, y) = (at % width.max(1), at / width.max(1));
        let wanted = match dither {
            Dither::Ordered => {
                let threshold = BAYER.get(y % 4).and_then(|row| row.get(x % 4)).copied().unwrap_or(0);
                here.map(|channel| channel + (threshold * 2 - 15) * 4)
            }
            Dither::None | Dither::Burkes => here,
        };
        let index = nearest(wanted, &table);
        indices.push(u8::try_from(index).unwrap_or(0));
        if dither == Dither::Burkes {
            let Some(got) = table.get(index) else { continue };
            for (right, down, share) in BURKES {
                let Some(column) = x.checked_add_signed(right).filter(|column| *column < width) else { continue };
                if let Some(pixel) = pixels.get_mut((y + down) * width + column) {
                    for ((channel, want), have) in pixel.iter_mut().zip(here).zip(got) {
                        *channel += (want - have) * share / 32;
                    }
                }
            }
        }
    }
    indices
}

fn nearest(pixel: [i32; 3], table: &[[i32; 3]]) -> usize {
    let is_grey = |[r, g, b]: [i32; 3]| r.max(g).max(b) - r.min(g).min(b) < GREY_SPREAD;
    let only_grey = is_grey(pixel);
    let distance = |colour: [i32; 3]| -> i64 {
        colour.iter().zip(pixel).zip(WEIGHTS).map(|((have, want), weight)| i64::from(have - want).pow(2) * weight).sum()
    };
    table
        .iter()
        .enumerate()
        .filter(|(_, colour)| !only_grey || is_grey(**colour))
        .min_by_key(|(_, colour)| distance(**colour))
        .map_or(0, |(index, _)| index)
}
