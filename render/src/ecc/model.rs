//! The document as serde reads it. Every field is documented in `docs/ecc-layout.md`; a test holds the schema there
//! to these types.

use std::sync::OnceLock;

use picture::Ink;
use serde::{Deserialize, Deserializer, de};

use super::condition::Condition;
use super::value::{Inks, Words};
use crate::barcode::{Correction, Symbology};
use crate::canvas::Area;
use crate::dither::{Dither, Source};
use crate::text::Weight;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Version of the format; 1.
    pub(crate) ecc: u32,
    pub(crate) name: String,
    pub(crate) variants: Vec<Variant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    pub(crate) width: u32,
    pub(crate) height: u32,
    #[serde(default = "white")]
    pub(crate) background: Inks,
    pub(crate) elements: Vec<Element>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Element {
    Text(Text),
    Price(Price),
    Rect(Rect),
    Ellipse(Ellipse),
    Line(Line),
    Picture(Image),
    Barcode(Barcode),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Align {
    #[default]
    Left,
    Center,
    Right,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VerticalAlign {
    Top,
    #[default]
    Middle,
    Bottom,
}

/// The embedded families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Family {
    #[default]
    SansCondensed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    pub(crate) id: String,
    #[serde(rename = "box")]
    pub(crate) area: Area,
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    #[serde(rename = "text")]
    pub(crate) words: Words,
    /// Only one family is embedded, so it decides nothing yet.
    #[serde(default, rename = "font")]
    pub(crate) _font: Family,
    #[serde(default)]
    pub(crate) weight: Weight,
    pub(crate) size: u16,
    pub(crate) size_min: Option<u16>,
    #[serde(default)]
    pub(crate) align: Align,
    #[serde(default)]
    pub(crate) vertical_align: VerticalAlign,
    /// Where the (first) baseline stands instead of `vertical_align`; only a Studio design sets it.
    #[serde(skip)]
    pub(crate) baseline: Option<i32>,
    #[serde(default = "one")]
    pub(crate) lines_max: u16,
    #[serde(default = "line_height")]
    pub(crate) line_height: u16,
    #[serde(default)]
    pub(crate) overflow: Overflow,
    #[serde(default = "black")]
    pub(crate) ink: Inks,
}

/// What happens to a text too long for its box at the floor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Overflow {
    #[default]
    Error,
    Ellipsis,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    pub(crate) id: String,
    #[serde(rename = "box")]
    pub(crate) area: Area,
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) value: Words,
    #[serde(default = "item_currency")]
    pub(crate) currency: Words,
    #[serde(default = "item_locale")]
    pub(crate) locale: Words,
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
    #[serde(default)]
    pub(crate) strike: bool,
    #[serde(default, rename = "font")]
    pub(crate) _font: Family,
    #[serde(default)]
    pub(crate) weight: Weight,
    pub(crate) size: u16,
    pub(crate) size_min: Option<u16>,
    #[serde(default)]
    pub(crate) align: Align,
    #[serde(default)]
    pub(crate) vertical_align: VerticalAlign,
    /// Where the baseline stands instead of `vertical_align`; only a Studio design sets it.
    #[serde(skip)]
    pub(crate) baseline: Option<i32>,
    #[serde(default = "black")]
    pub(crate) ink: Inks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShowCurrency {
    #[default]
    Symbol,
    Code,
    None,
}

/// Where the currency stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CurrencyPlace {
    /// In the line, before or after the number as the locale has it.
    #[default]
    Inline,
    /// Under the small digits of a split price, if there are any and the locale puts it after.
    Under,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rect {
    pub(crate) id: String,
    #[serde(rename = "box")]
    pub(crate) area: Area,
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) fill: Option<Inks>,
    pub(crate) stroke: Option<Inks>,
    #[serde(default = "one")]
    pub(crate) stroke_width: u16,
    /// Corner radius.
    #[serde(default)]
    pub(crate) radius: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ellipse {
    pub(crate) id: String,
    #[serde(rename = "box")]
    pub(crate) area: Area,
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) fill: Option<Inks>,
    pub(crate) stroke: Option<Inks>,
    #[serde(default = "one")]
    pub(crate) stroke_width: u16,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) from: (i32, i32),
    pub(crate) to: (i32, i32),
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    #[serde(default = "one")]
    pub(crate) stroke_width: u16,
    #[serde(default = "black")]
    pub(crate) stroke: Inks,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    pub(crate) id: String,
    #[serde(rename = "box")]
    pub(crate) area: Area,
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    /// A PNG in base64; emptied once decoded.
    pub(crate) png: String,
    #[serde(default)]
    pub(crate) dither: Dither,
    #[serde(skip)]
    pub(crate) source: Option<Source>,
    /// Indices for each palette, made on first use.
    #[serde(skip)]
    pub(crate) dithered: [OnceLock<Vec<u8>>; 5],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Barcode {
    pub(crate) id: String,
    #[serde(rename = "box")]
    pub(crate) area: Area,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SymbologyName {
    Ean13,
    Ean8,
    Code128,
    Gs1Datamatrix,
    Qr,
}

impl Barcode {
    pub(crate) const fn symbology(&self) -> Symbology {
        match self.symbology {
            SymbologyName::Ean13 => Symbology::Ean13,
            SymbologyName::Ean8 => Symbology::Ean8,
            SymbologyName::Code128 => Symbology::Code128,
            SymbologyName::Gs1Datamatrix => Symbology::Gs1DataMatrix,
            SymbologyName::Qr => Symbology::Qr(self.correction),
        }
    }
}

impl Element {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Text(element) => &element.id,
            Self::Price(element) => &element.id,
            Self::Rect(element) => &element.id,
            Self::Ellipse(element) => &element.id,
            Self::Line(element) => &element.id,
            Self::Picture(element) => &element.id,
            Self::Barcode(element) => &element.id,
        }
    }

    pub(crate) fn when(&self) -> &[Condition] {
        match self {
            Self::Text(element) => &element.when,
            Self::Price(element) => &element.when,
            Self::Rect(element) => &element.when,
            Self::Ellipse(element) => &element.when,
            Self::Line(element) => &element.when,
            Self::Picture(element) => &element.when,
            Self::Barcode(element) => &element.when,
        }
    }
}

impl<'de> Deserialize<'de> for Area {
    /// `[x, y, width, height]`; signed so that a negative value is refused by the checks, which name the element.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let [x, y, width, height] = <[i32; 4]>::deserialize(from)?;
        if [x, y, width, height].iter().any(|value| !(-10_000..=10_000).contains(value)) {
            return Err(de::Error::custom("a box's numbers lie between -10000 and 10000"));
        }
        Ok(Self { x, y, width, height })
    }
}

fn white() -> Inks {
    Inks::one(Ink::White)
}
fn black() -> Inks {
    Inks::one(Ink::Black)
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
/// `{item.currency}`; the words are ours, so they parse.
fn item_currency() -> Words {
    Words::item("currency")
}
/// `{item.locale}`.
fn item_locale() -> Words {
    Words::item("locale")
}

impl Price {
    /// Size of a split price's small digits.
    pub(crate) fn minor_percent(&self) -> u16 {
        self.minor_percent.unwrap_or(50)
    }

    /// Size of currency and affixes.
    pub(crate) fn currency_percent(&self) -> u16 {
        self.currency_percent.unwrap_or(if self.split { 40 } else { 100 })
    }
}
