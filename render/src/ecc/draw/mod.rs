//! Drawing elements, one kind a file.

pub(crate) mod barcode;
pub(crate) mod picture;
pub(crate) mod price;
mod shape;
pub(crate) mod text;

use ::picture::Palette;

use super::model::{Align, Element, VerticalAlign};
use super::value::{Inks, Shown, Values, index};
use crate::canvas::{Area, Canvas};
use crate::error::{Cause, RenderError};
use crate::text::{Fonts, Ink};

/// A label being drawn.
pub(crate) struct Sketch<'a> {
    pub(crate) canvas: Canvas,
    pub(crate) fonts: &'a mut Fonts,
    pub(crate) palette: Palette,
    pub(crate) values: Values<'a>,
    /// Prices and barcodes as drawn: nothing may change them afterwards.
    pub(crate) guarded: Vec<Guarded>,
}

/// A region that must stay as it is.
pub(crate) struct Guarded {
    element: String,
    area: Area,
    pixels: Vec<u8>,
}

impl Sketch<'_> {
    fn ink(&self, inks: &Inks) -> Shown {
        index(inks, self.palette)
    }

    fn guard(&mut self, element: &str, area: Area) {
        let pixels = self.canvas.copy(area);
        self.guarded.push(Guarded { element: element.to_owned(), area, pixels });
    }

    /// The pixels, if every price and barcode is still whole.
    pub(crate) fn finish(self) -> Result<Vec<u8>, RenderError> {
        match self.guarded.iter().find(|guarded| !self.canvas.holds(guarded.area, &guarded.pixels)) {
            Some(covered) => Err(RenderError::Element { element: covered.element.clone(), cause: Cause::Covered }),
            None => Ok(self.canvas.into_indices()),
        }
    }
}

pub(crate) fn draw(sketch: &mut Sketch<'_>, element: &Element) -> Result<(), Cause> {
    match element {
        Element::Text(element) => text::draw(sketch, element),
        Element::Price(element) => price::draw(sketch, element),
        Element::Rect(element) => {
            shape::rect(sketch, element);
            Ok(())
        }
        Element::Ellipse(element) => {
            shape::ellipse(sketch, element);
            Ok(())
        }
        Element::Line(element) => {
            shape::line(sketch, element);
            Ok(())
        }
        Element::Picture(element) => {
            picture::draw(sketch, element);
            Ok(())
        }
        Element::Barcode(element) => barcode::draw(sketch, element),
    }
}

/// Where something of a width starts.
pub(crate) fn align(align: Align, from: i32, room: i32, width: i32) -> i32 {
    from + match align {
        Align::Left => 0,
        Align::Center => (room - width).div_euclid(2),
        Align::Right => room - width,
    }
}

/// Where something of a height starts.
pub(crate) fn align_vertical(align: VerticalAlign, from: i32, room: i32, height: i32) -> i32 {
    from + match align {
        VerticalAlign::Top => 0,
        VerticalAlign::Middle => (room - height).div_euclid(2),
        VerticalAlign::Bottom => room - height,
    }
}

/// The area of some ink.
const fn area(ink: Ink) -> Area {
    Area { x: ink.left, y: ink.top, width: ink.width(), height: ink.height() }
}
