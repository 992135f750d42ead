//! Prices: whole or not at all. Shrinks to its floor, then fails; never clipped, never in the ink of its ground,
//! never covered.

use super::{Sketch, align, align_vertical, area};
use crate::ecc::model::{CurrencyPlace, Price};
use crate::ecc::price::{Written, write};
use crate::ecc::value::Shown;
use crate::error::Cause;
use crate::text::{Fonts, Ink, Line, Run, SIZE_MIN, clean, shape};

/// A price's texts, ready to be set at any size.
struct Parts<'a> {
    element: &'a Price,
    written: Written,
    before: String,
    after: String,
}

pub(crate) fn draw(sketch: &mut Sketch<'_>, element: &Price) -> Result<(), Cause> {
    let written = write(element, sketch.values)?;
    draw_written(sketch, element, written)
}

/// Draws a price, or the part of one that `written` holds.
pub(crate) fn draw_written(sketch: &mut Sketch<'_>, element: &Price, written: Written) -> Result<(), Cause> {
    let affix = |words: &Option<crate::ecc::value::Words>| -> Result<String, Cause> {
        let Some(words) = words else { return Ok(String::new()) };
        Ok(words.fill(sketch.values, |part, _| clean(part, false))?.into_owned())
    };
    let parts = Parts { element, written, before: affix(&element.before)?, after: affix(&element.after)? };
    let room = element.area;
    let floor = element.size_min.unwrap_or(element.size);
    let mut found = None;
    let mut size = element.size;
    loop {
        let line = set(sketch.fonts, &parts, size)?;
        let ink = line.ink.unwrap_or(Ink { left: 0, top: 0, right: 0, bottom: 0 });
        if ink.width() <= room.width && ink.height() <= room.height {
            found = Some((size, line, ink));
        }
        if found.is_some() || size <= floor {
            break;
        }
        size = next_size(size, ink, (room.width, room.height)).max(floor);
    }
    let Some((size, line, ink)) = found else {
        let (width, height) = room.size();
        let value = format!("{}{}{}", parts.before, parts.written.text(), parts.after);
        return Err(Cause::DoesNotFit { value, width, height, floor });
    };
    let x = align(element.align, room.x, room.width, ink.width()) - ink.left;
    // Digits are aligned, and moved only as far as commas and signs below them need.
    let digits = digit_height(sketch.fonts, element, size)?;
    let aligned = align_vertical(element.vertical_align, room.y, room.height, digits) + digits;
    let nominal = element.baseline.unwrap_or(aligned);
    let baseline = nominal.min(room.bottom() - ink.bottom).max(room.y - ink.top);
    let placed = ink.shifted(x, baseline);
    let shown = sketch.ink(&element.ink);
    visible(sketch, &parts, placed, shown)?;
    line.draw(&mut sketch.canvas, x, baseline, shown.index);
    if element.strike {
        strike(sketch, placed, size, shown);
    }
    sketch.guard(&element.id, area(placed));
    Ok(())
}

/// The next size to try: one less, or the first that could fit. Widths follow the size to within the rounding of
/// hinted advances, for which a fifth is allowed.
fn next_size(size: u16, ink: Ink, (width, height): (i32, i32)) -> u16 {
    let scaled = |room: i32, ink: i32| i64::from(size) * i64::from(room) * 6 / (i64::from(ink.max(1)) * 5);
    let could = scaled(width, ink.width()).min(scaled(height, ink.height()));
    u16::try_from(could).unwrap_or(u16::MAX).min(size - 1)
}

/// A price in the ink of what lies beneath would lose digits: white on white, "10,00" reads "0,00".
fn visible(sketch: &Sketch<'_>, parts: &Parts<'_>, placed: Ink, shown: Shown) -> Result<(), Cause> {
    if sketch.canvas.contains(area(placed), shown.index) {
        return Err(Cause::Invisible { value: parts.written.text(), ink: shown.ink });
    }
    Ok(())
}

/// A stroke from bottom left to top right, within the ink's bounds so that it stays in the box.
fn strike(sketch: &mut Sketch<'_>, placed: Ink, size: u16, shown: Shown) {
    let thick = (i32::from(size) / 12).max(1);
    let (width, rise) = (placed.width(), (placed.height() - thick).max(0));
    for step in 0..width {
        let y = placed.bottom - thick - rise * step / (width - 1).max(1);
        for down in 0..thick {
            let x = placed.left + step;
            sketch.canvas.span(y + down, x, x + 1, shown.index);
        }
    }
}

fn digit_height(fonts: &mut Fonts, element: &Price, size: u16) -> Result<i32, Cause> {
    Ok(shape(fonts, Run { weight: element.weight, size }, "0")?.ink.map_or(0, |ink| -ink.top))
}

const fn percent(size: u16, percent: u16) -> u16 {
    // At most 400 × 100 fits in 16 bits.
    let size = size * percent / 100;
    if size < SIZE_MIN { SIZE_MIN } else { size }
}

/// The whole price on one baseline at a size.
fn set(fonts: &mut Fonts, parts: &Parts<'_>, size: u16) -> Result<Line, Cause> {
    let Parts { element, written, before, after } = parts;
    fonts.spend(written.text().chars().count() + before.chars().count() + after.chars().count(), size)?;
    let weight = element.weight;
    let big = Run { weight, size };
    let minor = Run { weight, size: if element.split { percent(size, element.minor_percent()) } else { size } };
    let small = Run { weight, size: percent(size, element.currency_percent()) };
    let top = |fonts: &mut Fonts, run: Run| digit_height(fonts, element, run.size);
    let raised = |fonts: &mut Fonts, run: Run| -> Result<i32, Cause> { Ok(top(fonts, run)? - top(fonts, big)?) };
    let locale = written.locale;
    let currency = shape(fonts, small, &written.currency)?;
    let gap = if locale.spaced { i32::from(small.size) / 5 + 1 } else { 1 };
    let under = element.currency_place == CurrencyPlace::Under && !locale.prefix && !written.minor.is_empty();

    let mut line = Line::default();
    let mut pen = 0;
    let put = |line: &mut Line, pen: &mut i32, part: &Line, y: i32| {
        line.append(*pen, y, part);
        *pen += part.advance;
    };
    put(&mut line, &mut pen, &shape(fonts, small, before)?, 0);
    if locale.prefix && !written.currency.is_empty() {
        // Small signs before the number hang from its top, as shelf labels have them.
        let y = if element.split { raised(fonts, small)? } else { 0 };
        put(&mut line, &mut pen, &currency, y);
        pen += gap;
    }
    let major = shape(fonts, big, &format!("{}{}", written.major, written.separator))?;
    put(&mut line, &mut pen, &major, 0);
    let minor_at = pen;
    let digits = shape(fonts, minor, &written.minor)?;
    let y = raised(fonts, minor)?;
    put(&mut line, &mut pen, &digits, y);
    if !locale.prefix && !written.currency.is_empty() {
        if under {
            // Centred under the small digits, on the big ones' baseline; never left of them.
            let x = minor_at + ((digits.advance - currency.advance) / 2).max(0);
            line.append(x, 0, &currency);
            pen = pen.max(x + currency.advance);
        } else {
            pen += gap;
            put(&mut line, &mut pen, &currency, 0);
        }
    }
    put(&mut line, &mut pen, &shape(fonts, small, after)?, 0);
    Ok(line)
}
