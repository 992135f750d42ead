//! Barcodes: whole modules, full quiet zones, black on a white box.

use picture::Ink;

use super::{Sketch, align, align_vertical};
use crate::barcode::{Symbol, encode};
use crate::canvas::Area;
use crate::ecc::model::Barcode;
use crate::ecc::value::{Inks, index};
use crate::error::Cause;
use crate::text::{Run, SIZE_MIN, Weight, clean, shape};

/// Shortest bars of a linear barcode, pixels: below, a scanner has to be aimed too well.
const BARS_MIN: i32 = 12;

/// Size of the readable digits: about a fifth of the height, between legible and needlessly large.
fn readable_size(height: i32) -> u16 {
    u16::try_from(height / 5).unwrap_or(0).clamp(11, 32)
}

pub(crate) fn draw(sketch: &mut Sketch<'_>, element: &Barcode) -> Result<(), Cause> {
    let symbology = element.symbology();
    let value = element.value.fill(sketch.values, |part, _| clean(part, false))?;
    let value = value.trim();
    let symbol = encode(symbology, value).map_err(|why| Cause::Barcode {
        value: value.to_owned(),
        symbology: symbology.name(),
        why,
    })?;
    let room = element.area;
    let rows = count(symbol.rows.len() + 2 * symbol.quiet.vertical);
    let columns = count(symbol.width + symbol.quiet.left + symbol.quiet.right);
    let text_height = if element.readable { i32::from(readable_size(room.height)) } else { 0 };
    let (least, most) = (i32::from(element.module_min), i32::from(element.module_max));
    let linear = symbology.is_linear();
    let height_at = |module: i32| if linear { BARS_MIN + text_height } else { rows * module };
    let fits = |module: &i32| columns * module <= room.width && height_at(*module) <= room.height;
    let Some(module) = (least..=most).rev().find(fits) else {
        let (width, height) = room.size();
        return Err(Cause::BarcodeDoesNotFit {
            symbology: symbology.name(),
            value: value.to_owned(),
            need_width: (columns * least).unsigned_abs(),
            need_height: height_at(least).unsigned_abs(),
            width,
            height,
            module: least.unsigned_abs(),
        });
    };
    let (width, height) = (columns * module, if linear { room.height } else { rows * module });
    let placed = Area {
        x: align(element.align, room.x, room.width, width),
        y: align_vertical(element.vertical_align, room.y, room.height, height),
        width,
        height,
    };
    let white = index(&Inks::one(Ink::White), sketch.palette).index;
    let black = index(&Inks::one(Ink::Black), sketch.palette).index;
    sketch.canvas.fill(placed, white);
    modules(sketch, &symbol, placed, Pen { module, black, text_height, linear });
    if element.readable {
        readable(sketch, &symbol, placed, Pen { module, black, text_height, linear })?;
    }
    sketch.guard(&element.id, placed);
    Ok(())
}

/// What bars are drawn with.
#[derive(Clone, Copy)]
struct Pen {
    /// Pixels.
    module: i32,
    /// Index.
    black: u8,
    /// Pixels kept for readable text.
    text_height: i32,
    linear: bool,
}

fn modules(sketch: &mut Sketch<'_>, symbol: &Symbol, placed: Area, pen: Pen) {
    let left = placed.x + count(symbol.quiet.left) * pen.module;
    let top = placed.y + count(symbol.quiet.vertical) * pen.module;
    for (row, modules) in (0..).zip(&symbol.rows) {
        let (y, height) =
            if pen.linear { (top, placed.height - pen.text_height) } else { (top + row * pen.module, pen.module) };
        let mut x = left;
        for run in modules.chunk_by(|a, b| a == b) {
            let width = count(run.len()) * pen.module;
            if run.first() == Some(&true) {
                sketch.canvas.fill(Area { x, y, width, height }, pen.black);
            }
            x += width;
        }
    }
    // Guard bars reach half way down beside the digits.
    let bars = symbol.rows.first().map(Vec::as_slice).unwrap_or_default();
    for at in symbol.guards.iter().flat_map(|(from, to)| *from..*to).filter(|at| bars.get(*at) == Some(&true)) {
        let y = placed.bottom() - pen.text_height;
        let guard = Area { x: left + count(at) * pen.module, y, width: pen.module, height: pen.text_height / 2 };
        sketch.canvas.fill(guard, pen.black);
    }
}

fn readable(sketch: &mut Sketch<'_>, symbol: &Symbol, placed: Area, pen: Pen) -> Result<(), Cause> {
    for part in &symbol.readable {
        let (from, to) = (count(part.from) * pen.module, count(part.to) * pen.module);
        let mut size = u16::try_from(pen.text_height).unwrap_or(SIZE_MIN);
        loop {
            let line = shape(sketch.fonts, Run { weight: Weight::Regular, size }, &part.text)?;
            if let Some(ink) = line.ink.filter(|ink| ink.width() <= to - from && ink.height() < pen.text_height) {
                let x = placed.x + from + (to - from - ink.width()) / 2 - ink.left;
                line.draw(&mut sketch.canvas, x, placed.bottom() - ink.bottom.max(0), pen.black);
                break;
            }
            if size <= SIZE_MIN {
                let (width, height) = ((to - from).unsigned_abs(), pen.text_height.unsigned_abs());
                return Err(Cause::DoesNotFit { value: part.text.clone(), width, height, floor: SIZE_MIN });
            }
            size -= 1;
        }
    }
    Ok(())
}

fn count(modules: usize) -> i32 {
    i32::try_from(modules).unwrap_or(i32::MAX / 1_024)
}
