//! How an element is painted: the inherited properties that mean something on e-paper. Everything else is refused by
//! name, so that nothing is silently drawn otherwise than its author sees it.

use svgtypes::NumberListParser;

use super::colour::{Code, Colours};
use super::geometry::{length, number, short};
use super::limits::{DASH_MIN, DASHES_MAX};
use crate::ecc::model::Align;
use crate::text::Weight;

/// Names of the embedded family that a design may use.
const FAMILIES: [&str; 2] = ["DejaVu Sans Condensed", "sans_condensed"];

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one property with two values")]
pub(crate) struct Style {
    pub(crate) fill: Option<Code>,
    pub(crate) even_odd: bool,
    pub(crate) stroke: Option<Code>,
    pub(crate) stroke_width: f64,
    pub(crate) cap: &'static str,
    pub(crate) join: &'static str,
    pub(crate) miter: f64,
    pub(crate) dashes: Vec<f64>,
    pub(crate) dash_offset: f64,
    /// User units per em.
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Align,
    /// `text-decoration="line-through"`.
    pub(crate) struck: bool,
    /// `visibility`.
    pub(crate) visible: bool,
    /// `display` and `opacity`, which hide the element with all it holds.
    pub(crate) gone: bool,
}

impl Style {
    /// What a document starts with.
    pub(crate) fn initial(colours: &mut Colours) -> Result<Self, String> {
        Ok(Self {
            fill: colours.paint("black")?,
            even_odd: false,
            stroke: None,
            stroke_width: 1.0,
            cap: "butt",
            join: "miter",
            miter: 4.0,
            dashes: Vec::new(),
            dash_offset: 0.0,
            size: 16.0,
            weight: Weight::Regular,
            anchor: Align::Left,
            struck: false,
            visible: true,
            gone: false,
        })
    }

    /// Sets a property from a presentation attribute or a `style`; `false` if it is none.
    pub(crate) fn set(&mut self, name: &str, value: &str, colours: &mut Colours) -> Result<bool, String> {
        let value = value.trim();
        let wrong = || format!("{name}=\"{}\" is not supported", short(value));
        match name {
            "fill" => self.fill = colours.paint(value)?,
            "stroke" => self.stroke = colours.paint(value)?,
            "fill-rule" => self.even_odd = pick(value, &[("nonzero", false), ("evenodd", true)]).ok_or_else(wrong)?,
            "stroke-width" => {
                self.stroke_width = length(value)?;
                if self.stroke_width < 0.0 {
                    return Err(wrong());
                }
            }
            "stroke-linecap" => self.cap = one_of(value, &["butt", "round", "square"]).ok_or_else(wrong)?,
            "stroke-linejoin" => self.join = one_of(value, &["miter", "round", "bevel"]).ok_or_else(wrong)?,
            "stroke-miterlimit" => {
                self.miter = length(value)?;
                if self.miter < 1.0 {
                    return Err(wrong());
                }
            }
            "stroke-dasharray" => self.dashes = dashes(value)?,
            "stroke-dashoffset" => self.dash_offset = length(value)?,
            "font-size" => self.size = length(value)?,
            "font-weight" => self.weight = weight(value).ok_or_else(wrong)?,
            "font-family" => family(value)?,
            "text-anchor" => {
                let anchors = [("start", Align::Left), ("middle", Align::Center), ("end", Align::Right)];
                self.anchor = pick(value, &anchors).ok_or_else(wrong)?;
            }
            "text-decoration" | "text-decoration-line" => {
                self.struck = pick(value, &[("none", false), ("line-through", true)]).ok_or_else(wrong)?;
            }
            "visibility" => {
                self.visible =
                    pick(value, &[("visible", true), ("hidden", false), ("collapse", false)]).ok_or_else(wrong)?;
            }
            "display" => self.gone |= pick(value, &[("inline", false), ("none", true)]).ok_or_else(wrong)?,
            "opacity" => self.gone |= !opacity(name, value)?,
            _ => return neutral(name, value),
        }
        Ok(true)
    }
}

fn pick<T: Copy>(value: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice)
}

fn one_of(value: &str, choices: &[&'static str]) -> Option<&'static str> {
    choices.iter().find(|name| **name == value).copied()
}

/// Whether it shows.
fn opacity(name: &str, value: &str) -> Result<bool, String> {
    match value.parse::<f64>() {
        Ok(shown) if shown >= 1.0 => Ok(true),
        Ok(shown) if shown <= 0.0 => Ok(false),
        _ => Err(format!("{name}=\"{}\": an e-paper shows whole inks, so 0 or 1", short(value))),
    }
}

fn dashes(value: &str) -> Result<Vec<f64>, String> {
    if value == "none" {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for dash in NumberListParser::from(value) {
        let dash = number(dash.map_err(|_| "stroke-dasharray is a list of numbers")?)?;
        if out.len() == DASHES_MAX || dash < DASH_MIN {
            return Err(format!("stroke-dasharray has at most {DASHES_MAX} numbers, each at least {DASH_MIN}"));
        }
        out.push(dash);
    }
    Ok(out)
}

fn weight(value: &str) -> Option<Weight> {
    match value {
        "normal" => Some(Weight::Regular),
        "bold" => Some(Weight::Bold),
        number => match number.parse::<u16>() {
            Ok(100..=500) => Some(Weight::Regular),
            Ok(501..=900) => Some(Weight::Bold),
            _ => None,
        },
    }
}

/// Generic families and unknown ones are refused: what they would show depends on the machine.
fn family(value: &str) -> Result<(), String> {
    let first = value.split(',').next().unwrap_or_default().trim().trim_matches(['"', '\'']).trim();
    if FAMILIES.contains(&first) {
        Ok(())
    } else {
        Err(format!("the font family \"{}\" is not embedded; there is {}", short(first), FAMILIES[0]))
    }
}

/// Properties drawing programs write that change nothing here, with the values at which they do not.
const NEUTRAL: [(&str, &[&str]); 18] = [
    // To paint nothing, a design says fill="none".
    ("fill-opacity", &["1", "1.0", "100%"]),
    ("stroke-opacity", &["1", "1.0", "100%"]),
    ("font-style", &["normal"]),
    ("font-variant", &["normal"]),
    ("font-stretch", &["normal", "condensed"]),
    ("letter-spacing", &["normal", "0", "0px"]),
    ("word-spacing", &["normal", "0", "0px"]),
    ("paint-order", &["normal"]),
    ("vector-effect", &["none"]),
    ("mix-blend-mode", &["normal"]),
    ("clip-path", &["none"]),
    ("mask", &["none"]),
    ("filter", &["none"]),
    ("marker", &["none"]),
    ("writing-mode", &["lr-tb", "horizontal-tb"]),
    ("shape-rendering", &["auto", "crispEdges", "optimizeSpeed", "geometricPrecision"]),
    ("text-rendering", &["auto", "optimizeSpeed", "optimizeLegibility", "geometricPrecision"]),
    ("line-height", &["normal", "1", "1.25", "125%", "0", "0%", "100%"]),
];

fn neutral(name: &str, value: &str) -> Result<bool, String> {
    if name.starts_with("-inkscape-") {
        return Ok(true);
    }
    match NEUTRAL.iter().find(|(have, _)| *have == name) {
        Some((_, values)) if values.contains(&value) => Ok(true),
        Some(_) => Err(format!("{name}=\"{}\" is not supported", short(value))),
        None => Ok(false),
    }
}
