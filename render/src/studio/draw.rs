//! Drawing one label: layers and filled elements in document order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::bind::{Filled, Picture};
use super::date::Pattern;
use super::geometry::short;
use super::layer::Span;
use super::limits::PICTURE_VALUE_BYTES_MAX;
use super::mapping::Part;
use crate::canvas::Area;
use crate::dither::dither;
use crate::ecc::check;
use crate::ecc::draw::{self, Sketch, align, align_vertical};
use crate::ecc::price::{Written, write};
use crate::error::Cause;
use crate::text::clean;

/// Puts a layer's pixels down.
pub(crate) fn layer(sketch: &mut Sketch<'_>, spans: &[Span], indices: &[u8]) {
    for span in spans {
        let index = indices.get(usize::from(span.code)).copied().unwrap_or(0);
        sketch.canvas.span(span.y.into(), span.from.into(), span.to.into(), index);
    }
}

pub(crate) fn filled(sketch: &mut Sketch<'_>, filled: &Filled) -> Result<(), Cause> {
    match filled {
        Filled::Text(text) => draw::text::draw(sketch, text),
        Filled::Date { text, locale, pattern } => {
            let value = text.words.plain(sketch.values)?;
            let written = match pattern {
                Some(pattern) => pattern.write(&value)?,
                None => of_locale(&locale.plain(sketch.values)?, &value)?.write(&value)?,
            };
            draw::text::set(sketch, text, &clean(&written, false)?)
        }
        Filled::Price { price, part, separator } => {
            let written = only(write(price, sketch.values)?, *part, *separator);
            if *part != Part::Whole && written.text().trim().is_empty() {
                return Ok(());
            }
            draw::price::draw_written(sketch, price, written)
        }
        Filled::Barcode(barcode) => draw::barcode::draw(sketch, barcode),
        Filled::Picture(picture) => self::picture(sketch, picture),
    }
}

fn of_locale(tag: &str, value: &str) -> Result<Pattern, Cause> {
    let why = || format!("the locale \"{}\" is not known", short(tag));
    Pattern::of_locale(tag.trim()).ok_or_else(|| Cause::Date { value: short(value), why: why() })
}

/// A part of a price; what is left out is empty.
fn only(written: Written, part: Part, separator: bool) -> Written {
    let Written { major, separator: point, minor, currency, locale } = written;
    let none = String::new;
    match part {
        Part::Whole => Written { major, separator: point, minor, currency, locale },
        Part::Integer => {
            let point = if separator && !minor.is_empty() { point } else { none() };
            Written { major, separator: point, minor: none(), currency: none(), locale }
        }
        Part::Fraction => Written { major: none(), separator: none(), minor, currency: none(), locale },
        Part::Currency => Written { major: none(), separator: none(), minor: none(), currency, locale },
    }
}

/// A PNG in base64, no larger than its box; nothing is scaled.
fn picture(sketch: &mut Sketch<'_>, picture: &Picture) -> Result<(), Cause> {
    let value = picture.value.plain(sketch.values)?;
    let fail = |why: String| Cause::Picture { why };
    if value.len() > PICTURE_VALUE_BYTES_MAX {
        let why = format!("its value has {} bytes, at most {PICTURE_VALUE_BYTES_MAX} are allowed", value.len());
        return Err(fail(why));
    }
    let value = value.trim();
    let value = value.strip_prefix("data:image/png;base64,").unwrap_or(value);
    let bytes = STANDARD.decode(value).map_err(|_| fail("its value is no base64".to_owned()))?;
    let (width, height) = check::png_size(&bytes).map_err(fail)?;
    let room = picture.area;
    let side = |side: u32| i32::try_from(side).unwrap_or(i32::MAX);
    let (across, down) = (side(width), side(height));
    if across > room.width || down > room.height {
        return Err(fail(format!("it has {width} × {height} pixels, its box {} × {}", room.width, room.height)));
    }
    let source = check::decode(&bytes, width, height).map_err(fail)?;
    let indices = dither(&source, sketch.palette, picture.dither);
    let area = Area {
        x: align(picture.align, room.x, room.width, across),
        y: align_vertical(picture.vertical_align, room.y, room.height, down),
        width: across,
        height: down,
    };
    sketch.canvas.blit(area, &indices);
    Ok(())
}
