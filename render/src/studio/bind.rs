//! A mapping and the SVG element it fills, together: the element of the ECC engine that draws values, so a price, a text
//! or a barcode looks and fails alike in both kinds of layout.

use std::collections::BTreeMap;

use super::colour::Colours;
use super::date::Pattern;
use super::geometry::{short, whole};
use super::mapping::{self, Mapping, Part, Room, Vertical};
use super::walk::{Carrier, TextCarrier};
use super::words::pixels;
use crate::canvas::Area;
use crate::dither::Dither;
use crate::ecc::check;
use crate::ecc::model::{self, Align, CurrencyPlace, Family, Overflow, ShowCurrency, VerticalAlign};
use crate::ecc::value::{Inks, Words};

/// What is drawn for each label.
#[derive(Debug)]
pub(crate) enum Filled {
    Text(model::Text),
    Date { text: model::Text, locale: Words, pattern: Option<Pattern> },
    Price { price: model::Price, part: Part, separator: bool },
    Barcode(model::Barcode),
    Picture(Picture),
}

/// A picture given as a value.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) area: Area,
    pub(crate) value: Words,
    pub(crate) dither: Dither,
    pub(crate) align: Align,
    pub(crate) vertical_align: VerticalAlign,
}

/// What mappings refer to.
pub(crate) struct Surroundings<'a> {
    pub(crate) sheet: Area,
    pub(crate) rects: &'a BTreeMap<String, Result<Area, String>>,
    pub(crate) colours: &'a Colours,
}

/// A mapped text's look and place.
struct Lettering<'a> {
    id: &'a str,
    carrier: TextCarrier,
    place: Place,
    ink: Inks,
}

/// Where a text stands.
struct Place {
    area: Area,
    baseline: Option<i32>,
    vertical_align: VerticalAlign,
    size: u16,
}

pub(crate) fn bind(id: &str, mapping: Mapping, carrier: Carrier, around: &Surroundings<'_>) -> Result<Filled, String> {
    match (mapping, carrier) {
        (Mapping::Text(mapping), Carrier::Text(carrier)) => {
            let stand = (mapping.room.as_ref(), mapping.vertical_align);
            let lettering = Lettering::new(id, carrier, stand, around)?;
            if mapping.room.is_none() && mapping.lines_max > 1 {
                return Err("a text of several lines needs a \"box\"".to_owned());
            }
            let mut text = lettering.text(mapping.value, mapping.size_min)?;
            text.lines_max = mapping.lines_max;
            text.line_height = mapping.line_height;
            text.overflow = mapping.overflow;
            check::text(&text, around.sheet)?;
            Ok(Filled::Text(text))
        }
        (Mapping::Date(mapping), Carrier::Text(carrier)) => {
            let stand = (mapping.room.as_ref(), mapping.vertical_align);
            let text = Lettering::new(id, carrier, stand, around)?.text(mapping.value, mapping.size_min)?;
            check::text(&text, around.sheet)?;
            let pattern = mapping.pattern.as_deref().map(Pattern::parse).transpose()?;
            Ok(Filled::Date { text, locale: mapping.locale, pattern })
        }
        (Mapping::Price(mapping), Carrier::Text(carrier)) => price(id, mapping, carrier, around),
        (Mapping::Barcode(mapping), Carrier::Box(area)) => {
            let barcode = model::Barcode {
                id: id.to_owned(),
                area,
                when: Vec::new(),
                symbology: mapping.symbology,
                value: mapping.value,
                module_min: mapping.module_min,
                module_max: mapping.module_max,
                readable: mapping.readable,
                correction: mapping.correction,
                align: mapping.align,
                vertical_align: mapping.vertical_align,
            };
            check::barcode(&barcode, around.sheet)?;
            Ok(Filled::Barcode(barcode))
        }
        (Mapping::Picture(mapping), Carrier::Box(area)) => {
            check::inside(area, around.sheet)?;
            let mapping::Picture { value, dither, align, vertical_align, .. } = mapping;
            Ok(Filled::Picture(Picture { area, value, dither, align, vertical_align }))
        }
        _ => Err("the mapping does not fit the element".to_owned()),
    }
}

impl<'a> Lettering<'a> {
    fn new(
        id: &'a str,
        carrier: TextCarrier,
        (room, vertical): (Option<&Room>, Option<Vertical>),
        around: &Surroundings<'_>,
    ) -> Result<Self, String> {
        let place = place(carrier, room, vertical, around)?;
        Ok(Self { id, carrier, place, ink: around.colours.inks(carrier.fill) })
    }

    /// One line of text; the caller sets what else its mapping says.
    fn text(self, words: Words, size_min: Option<u16>) -> Result<model::Text, String> {
        let Self { id, carrier, place, ink } = self;
        if carrier.struck {
            return Err("only a price can be struck through".to_owned());
        }
        Ok(model::Text {
            id: id.to_owned(),
            area: place.area,
            when: Vec::new(),
            words,
            _font: Family::SansCondensed,
            weight: carrier.weight,
            size: place.size,
            size_min,
            align: carrier.anchor,
            vertical_align: place.vertical_align,
            baseline: place.baseline,
            lines_max: 1,
            line_height: 115,
            overflow: Overflow::Error,
            ink,
        })
    }
}

fn price(id: &str, mapping: mapping::Price, carrier: TextCarrier, around: &Surroundings<'_>) -> Result<Filled, String> {
    let stand = (mapping.room.as_ref(), mapping.vertical_align);
    let Lettering { place, ink, .. } = Lettering::new(id, carrier, stand, around)?;
    let part = mapping.part;
    let whole_only = [
        mapping.split,
        mapping.currency_place != CurrencyPlace::Inline,
        mapping.minor_percent.is_some(),
        mapping.currency_percent.is_some(),
        mapping.before.is_some(),
        mapping.after.is_some(),
    ];
    if part != Part::Whole && whole_only.contains(&true) {
        return Err("a part of a price has no split, currency_place, percentages, before or after".to_owned());
    }
    if mapping.separator && part != Part::Integer {
        return Err("\"separator\" is for the integer part".to_owned());
    }
    if part == Part::Currency && mapping.show_currency == ShowCurrency::None {
        return Err("a currency part that shows no currency".to_owned());
    }
    let price = model::Price {
        id: id.to_owned(),
        area: place.area,
        when: Vec::new(),
        value: mapping.value,
        currency: mapping.currency,
        locale: mapping.locale,
        decimals: mapping.decimals,
        show_currency: mapping.show_currency,
        split: mapping.split,
        currency_place: mapping.currency_place,
        minor_percent: mapping.minor_percent,
        currency_percent: mapping.currency_percent,
        before: mapping.before,
        after: mapping.after,
        strike: carrier.struck,
        _font: Family::SansCondensed,
        weight: carrier.weight,
        size: place.size,
        size_min: mapping.size_min,
        align: carrier.anchor,
        vertical_align: place.vertical_align,
        baseline: place.baseline,
        ink,
    };
    check::price(&price, around.sheet)?;
    Ok(Filled::Price { price, part, separator: mapping.separator })
}

/// Without a box a text stands where the SVG has it, with the room its anchor leaves on the sheet.
fn place(
    carrier: TextCarrier,
    room: Option<&Room>,
    vertical: Option<Vertical>,
    around: &Surroundings<'_>,
) -> Result<Place, String> {
    let size = pixels(carrier.size)?;
    let (x, y) = (whole(carrier.x), whole(carrier.y));
    let Some(room) = room else {
        if vertical.is_some_and(|vertical| vertical != Vertical::Baseline) {
            return Err("\"vertical_align\" needs a \"box\"".to_owned());
        }
        let sheet = around.sheet;
        if !(0..=sheet.width).contains(&x) || !(0..=sheet.height).contains(&y) {
            return Err("its anchor does not lie on the design".to_owned());
        }
        let half = x.min(sheet.width - x);
        let (left, width) = match carrier.anchor {
            Align::Left => (x, sheet.width - x),
            Align::Center => (x - half, 2 * half),
            Align::Right => (0, x),
        };
        let area = Area { x: left, y: 0, width, height: sheet.height };
        return Ok(Place { area, baseline: Some(y), vertical_align: VerticalAlign::Top, size });
    };
    let area = match room {
        Room::Area(area) => *area,
        Room::Rect(id) => match around.rects.get(id) {
            Some(area) => area.clone()?,
            None => return Err(format!("its box, \"{}\", is no <rect> of the SVG", short(id))),
        },
    };
    let vertical = vertical.unwrap_or(Vertical::Middle);
    let baseline = (vertical == Vertical::Baseline).then_some(y);
    Ok(Place { area, baseline, vertical_align: vertical.align(), size })
}
