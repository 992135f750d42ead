//! Embedded pictures, one source pixel a panel pixel.

use ::picture::Palette;

use super::Sketch;
use crate::dither::dither;
use crate::ecc::model::Image;

pub(crate) fn draw(sketch: &mut Sketch<'_>, image: &Image) {
    let Some(source) = &image.source else { return };
    let at = match sketch.palette {
        Palette::Bw => 0,
        Palette::Bwr => 1,
        Palette::Bwry => 2,
        Palette::Grey4 => 3,
        Palette::Spectra6 => 4,
    };
    // The outcome depends on the document and the palette alone, so it is made once for each.
    let make = || dither(source, sketch.palette, image.dither);
    if let Some(cell) = image.dithered.get(at) {
        let indices = cell.get_or_init(make);
        sketch.canvas.blit(image.area, indices);
    }
}
