//! The document's limits and rules, checked once when a model is read, so that drawing meets only sound layouts.

use std::collections::BTreeSet;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use picture::{PIXELS_MAX, SIDE_MAX};

use super::ModelError;
use super::condition::Condition;
use super::model::{Barcode, CurrencyPlace, Document, Element, Ellipse, Image, Line, Price, Rect, Text, Variant};
use super::price::DECIMALS_MAX;
use crate::canvas::Area;
use crate::dither::Source;
use crate::text::{SIZE_MAX, SIZE_MIN};

/// Longest document, bytes.
pub const DOCUMENT_BYTES_MAX: usize = 65_536;
/// Most variants of a model: more panel sizes than a shop has.
pub const VARIANTS_MAX: usize = 16;
/// Most elements of a variant.
pub const ELEMENTS_MAX: usize = 200;
/// Most pixels of a model's embedded pictures together: decoding allocates 4 bytes for each.
pub const PICTURE_PIXELS_MAX: u64 = 1_000_000;

/// Version of the format this reads.
const FORMAT: u32 = 1;
/// Longest model name and element id, characters.
const NAME_CHARS_MAX: usize = 64;
/// Most conditions of an element.
const CONDITIONS_MAX: usize = 8;
/// Widest stroke, pixels.
const STROKE_MAX: u16 = 64;
/// Most lines of a text.
const LINES_MAX: u16 = 40;
/// Largest module of a barcode, pixels.
const MODULE_MAX: u16 = 16;

pub(crate) type Rule = Result<(), String>;

pub(crate) fn check(document: &mut Document) -> Result<(), ModelError> {
    let rule = |holds: bool, rule: &str| if holds { Ok(()) } else { Err(ModelError::Document(rule.to_owned())) };
    rule(document.ecc == FORMAT, "\"ecc\" is the format's version, 1")?;
    rule((1..=NAME_CHARS_MAX).contains(&document.name.chars().count()), "\"name\" has 1 to 64 characters")?;
    rule((1..=VARIANTS_MAX).contains(&document.variants.len()), "there are 1 to 16 variants")?;
    let mut sizes = BTreeSet::new();
    let mut pixels = PICTURE_PIXELS_MAX;
    for variant in &mut document.variants {
        let (width, height) = (variant.width, variant.height);
        let area = u64::from(width) * u64::from(height);
        let sound = (1..=SIDE_MAX).contains(&width) && (1..=SIDE_MAX).contains(&height);
        rule(sound && area <= PIXELS_MAX as u64, "a variant's size is out of range")?;
        rule(sizes.insert((width, height)), "two variants have the same size")?;
        rule(variant.elements.len() <= ELEMENTS_MAX, "a variant has at most 200 elements")?;
        self::variant(variant, &mut pixels)?;
    }
    Ok(())
}

fn variant(variant: &mut Variant, pixels: &mut u64) -> Result<(), ModelError> {
    let side = |side: u32| i32::try_from(side).unwrap_or(0);
    let sheet = Area { x: 0, y: 0, width: side(variant.width), height: side(variant.height) };
    let mut ids = BTreeSet::new();
    for element in &mut variant.elements {
        let id = element.id().to_owned();
        let fail = |rule: String| ModelError::Element { element: id.chars().take(NAME_CHARS_MAX).collect(), rule };
        name(&id).map_err(fail)?;
        conditions(element.when()).map_err(fail)?;
        match element {
            Element::Text(element) => text(element, sheet),
            Element::Price(element) => price(element, sheet),
            Element::Rect(element) => rect(element, sheet),
            Element::Ellipse(element) => ellipse(element, sheet),
            Element::Line(element) => line(element, sheet),
            Element::Picture(element) => image(element, sheet, pixels),
            Element::Barcode(element) => barcode(element, sheet),
        }
        .map_err(fail)?;
        if !ids.insert(id.clone()) {
            return Err(fail("another element has the same id".to_owned()));
        }
    }
    Ok(())
}

fn rule(holds: bool, rule: &str) -> Rule {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}

pub(crate) fn name(id: &str) -> Rule {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    rule((1..=NAME_CHARS_MAX).contains(&id.len()) && id.bytes().all(plain), "an id has 1 to 64 of letters, digits, _ -")
}

pub(crate) fn conditions(conditions: &[Condition]) -> Rule {
    rule(conditions.len() <= CONDITIONS_MAX, "an element has at most 8 conditions")?;
    for condition in conditions {
        rule(
            condition.is.compares() == condition.value.is_some(),
            "a condition has a \"value\" exactly when it compares (equals, not_equals, greater, less)",
        )?;
    }
    Ok(())
}

pub(crate) fn inside(area: Area, sheet: Area) -> Rule {
    let sound = area.x >= 0 && area.y >= 0 && area.width >= 1 && area.height >= 1;
    rule(sound && area.right() <= sheet.width && area.bottom() <= sheet.height, "its box does not lie on the layout")
}

fn sizes(size: u16, floor: Option<u16>) -> Rule {
    let range = SIZE_MIN..=SIZE_MAX;
    rule(range.contains(&size), "\"size\" is 10 to 400 px")?;
    rule(floor.is_none_or(|floor| range.contains(&floor) && floor <= size), "\"size_min\" is 10 px to \"size\"")
}

pub(crate) fn text(text: &Text, sheet: Area) -> Rule {
    inside(text.area, sheet)?;
    sizes(text.size, text.size_min)?;
    rule((1..=LINES_MAX).contains(&text.lines_max), "\"lines_max\" is 1 to 40")?;
    rule((80..=200).contains(&text.line_height), "\"line_height\" is 80 to 200 percent")
}

pub(crate) fn price(price: &Price, sheet: Area) -> Rule {
    inside(price.area, sheet)?;
    sizes(price.size, price.size_min)?;
    rule(price.decimals.is_none_or(|decimals| decimals <= DECIMALS_MAX), "\"decimals\" is 0 to 4")?;
    let percent = |percent: Option<u16>| percent.is_none_or(|percent| (20..=100).contains(&percent));
    rule(percent(price.minor_percent) && percent(price.currency_percent), "percentages are 20 to 100")?;
    rule(price.split || price.minor_percent.is_none(), "\"minor_percent\" is for a split price")?;
    rule(
        price.currency_place == CurrencyPlace::Inline
            || (price.split && price.minor_percent() + price.currency_percent() <= 95),
        "a currency under the small digits needs a split price, and percentages that add up to at most 95",
    )
}

fn rect(rect: &Rect, sheet: Area) -> Rule {
    inside(rect.area, sheet)?;
    rule(rect.fill.is_some() || rect.stroke.is_some(), "a shape has a fill or a stroke")?;
    stroke(rect.stroke_width)?;
    let side = rect.area.width.min(rect.area.height);
    rule(i32::from(rect.radius) * 2 <= side, "\"radius\" is at most half the shorter side")
}

fn ellipse(ellipse: &Ellipse, sheet: Area) -> Rule {
    inside(ellipse.area, sheet)?;
    rule(ellipse.fill.is_some() || ellipse.stroke.is_some(), "a shape has a fill or a stroke")?;
    stroke(ellipse.stroke_width)
}

fn stroke(width: u16) -> Rule {
    rule((1..=STROKE_MAX).contains(&width), "\"stroke_width\" is 1 to 64 px")
}

fn line(line: &Line, sheet: Area) -> Rule {
    stroke(line.stroke_width)?;
    let on = |(x, y): (i32, i32)| (0..sheet.width).contains(&x) && (0..sheet.height).contains(&y);
    rule(on(line.from) && on(line.to), "its ends do not lie on the layout")
}

pub(crate) fn barcode(barcode: &Barcode, sheet: Area) -> Rule {
    inside(barcode.area, sheet)?;
    let (least, most) = (barcode.module_min, barcode.module_max);
    rule(
        (1..=MODULE_MAX).contains(&least) && least <= most && most <= MODULE_MAX,
        "modules are 1 to 16 px, \"module_min\" at most \"module_max\"",
    )?;
    rule(!barcode.readable || barcode.symbology().is_linear(), "only linear barcodes have readable text")
}

pub(crate) fn image(image: &mut Image, sheet: Area, pixels: &mut u64) -> Rule {
    inside(image.area, sheet)?;
    let (width, height) = image.area.size();
    let left = pixels.checked_sub(u64::from(width) * u64::from(height));
    *pixels = left.ok_or("the model's pictures have more than 1,000,000 pixels together")?;
    let bytes = STANDARD.decode(&image.png).map_err(|_| "\"png\" is no base64")?;
    image.png = String::new();
    image.source = Some(decode(&bytes, width, height)?);
    Ok(())
}

/// The pixels of a PNG whose size is known beforehand, so nothing is allocated for another.
pub(crate) fn decode(bytes: &[u8], width: u32, height: u32) -> Result<Source, String> {
    let broken = |cause: png::DecodingError| format!("its PNG cannot be read: {cause}");
    let pixels = usize::try_from(u64::from(width) * u64::from(height)).unwrap_or(usize::MAX);
    // 16-bit RGBA is the largest form; the rest is for the decoder's own buffers.
    let limits = png::Limits { bytes: pixels.saturating_mul(8).saturating_add(1 << 20) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    // Texts and profiles say nothing about inks and may unpack to anything.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let header = decoder.read_header_info().map_err(broken)?;
    if (header.width, header.height) != (width, height) {
        return Err(format!("its PNG has {} × {} pixels, its box {width} × {height}", header.width, header.height));
    }
    let mut reader = decoder.read_info().map_err(broken)?;
    let size = reader.output_buffer_size().ok_or("its PNG is too large")?;
    let mut raw = vec![0; size];
    let frame = reader.next_frame(&mut raw).map_err(broken)?;
    let raw = raw.get(..frame.buffer_size()).unwrap_or_default();
    let rgba: Vec<[u8; 4]> = match frame.color_type {
        png::ColorType::Grayscale => raw.iter().map(|v| [*v, *v, *v, 255]).collect(),
        png::ColorType::GrayscaleAlpha => raw.as_chunks().0.iter().map(|[v, a]| [*v, *v, *v, *a]).collect(),
        png::ColorType::Rgb => raw.as_chunks().0.iter().map(|[r, g, b]| [*r, *g, *b, 255]).collect(),
        png::ColorType::Rgba => raw.as_chunks().0.to_vec(),
        png::ColorType::Indexed => return Err("its PNG was not expanded".to_owned()),
    };
    if rgba.len() == pixels { Ok(Source { width, rgba }) } else { Err("its PNG is incomplete".to_owned()) }
}

/// The size a PNG says it has, without decoding it.
pub(crate) fn png_size(bytes: &[u8]) -> Result<(u32, u32), String> {
    let limits = png::Limits { bytes: 1 << 20 };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    let header = decoder.read_header_info().map_err(|cause| format!("its PNG cannot be read: {cause}"))?;
    Ok((header.width, header.height))
}
