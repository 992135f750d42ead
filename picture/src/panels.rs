//! Panel types as access points of the OpenEPaperLink protocol number them: size, inks and how their buffer is laid out.
//!
//! Source: public documentation of the tags and of that protocol, restated as bare facts in this project's words; no file of
//! it is reproduced. Not checked on hardware. Types whose facts are uncertain are left out instead of guessed; a picture
//! for an unknown type is refused, never sent at a venture.

use crate::palette::{Ink, Palette};

/// One type of panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// The number a tag reports, and by which an access point knows what it is.
    pub number: u8,
    /// For people: family, diagonal in inches.
    pub name: &'static str,
    /// Pixels, as a viewer sees the panel.
    pub width: u32,
    /// Pixels, as a viewer sees the panel.
    pub height: u32,
    /// Quarter turns between the picture and the buffer, 0..=3; done by the access point. Odd ones swap the sides.
    pub quarter_turns: u8,
    /// What it can show.
    pub inks: PanelInks,
    /// How the buffer holds a pixel.
    pub encoding: Encoding,
    /// Firmware version from which an access point may compress the buffer, with what; `None`: never.
    pub compressed: Option<(Compression, u8)>,
}

/// The inks of a panel with their order in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PanelInks {
    /// White, black.
    Bw,
    /// White, black, red.
    Bwr,
    /// White, black, yellow. No palette of ours has yellow without red, so such a panel gets two-ink pictures.
    Bwy,
    /// White, black, red, yellow.
    Bwry,
    /// Black, white, yellow, red: the same inks as [`Self::Bwry`] in another order.
    Bwyr,
    /// Black, white, yellow, red, one unused place, blue, green.
    Spectra,
}

/// How a buffer holds its pixels. Bits run on from row to row; the leftmost pixel has the highest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// A plane of bit 0 of each index; a plane of bit 1 follows only where an index above 1 occurs.
    Planes,
    /// Two bits a pixel.
    Packed2,
    /// Four bits a pixel.
    Packed4,
}

/// How an access point may compress a buffer on its way to the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Two-dimensional run coding in the manner of fax group 4.
    G5,
    /// A zlib stream behind the length.
    Zlib,
}

impl PanelInks {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Bw, Self::Bwr, Self::Bwy, Self::Bwry, Self::Bwyr, Self::Spectra];

    /// The inks in buffer order; `None` where a number stands for no ink of ours.
    pub const fn order(self) -> &'static [Option<Ink>] {
        match self {
            Self::Bw => &[Some(Ink::White), Some(Ink::Black)],
            Self::Bwr => &[Some(Ink::White), Some(Ink::Black), Some(Ink::Red)],
            Self::Bwy => &[Some(Ink::White), Some(Ink::Black), Some(Ink::Yellow)],
            Self::Bwry => &[Some(Ink::White), Some(Ink::Black), Some(Ink::Red), Some(Ink::Yellow)],
            Self::Bwyr => &[Some(Ink::Black), Some(Ink::White), Some(Ink::Yellow), Some(Ink::Red)],
            Self::Spectra => &[
                Some(Ink::Black),
                Some(Ink::White),
                Some(Ink::Yellow),
                Some(Ink::Red),
                None,
                Some(Ink::Blue),
                Some(Ink::Green),
            ],
        }
    }

    /// The palette to draw with for such a panel: the largest of ours whose every ink it has.
    pub const fn palette(self) -> Palette {
        match self {
            Self::Bw | Self::Bwy => Palette::Bw,
            Self::Bwr => Palette::Bwr,
            Self::Bwry | Self::Bwyr => Palette::Bwry,
            Self::Spectra => Palette::Spectra6,
        }
    }

    /// The number of an ink in the buffer, or `None` if the panel lacks it.
    pub fn number_of(self, ink: Ink) -> Option<u8> {
        self.order().iter().position(|have| *have == Some(ink)).and_then(|at| u8::try_from(at).ok())
    }
}

impl Panel {
    /// The type of that number.
    pub fn of(number: u8) -> Option<&'static Self> {
        PANELS.iter().find(|panel| panel.number == number)
    }

    /// Width and height of the buffer: the sides change places for odd quarter turns.
    pub const fn buffer_size(&self) -> (u32, u32) {
        if self.quarter_turns % 2 == 1 { (self.height, self.width) } else { (self.width, self.height) }
    }
}

const fn row(
    number: u8,
    name: &'static str,
    (width, height): (u32, u32),
    quarter_turns: u8,
    inks: PanelInks,
    compressed: Option<(Compression, u8)>,
) -> Panel {
    let encoding = match inks {
        PanelInks::Bwyr => Encoding::Packed2,
        PanelInks::Spectra => Encoding::Packed4,
        PanelInks::Bw | PanelInks::Bwr | PanelInks::Bwy | PanelInks::Bwry => Encoding::Planes,
    };
    Panel { number, name, width, height, quarter_turns, inks, encoding, compressed }
}

const G5: Option<(Compression, u8)> = Some((Compression::G5, 0x29));
const ZLIB: Option<(Compression, u8)> = Some((Compression::Zlib, 0x27));

use PanelInks::{Bw, Bwr, Bwry, Bwy, Bwyr, Spectra};

/// Every type known here, by family.
pub const PANELS: &[Panel] = &[
    row(0x00, "SoluM M2 1.54", (152, 152), 0, Bwr, G5),
    row(0x01, "SoluM M2 2.9", (296, 128), 1, Bwr, G5),
    row(0x11, "SoluM M2 2.9, second controller", (296, 128), 1, Bwr, G5),
    row(0x27, "SoluM M2 2.9, no red", (296, 128), 1, Bw, G5),
    row(0x03, "SoluM M2 2.2", (212, 104), 1, Bwr, G5),
    row(0x04, "SoluM M2 2.6", (296, 152), 1, Bwr, G5),
    row(0x02, "SoluM M2 4.2", (400, 300), 0, Bwr, G5),
    row(0x05, "SoluM M2 7.4", (640, 384), 0, Bwr, ZLIB),
    row(0x30, "SoluM M3 1.6", (200, 200), 0, Bwr, ZLIB),
    row(0x31, "SoluM M3 2.2", (296, 160), 3, Bwr, ZLIB),
    row(0x32, "SoluM M3 2.6", (360, 184), 3, Bwr, ZLIB),
    row(0x33, "SoluM M3 2.9", (384, 168), 3, Bwr, ZLIB),
    row(0x40, "SoluM M3 2.9, no red", (384, 168), 3, Bw, ZLIB),
    row(0x34, "SoluM M3 4.2", (400, 300), 0, Bwr, ZLIB),
    row(0x3C, "SoluM M3 4.2, yellow", (400, 300), 0, Bwy, ZLIB),
    row(0x90, "SoluM M3 4.2, four inks", (400, 300), 0, Bwry, ZLIB),
    row(0x2F, "SoluM M3 4.3", (522, 152), 3, Bwr, ZLIB),
    row(0x2C, "SoluM M3 4.3, four inks", (522, 152), 3, Bwry, ZLIB),
    row(0x35, "SoluM M3 6.0", (600, 448), 0, Bwr, ZLIB),
    row(0x36, "SoluM M3 7.5", (800, 480), 0, Bwr, ZLIB),
    row(0x4C, "SoluM M3 7.5, four inks", (800, 480), 0, Bwry, ZLIB),
    row(0x2E, "SoluM M3 9.7", (960, 672), 2, Bwr, ZLIB),
    row(0x37, "SoluM M3 11.6", (960, 640), 2, Bwr, ZLIB),
    row(0x4D, "SoluM M3 11.6, four inks", (960, 640), 0, Bwry, ZLIB),
    row(0x41, "SoluM M3 5.85", (792, 272), 0, Bwr, ZLIB),
    row(0x42, "SoluM M3 5.85, no red", (792, 272), 0, Bw, ZLIB),
    row(0x28, "SoluM M3 1.6, four inks", (168, 168), 0, Bwry, ZLIB),
    row(0x4A, "SoluM M3 1.6, four inks, fine", (200, 200), 0, Bwry, ZLIB),
    row(0x4B, "SoluM M3 2.2, four inks", (296, 160), 3, Bwry, ZLIB),
    row(0x2B, "SoluM M3 2.9, four inks", (384, 168), 3, Bwry, ZLIB),
    row(0x38, "SoluM M3 8.2, four inks", (1024, 576), 2, Bwry, ZLIB),
    row(0x54, "Hanshow 2.13, no red", (256, 128), 1, Bw, ZLIB),
    row(0x55, "Hanshow 2.13", (256, 128), 1, Bwr, ZLIB),
    row(0x56, "Hanshow 2.66", (296, 152), 1, Bwr, ZLIB),
    row(0x60, "Hanshow Nebular 3.5, yellow", (384, 184), 1, Bwy, ZLIB),
    row(0x61, "Hanshow Nebular 3.5", (384, 184), 1, Bwr, ZLIB),
    row(0x6D, "Hanshow Nebular 3.5, four inks", (384, 184), 1, Bwry, ZLIB),
    row(0x6B, "Hanshow 7.5, four inks", (800, 480), 2, Bwry, ZLIB),
    row(0x66, "Hanshow 7.5, yellow", (800, 480), 2, Bwy, ZLIB),
    row(0x06, "Opticon 2.2, four inks", (250, 128), 3, Bwry, G5),
    row(0x07, "Opticon 2.9, four inks", (296, 128), 3, Bwry, G5),
    row(0x82, "Chroma 29", (296, 128), 1, Bwr, None),
    row(0x83, "Chroma 42", (400, 300), 0, Bwr, None),
    row(0x81, "Chroma Aeon 74", (800, 480), 0, Bwr, Some((Compression::Zlib, 0x03))),
    row(0xB0, "Gicisky 2.13, no red", (250, 128), 3, Bw, None),
    row(0xB1, "Gicisky 2.13", (250, 128), 3, Bwr, None),
    row(0xB2, "Gicisky 2.9, no red", (296, 128), 1, Bw, None),
    row(0xB3, "Gicisky 2.9", (296, 128), 1, Bwr, None),
    row(0xBB, "Gicisky 2.9, four inks", (296, 128), 1, Bwyr, None),
    row(0xC2, "Spectra 7.3", (800, 480), 0, Spectra, None),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::picture::{PIXELS_MAX, SIDE_MAX};

    #[test]
    fn at_least_forty_types_each_number_and_name_once() {
        assert!(PANELS.len() >= 40, "{}", PANELS.len());
        assert_eq!(PANELS.iter().map(|panel| panel.number).collect::<BTreeSet<_>>().len(), PANELS.len());
        assert_eq!(PANELS.iter().map(|panel| panel.name).collect::<BTreeSet<_>>().len(), PANELS.len());
    }

    #[test]
    fn every_type_is_within_a_pictures_bounds_and_its_sides_are_whole_bytes_or_known_not_to_be() {
        for panel in PANELS {
            assert!(panel.width <= SIDE_MAX && panel.height <= SIDE_MAX, "{panel:?}");
            assert!((panel.width * panel.height) as usize <= PIXELS_MAX, "{panel:?}");
            assert!(panel.width >= panel.height, "{panel:?} is listed as a viewer sees it, lying");
            assert!(panel.quarter_turns <= 3, "{panel:?}");
            assert_eq!((panel.width * panel.height) % 8, 0, "{panel:?}: the planes are whole bytes");
        }
    }

    #[test]
    fn a_panel_has_every_ink_of_the_palette_it_is_drawn_with_and_its_encoding_holds_them() {
        for panel in PANELS {
            let palette = panel.inks.palette();
            assert!(palette.inks().iter().all(|ink| panel.inks.number_of(*ink).is_some()), "{panel:?}");
            let places = match panel.encoding {
                Encoding::Planes | Encoding::Packed2 => 4,
                Encoding::Packed4 => 16,
            };
            assert!(panel.inks.order().len() <= places, "{panel:?}");
        }
    }

    #[test]
    fn the_palette_is_the_largest_the_panel_can_show() {
        let shows = |inks: PanelInks, palette: Palette| palette.inks().iter().all(|ink| inks.number_of(*ink).is_some());
        for inks in PanelInks::ALL {
            let most = Palette::ALL
                .into_iter()
                .filter(|palette| shows(inks, *palette))
                .map(|palette| palette.inks().len())
                .max();
            assert_eq!(most, Some(inks.palette().inks().len()), "{inks:?}");
        }
    }
}
