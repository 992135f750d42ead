//! The mappings as serde reads them. Every field is documented in `docs/studio-design.md`; a test holds the schema
//! there to these types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::barcode::Correction;
use crate::canvas::Area;
use crate::dither::Dither;
use crate::ecc::condition::Condition;
use crate::ecc::model::{Align, CurrencyPlace, Overflow, ShowCurrency, SymbologyName, VerticalAlign};
use crate::ecc::value::{Inks, Words};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mappings {
    /// Version of the format; 1.
    pub(crate) studio: u32,
    pub(crate) name: String,
    /// Inks for colours that should not go to the nearest ink.
    #[serde(default)]
    pub(crate) inks: BTreeMap<String, Inks>,
    pub(crate) elements: Elements,
}

/// Mappings by element id, in document order; a repeated id is refused.
#[derive(Debug)]
pub(crate) struct Elements(pub(crate) Vec<(String, Mapping)>);

#[derive(Debug, Deserialize)]
#[serde(tag = "format", rename_all = "snake_case")]
pub(crate) enum Mapping {
    Text(Text),
    Price(Price),
    Date(Date),
    Barcode(Barcode),
    Picture(Picture),
    Visibility(Visibility),
}

impl Mapping {
    pub(crate) fn when(&self) -> &[Condition] {
        match self {
            Self::Text(mapping) => &mapping.when,
            Self::Price(mapping) => &mapping.when,
            Self::Date(mapping) => &mapping.when,
            Self::Barcode(mapping) => &mapping.when,
            Self::Picture(mapping) => &mapping.when,
            Self::Visibility(mapping) => &mapping.when,
        }
    }
}

/// Where a text may stand: pixels of the design, or the id of a `rect`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a box: [x, y, width, height], or the id of a rect")]
pub(crate) enum Room {
    Rect(String),
    Area(Area),
}

/// How a text stands in its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Vertical {
    Top,
    Middle,
    Bottom,
    /// The first baseline stays where the SVG text has it.
    Baseline,
}

impl Vertical {
    pub(crate) const fn align(self) -> VerticalAlign {
        match self {
            Self::Top => VerticalAlign::Top,
            Self::Middle | Self::Baseline => VerticalAlign::Middle,
            Self::Bottom => VerticalAlign::Bottom,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) value: Words,
    #[serde(rename = "box")]
    pub(crate) room: Option<Room>,
    pub(crate) vertical_align: Option<Vertical>,
    pub(crate) size_min: Option<u16>,
    #[serde(default = "one")]
    pub(crate) lines_max: u16,
    #[serde(default = "line_height")]
    pub(crate) line_height: u16,
    #[serde(default)]
    pub(crate) overflow: Overflow,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Date {
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) value: Words,
    pub(crate) pattern: Option<String>,
    #[serde(default = "item_locale")]
    pub(crate) locale: Words,
    #[serde(rename = "box")]
    pub(crate) room: Option<Room>,
    pub(crate) vertical_align: Option<Vertical>,
    pub(crate) size_min: Option<u16>,
}

/// Which part of a price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    #[default]
    Whole,
    Integer,
    Fraction,
    Currency,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) value: Words,
    #[serde(default = "item_currency")]
    pub(crate) currency: Words,
    #[serde(default = "item_locale")]
    pub(crate) locale: Words,
    #[serde(default)]
    pub(crate) part: Part,
    /// Of an integer part: the decimal separator follows it, if digits follow.
    #[serde(default)]
    pub(crate) separator: bool,
    pub(crate) decimals: Option<u8>,
    #[serde(default)]
    pub(crate) show_currency: ShowCurrency,
    #[serde(default)]
    pub(crate) split: bool,
    #[serde(default)]
    pub(crate) currency_place: CurrencyPlace,
    pub(crate) minor_percent: Option<u16>,
    pub(crate) currency_percent: Option<u16>,
    pub(crate) before: Option<Words>,
    pub(crate) after: Option<Words>,
    #[serde(rename = "box")]
    pub(crate) room: Option<Room>,
    pub(crate) vertical_align: Option<Vertical>,
    pub(crate) size_min: Option<u16>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Barcode {
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) symbology: SymbologyName,
    pub(crate) value: Words,
    #[serde(default = "two")]
    pub(crate) module_min: u16,
    #[serde(default = "six")]
    pub(crate) module_max: u16,
    #[serde(default)]
    pub(crate) readable: bool,
    #[serde(default)]
    pub(crate) correction: Correction,
    #[serde(default = "center")]
    pub(crate) align: Align,
    #[serde(default)]
    pub(crate) vertical_align: VerticalAlign,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Picture {
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) value: Words,
    #[serde(default)]
    pub(crate) dither: Dither,
    #[serde(default = "center")]
    pub(crate) align: Align,
    #[serde(default)]
    pub(crate) vertical_align: VerticalAlign,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Visibility {
    pub(crate) when: Vec<Condition>,
}

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> de::Visitor<'de> for Pairs {
            type Value = Elements;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("mappings by element id")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Elements, A::Error> {
                let mut ids = BTreeSet::new();
                let mut pairs = Vec::new();
                while let Some((id, mapping)) = map.next_entry::<String, Mapping>()? {
                    if !ids.insert(id.clone()) {
                        return Err(de::Error::custom(format!("\"{id}\" is mapped twice")));
                    }
                    pairs.push((id, mapping));
                }
                Ok(Elements(pairs))
            }
        }
        from.deserialize_map(Pairs)
    }
}

const fn one() -> u16 {
    1
}
const fn two() -> u16 {
    2
}
const fn six() -> u16 {
    6
}
const fn center() -> Align {
    Align::Center
}
const fn line_height() -> u16 {
    115
}
fn item_currency() -> Words {
    Words::item("currency")
}
fn item_locale() -> Words {
    Words::item("locale")
}
