//! Photographs and logos onto a few inks. Integer arithmetic only, so every machine gets the same pixels.
//!
//! Error diffusion after Floyd and Steinberg, in linear light (in sRGB the result comes out too light), towards the
//! inks as they look on the panel. The source's black and white are first mapped onto the panel's black and white,
//! so plain white stays plain paper.

use picture::{Ink, Palette};
use serde::Deserialize;

use crate::canvas::TRANSPARENT;

/// A decoded picture: red, green, blue, alpha.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) width: u32,
    pub(crate) rgba: Vec<[u8; 4]>,
}

/// sRGB 0..=255 to linear light 0..=4095; the curve of IEC 61966-2-1, rounded.
const LINEAR: [i32; 256] = [
    0, 1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 18, 20, 21, 23, 25, 27, 29, 31, 33, 35, 37, 40, 42, 45, 48, 50, 53,
    56, 59, 62, 66, 69, 72, 76, 79, 83, 87, 91, 95, 99, 103, 107, 112, 116, 121, 126, 131, 136, 141, 146, 151, 156,
    162, 168, 173, 179, 185, 191, 197, 204, 210, 216, 223, 230, 237, 244, 251, 258, 265, 273, 280, 288, 296, 304, 312,
    320, 329, 337, 346, 354, 363, 372, 381, 390, 400, 409, 419, 428, 438, 448, 458, 469, 479, 490, 500, 511, 522, 533,
    544, 555, 567, 578, 590, 602, 614, 626, 639, 651, 664, 676, 689, 702, 715, 728, 742, 755, 769, 783, 797, 811, 825,
    840, 854, 869, 884, 899, 914, 929, 945, 960, 976, 992, 1_008, 1_024, 1_041, 1_057, 1_074, 1_091, 1_108, 1_125,
    1_142, 1_159, 1_177, 1_195, 1_213, 1_231, 1_249, 1_267, 1_286, 1_304, 1_323, 1_342, 1_361, 1_381, 1_400, 1_420,
    1_440, 1_459, 1_480, 1_500, 1_520, 1_541, 1_562, 1_582, 1_603, 1_625, 1_646, 1_668, 1_689, 1_711, 1_733, 1_755,
    1_778, 1_800, 1_823, 1_846, 1_869, 1_892, 1_916, 1_939, 1_963, 1_987, 2_011, 2_035, 2_059, 2_084, 2_109, 2_133,
    2_159, 2_184, 2_209, 2_235, 2_260, 2_286, 2_312, 2_339, 2_365, 2_392, 2_419, 2_446, 2_473, 2_500, 2_527, 2_555,
    2_583, 2_611, 2_639, 2_668, 2_696, 2_725, 2_754, 2_783, 2_812, 2_841, 2_871, 2_901, 2_931, 2_961, 2_991, 3_022,
    3_052, 3_083, 3_114, 3_146, 3_177, 3_209, 3_240, 3_272, 3_304, 3_337, 3_369, 3_402, 3_435, 3_468, 3_501, 3_535,
    3_568, 3_602, 3_636, 3_670, 3_705, 3_739, 3_774, 3_809, 3_844, 3_879, 3_915, 3_950, 3_986, 4_022, 4_059, 4_095,
];

/// From this alpha on a pixel is drawn; below, what lies beneath stays.
const ALPHA_MIN: u8 = 128;

/// How far diffused error may carry a channel beyond black and white: a quarter of the range, or a colour no ink
/// comes near would smear.
const EXCESS: i32 = 1_024;

/// Weights of red, green and blue in the distance of two colours: about their share of luminance.
const WEIGHTS: [i64; 3] = [3, 6, 1];

fn linear([r, g, b]: [u8; 3]) -> [i32; 3] {
    [r, g, b].map(|channel| LINEAR.get(usize::from(channel)).copied().unwrap_or(0))
}

/// What becomes of the difference between a pixel's colour and the nearest ink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dither {
    /// Its neighbours make up for it.
    #[default]
    Diffuse,
    /// Nothing.
    Nearest,
}

/// One palette index a pixel; [`TRANSPARENT`] where the source is.
pub(crate) fn dither(source: &Source, palette: Palette, how: Dither) -> Vec<u8> {
    let inks: Vec<(u8, [i32; 3])> = (0..).zip(palette.inks()).map(|(index, ink)| (index, linear(ink.srgb()))).collect();
    let (black, white) = (linear(Ink::Black.srgb()), linear(Ink::White.srgb()));
    let width = usize::try_from(source.width).unwrap_or(0).max(1);
    // Error carried to the next row, in sixteenths; one pixel of margin on each side.
    let mut below = vec![[0_i32; 3]; width + 2];
    let mut out = Vec::with_capacity(source.rgba.len());
    for row in source.rgba.chunks_exact(width) {
        let mut here = std::mem::replace(&mut below, vec![[0; 3]; width + 2]);
        for (x, [r, g, b, alpha]) in row.iter().enumerate() {
            if *alpha < ALPHA_MIN {
                out.push(TRANSPARENT);
                continue;
            }
            let carried = here.get(x + 1).copied().unwrap_or_default();
            let mut want = [0; 3];
            for (((want, value), error), (black, white)) in
                want.iter_mut().zip(linear([*r, *g, *b])).zip(carried).zip(black.into_iter().zip(white))
            {
                let mapped = black + value * (white - black) / 4_095;
                *want = (mapped + error / 16).clamp(-EXCESS, 4_095 + EXCESS);
            }
            let (index, shown) = nearest(&inks, want);
            out.push(index);
            if how == Dither::Diffuse {
                let error: [i32; 3] =
                    std::array::from_fn(|at| want.get(at).copied().unwrap_or(0) - shown.get(at).copied().unwrap_or(0));
                spread(&mut here, x + 2, error, 7);
                spread(&mut below, x, error, 3);
                spread(&mut below, x + 1, error, 5);
                spread(&mut below, x + 2, error, 1);
            }
        }
    }
    out
}

fn spread(row: &mut [[i32; 3]], at: usize, error: [i32; 3], sixteenths: i32) {
    if let Some(cell) = row.get_mut(at) {
        for (cell, error) in cell.iter_mut().zip(error) {
            *cell += error * sixteenths;
        }
    }
}

fn nearest(inks: &[(u8, [i32; 3])], want: [i32; 3]) -> (u8, [i32; 3]) {
    let distance = |have: &[i32; 3]| -> i64 {
        have.iter().zip(want).zip(WEIGHTS).map(|((have, want), weight)| i64::from(have - want).pow(2) * weight).sum()
    };
    // The first of equals, so the order of inks decides.
    inks.iter().copied().min_by_key(|(_, colour)| distance(colour)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(rgb: [u8; 3]) -> Source {
        let [r, g, b] = rgb;
        Source { width: 64, rgba: vec![[r, g, b, 255]; 64 * 64] }
    }

    #[test]
    fn white_and_black_stay_plain() {
        for palette in Palette::ALL {
            let white = dither(&plain([255; 3]), palette, Dither::Diffuse);
            assert!(white.iter().all(|index| *index == 0), "{palette}");
            let black = palette.index_of(Ink::Black);
            assert!(
                dither(&plain([0; 3]), palette, Dither::Diffuse).iter().all(|index| Some(*index) == black),
                "{palette}"
            );
        }
    }

    #[test]
    fn middle_grey_keeps_its_light() {
        // sRGB 188 is half of linear light.
        let blacks = dither(&plain([188; 3]), Palette::Bw, Dither::Diffuse).into_iter().map(usize::from).sum::<usize>();
        assert!((1_950..2_150).contains(&blacks), "{blacks} of 4096");
    }

    #[test]
    fn transparent_pixels_are_left_alone() {
        let source = Source { width: 2, rgba: vec![[0, 0, 0, 0], [0, 0, 0, 255]] };
        assert_eq!(dither(&source, Palette::Bw, Dither::Diffuse), [TRANSPARENT, 1]);
    }
}
