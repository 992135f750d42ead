//! Inks, the sets of them panels have, and how a layout is turned onto a panel.

use std::fmt;
use std::str::FromStr;

/// One ink of an e-paper panel. The names are the wire and layout names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ink {
    /// Paper white.
    White,
    /// Black.
    Black,
    /// Red.
    Red,
    /// Yellow.
    Yellow,
    /// Blue.
    Blue,
    /// Green.
    Green,
    /// The lighter of two greys.
    LightGrey,
    /// The darker of two greys.
    DarkGrey,
}

impl Ink {
    /// Every ink, in the order of the documentation.
    pub const ALL: [Self; 8] =
        [Self::White, Self::Black, Self::Red, Self::Yellow, Self::Blue, Self::Green, Self::LightGrey, Self::DarkGrey];

    /// The stable name: lower case, underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::White => "white",
            Self::Black => "black",
            Self::Red => "red",
            Self::Yellow => "yellow",
            Self::Blue => "blue",
            Self::Green => "green",
            Self::LightGrey => "light_grey",
            Self::DarkGrey => "dark_grey",
        }
    }

    /// The ink of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ink| ink.name() == name)
    }

    /// Red, green and blue (sRGB, 0..=255) as the ink looks on a panel in a shop's light: paper is not pure white and
    /// the colours are muted. Our own choice, for previews and as the target of dithering; not measured.
    pub const fn srgb(self) -> [u8; 3] {
        match self {
            Self::White => [242, 242, 236],
            Self::Black => [24, 24, 26],
            Self::Red => [186, 28, 34],
            Self::Yellow => [236, 192, 32],
            Self::Blue => [36, 72, 148],
            Self::Green => [44, 112, 72],
            Self::LightGrey => [168, 168, 164],
            Self::DarkGrey => [92, 92, 92],
        }
    }
}

impl fmt::Display for Ink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The inks a panel has. An index of a picture is a position in [`Palette::inks`]; index 0 is always white, so a
/// zeroed picture is blank paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Palette {
    /// White, black.
    Bw,
    /// White, black, red.
    Bwr,
    /// White, black, red, yellow.
    Bwry,
    /// White, light grey, dark grey, black: from light to dark.
    Grey4,
    /// White, black, red, yellow, blue, green.
    Spectra6,
}

impl Palette {
    /// Every palette.
    pub const ALL: [Self; 5] = [Self::Bw, Self::Bwr, Self::Bwry, Self::Grey4, Self::Spectra6];

    /// The inks, in index order.
    pub const fn inks(self) -> &'static [Ink] {
        match self {
            Self::Bw => &[Ink::White, Ink::Black],
            Self::Bwr => &[Ink::White, Ink::Black, Ink::Red],
            Self::Bwry => &[Ink::White, Ink::Black, Ink::Red, Ink::Yellow],
            Self::Grey4 => &[Ink::White, Ink::LightGrey, Ink::DarkGrey, Ink::Black],
            Self::Spectra6 => &[Ink::White, Ink::Black, Ink::Red, Ink::Yellow, Ink::Blue, Ink::Green],
        }
    }

    /// The index of an ink, or `None` if the panel lacks it.
    pub fn index_of(self, ink: Ink) -> Option<u8> {
        self.inks().iter().position(|have| *have == ink).and_then(|at| u8::try_from(at).ok())
    }

    /// The stable name for configuration and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bw => "bw",
            Self::Bwr => "bwr",
            Self::Bwry => "bwry",
            Self::Grey4 => "grey4",
            Self::Spectra6 => "spectra6",
        }
    }

    /// The palette of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|palette| palette.name() == name)
    }

    /// The number on the wire and in packed pictures, 1..=5; never reused.
    pub const fn number(self) -> i32 {
        match self {
            Self::Bw => 1,
            Self::Bwr => 2,
            Self::Bwry => 3,
            Self::Grey4 => 4,
            Self::Spectra6 => 5,
        }
    }

    /// The palette of that wire number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|palette| palette.number() == number)
    }

    /// Bits a pixel takes in the packed form: 1, 2 or 4 (three bits would straddle bytes; the runs make up for it).
    pub const fn bits_per_pixel(self) -> usize {
        match self {
            Self::Bw => 1,
            Self::Bwr | Self::Bwry | Self::Grey4 => 2,
            Self::Spectra6 => 4,
        }
    }
}

impl fmt::Display for Palette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Palette {
    type Err = UnknownPalette;
    fn from_str(name: &str) -> Result<Self, UnknownPalette> {
        Self::from_name(name).ok_or(UnknownPalette)
    }
}

/// The name is none of the palettes'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the palette is none of bw, bwr, bwry, grey4, spectra6")]
pub struct UnknownPalette;

/// How far a layout is turned clockwise when it is put onto a panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rotation {
    /// Not turned.
    #[default]
    Deg0,
    /// A quarter turn clockwise.
    Deg90,
    /// Upside down.
    Deg180,
    /// A quarter turn counter-clockwise.
    Deg270,
}

impl Rotation {
    /// Every rotation.
    pub const ALL: [Self; 4] = [Self::Deg0, Self::Deg90, Self::Deg180, Self::Deg270];

    /// Degrees clockwise: 0, 90, 180, 270. Also the number on the wire.
    pub const fn degrees(self) -> i32 {
        match self {
            Self::Deg0 => 0,
            Self::Deg90 => 90,
            Self::Deg180 => 180,
            Self::Deg270 => 270,
        }
    }

    /// The rotation of that many degrees; only the four are known, 360 is not one.
    pub fn from_degrees(degrees: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|rotation| rotation.degrees() == degrees)
    }

    /// Whether width and height change places.
    pub const fn swaps_sides(self) -> bool {
        matches!(self, Self::Deg90 | Self::Deg270)
    }
}
