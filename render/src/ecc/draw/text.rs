//! Texts: wrapped, shrunk, aligned.

use std::borrow::Cow;

use super::{Sketch, align, align_vertical};
use crate::ecc::model::{Overflow, Text};
use crate::error::Cause;
use crate::text::{Request, clean, fit};

/// Ascent and descent of the embedded family in 1/1000 em (1901 and 483 of 2048 units): the nominal height of a line.
const ASCENT: i32 = 928;
const DESCENT: i32 = 236;

pub(crate) fn draw(sketch: &mut Sketch<'_>, element: &Text) -> Result<(), Cause> {
    // Values are cleaned one by one, so that a line break in one is refused while the layout's own are kept.
    let filled = element.words.fill(sketch.values, |part, value| clean(part, !value))?;
    // Joining parts may put a mark behind its letter.
    let text: Cow<'_, str> = clean(&filled, true)?;
    set(sketch, element, &text)
}

/// Draws a clean text as the element says.
pub(crate) fn set(sketch: &mut Sketch<'_>, element: &Text, text: &str) -> Result<(), Cause> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let area = element.area;
    let request = Request {
        text,
        weight: element.weight,
        size: element.size,
        size_min: element.size_min.unwrap_or(element.size),
        line_height: element.line_height,
        lines_max: element.lines_max.into(),
        ellipsis: element.overflow == Overflow::Ellipsis,
        width: area.width,
        height: area.height,
    };
    let Some(fit) = fit(sketch.fonts, &request)? else {
        let (width, height) = area.size();
        return Err(Cause::DoesNotFit { value: text.to_owned(), width, height, floor: request.size_min });
    };
    let per_mille = |part: i32| (i32::from(fit.size) * part + 500) / 1_000;
    let gaps = fit.pitch * (i32::try_from(fit.lines.len()).unwrap_or(1) - 1);
    let height = per_mille(ASCENT) + gaps + per_mille(DESCENT);
    let aligned = align_vertical(element.vertical_align, area.y, area.height, height) + per_mille(ASCENT);
    let nominal = element.baseline.unwrap_or(aligned);
    // Nominal heights keep baselines level between labels; ink that would leave the box moves the whole block.
    let lowest = area.bottom() - fit.ink_bottom;
    let mut baseline = nominal.min(lowest).max(area.y - fit.ink_top);
    let index = sketch.ink(&element.ink).index;
    for line in &fit.lines {
        if let Some(ink) = line.ink {
            let x = align(element.align, area.x, area.width, line.advance);
            // A glyph may reach past its advance: the ink stays in the box.
            let x = x.min(area.right() - ink.right).max(area.x - ink.left);
            line.draw(&mut sketch.canvas, x, baseline, index);
        }
        baseline += fit.pitch;
    }
    Ok(())
}
