//! Colours of a design to inks: declared ones as declared, others to the nearest ink.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use picture::{Ink, Palette};

use super::geometry::short;
use super::limits::COLOURS_MAX;
use crate::ecc::value::{Inks, index};

/// A colour as the design's own number for it.
pub(crate) type Code = u8;

/// The colours a design uses, numbered, each with the inks that show it.
#[derive(Debug)]
pub(crate) struct Colours {
    declared: BTreeMap<[u8; 3], Inks>,
    used: Vec<Inks>,
}

impl Colours {
    /// `declared`: colours as the mappings write them.
    pub(crate) fn new(declared: BTreeMap<String, Inks>) -> Result<Self, String> {
        let mut colours = BTreeMap::new();
        for (text, inks) in declared {
            let rgb = opaque(&text)?.ok_or_else(|| format!("\"{}\" is no colour", short(&text)))?;
            if colours.insert(rgb, inks).is_some() {
                return Err(format!("the colour \"{}\" is declared twice", short(&text)));
            }
        }
        Ok(Self { declared: colours, used: Vec::new() })
    }

    /// The code of a paint; `None` for no paint.
    pub(crate) fn paint(&mut self, text: &str) -> Result<Option<Code>, String> {
        let Some(rgb) = opaque(text)? else { return Ok(None) };
        let inks = self.declared.get(&rgb).cloned().unwrap_or_else(|| Inks::one(nearest(rgb)));
        let at = self.used.iter().position(|have| *have == inks).unwrap_or(self.used.len());
        if at == self.used.len() {
            self.used.push(inks);
        }
        let code = u8::try_from(at).ok().filter(|code| usize::from(*code) < COLOURS_MAX);
        code.map(Some).ok_or_else(|| format!("the design has more than {COLOURS_MAX} colours"))
    }

    pub(crate) fn inks(&self, code: Code) -> Inks {
        self.used.get(usize::from(code)).cloned().unwrap_or_else(|| Inks::one(Ink::Black))
    }

    /// The panel's index of each code.
    pub(crate) fn indices(&self, palette: Palette) -> [u8; COLOURS_MAX] {
        let mut out = [0; COLOURS_MAX];
        for (out, inks) in out.iter_mut().zip(&self.used) {
            *out = index(inks, palette).index;
        }
        out
    }
}

/// Red, green, blue; `None` for `none` and `transparent`.
fn opaque(text: &str) -> Result<Option<[u8; 3]>, String> {
    let text = text.trim();
    if matches!(text, "none" | "transparent") {
        return Ok(None);
    }
    let colour = svgtypes::Color::from_str(text)
        .map_err(|_| format!("\"{}\" is no plain colour (no gradients, patterns or references)", short(text)))?;
    match colour.alpha {
        0 => Ok(None),
        255 => Ok(Some([colour.red, colour.green, colour.blue])),
        _ => Err(format!("\"{}\" is translucent; an e-paper shows whole inks", short(text))),
    }
}

/// The ink nearest to a colour: the least distance in sRGB to the ink as it is called or as it looks on a panel.
fn nearest(rgb: [u8; 3]) -> Ink {
    let distance =
        |other: [u8; 3]| -> u32 { rgb.into_iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum() };
    let to = |ink: &Ink| distance(ink.srgb()).min(distance(called(*ink)));
    // The first of equals, so the order of inks decides.
    Ink::ALL.into_iter().min_by_key(to).unwrap_or(Ink::Black)
}

/// What a designer means by the ink's name.
const fn called(ink: Ink) -> [u8; 3] {
    match ink {
        Ink::White => [255, 255, 255],
        Ink::Black => [0, 0, 0],
        Ink::Red => [255, 0, 0],
        Ink::Yellow => [255, 255, 0],
        Ink::Blue => [0, 0, 255],
        Ink::Green => [0, 160, 0],
        Ink::LightGrey => [170, 170, 170],
        Ink::DarkGrey => [85, 85, 85],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_find_the_ink_a_designer_means() {
        for (text, ink) in [
            ("#fff", Ink::White),
            ("#f2f2ec", Ink::White),
            ("black", Ink::Black),
            ("#1a1a1a", Ink::Black),
            ("red", Ink::Red),
            ("#e30613", Ink::Red),
            ("#b40020", Ink::Red),
            ("yellow", Ink::Yellow),
            ("#ffcc00", Ink::Yellow),
            ("#ff8800", Ink::Yellow),
            ("blue", Ink::Blue),
            ("navy", Ink::Blue),
            ("#003399", Ink::Blue),
            ("green", Ink::Green),
            ("#0f0", Ink::Green),
            ("#006633", Ink::Green),
            ("#ccc", Ink::LightGrey),
            ("#444", Ink::DarkGrey),
        ] {
            let rgb = opaque(text).unwrap().unwrap();
            assert_eq!(nearest(rgb), ink, "{text}");
        }
    }
}
