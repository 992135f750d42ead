//! Texts with placeholders, keys of values, and inks: the small types of the document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use picture::{Ink, Palette};
use serde::{Deserialize, Deserializer, de};

use crate::error::Cause;

/// Most characters of a value's key.
const KEY_CHARS_MAX: usize = 64;

/// What placeholders read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) item: &'a BTreeMap<String, String>,
    pub(crate) parameters: &'a BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Item,
    Parameter,
}

/// `item.KEY` or `param.KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    source: Source,
    name: String,
}

impl Key {
    fn parse(text: &str) -> Result<Self, String> {
        let (source, name) = match text.split_once('.') {
            Some(("item", name)) => (Source::Item, name),
            Some(("param", name)) => (Source::Parameter, name),
            _ => return Err(format!("\"{text}\" is no key: it begins with item. or param.")),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || name.len() > KEY_CHARS_MAX || !name.bytes().all(plain) {
            return Err(format!(
                "\"{text}\" is no key: 1 to {KEY_CHARS_MAX} of letters, digits, _ . - follow the source"
            ));
        }
        Ok(Self { source, name: name.to_owned() })
    }

    /// The value, unless absent or blank.
    pub(crate) fn value<'a>(&self, values: Values<'a>) -> Option<&'a str> {
        let map = match self.source {
            Source::Item => values.item,
            Source::Parameter => values.parameters,
        };
        map.get(&self.name).map(String::as_str).filter(|value| !value.trim().is_empty())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Item => "item",
            Source::Parameter => "param",
        };
        write!(f, "{source}.{}", self.name)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Value { key: Key, default: Option<String> },
}

/// A text with placeholders: `{item.name}`, `{param.shelf|no shelf}`; `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words(Vec<Piece>);

impl Words {
    /// `{item.NAME}`.
    pub(crate) fn item(name: &str) -> Self {
        Self(vec![Piece::Value { key: Key { source: Source::Item, name: name.to_owned() }, default: None }])
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            literal.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                literal.extend(from.chars().next());
                rest = after;
                continue;
            }
            let (inner, after) = from
                .strip_prefix('{')
                .and_then(|inner| inner.split_once('}'))
                .ok_or("a brace is not closed or not opened; {{ and }} stand for braces")?;
            let (key, default) = inner.split_once('|').map_or((inner, None), |(key, default)| (key, Some(default)));
            if default.is_some_and(|default| default.contains('{')) {
                return Err("a default is plain words".to_owned());
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Value { key: Key::parse(key)?, default: default.map(str::to_owned) });
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    /// The text with values put in. `each` sees every part: its text and whether it is a value.
    pub(crate) fn fill<'a>(
        &'a self,
        values: Values<'a>,
        each: impl Fn(&'a str, bool) -> Result<Cow<'a, str>, Cause>,
    ) -> Result<Cow<'a, str>, Cause> {
        let mut out = Cow::Borrowed("");
        for piece in &self.0 {
            let part = match piece {
                Piece::Literal(text) => each(text, false)?,
                Piece::Value { key, default } => match (key.value(values), default) {
                    (Some(value), _) => each(value, true)?,
                    (None, Some(default)) => each(default, false)?,
                    (None, None) => return Err(Cause::Missing { key: key.to_string() }),
                },
            };
            if out.is_empty() {
                out = part;
            } else {
                out.to_mut().push_str(&part);
            }
        }
        Ok(out)
    }

    /// The text with values put in, as they are.
    pub(crate) fn plain<'a>(&'a self, values: Values<'a>) -> Result<Cow<'a, str>, Cause> {
        self.fill(values, |text, _| Ok(Cow::Borrowed(text)))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// One ink, or several in order of preference: the first the panel has is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inks(Vec<Ink>);

impl Inks {
    pub(crate) fn one(ink: Ink) -> Self {
        Self(vec![ink])
    }
}

impl<'de> Deserialize<'de> for Inks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "an ink's name, or a list of them")]
        enum Either {
            One(String),
            Many(Vec<String>),
        }
        let names = match Either::deserialize(from)? {
            Either::One(name) => vec![name],
            Either::Many(names) => names,
        };
        let ink =
            |name: &String| Ink::from_name(name).ok_or_else(|| de::Error::custom(format!("\"{name}\" is no ink")));
        let inks = names.iter().map(ink).collect::<Result<Vec<_>, _>>()?;
        if inks.is_empty() || inks.len() > Ink::ALL.len() {
            return Err(de::Error::custom("a list of inks has 1 to 8"));
        }
        Ok(Self(inks))
    }
}

/// An ink as the panel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) ink: Ink,
    pub(crate) index: u8,
}

/// What a panel shows for an ink it lacks: light inks turn white, dark ones black, and on four greys the grey nearest
/// to them, so that dark on light stays readable whichever the panel.
const fn substitute(ink: Ink, palette: Palette) -> Ink {
    match (ink, palette) {
        (Ink::Yellow, Palette::Grey4) => Ink::LightGrey,
        (Ink::Red | Ink::Blue | Ink::Green, Palette::Grey4) => Ink::DarkGrey,
        (Ink::White | Ink::Yellow | Ink::LightGrey, _) => Ink::White,
        _ => Ink::Black,
    }
}

/// The first ink the panel has, else the substitute of the last.
pub(crate) fn index(inks: &Inks, palette: Palette) -> Shown {
    let have = |ink: Ink| palette.index_of(ink).map(|index| Shown { ink, index });
    let last = inks.0.last().copied().unwrap_or(Ink::Black);
    inks.0
        .iter()
        .find_map(|ink| have(*ink))
        .or_else(|| have(substitute(last, palette)))
        .unwrap_or(Shown { ink: Ink::White, index: 0 })
}
