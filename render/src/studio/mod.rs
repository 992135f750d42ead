//! The Studio engine: an SVG document and property mappings, item values and link parameters in; a picture out.
//!
//! Reading order: `scan`, `vet` and `walk` (only what is named is understood), `style`, `colour`, `shape`, `words` (what static
//! elements become), `mapping` and `bind` (what values fill), `layer` (static pixels, rasterised once), `draw` (one
//! label). The format is documented in `docs/studio-design.md`.
//!
//! Invariants: a design is wholly checked and its static layers rasterised when it is read, so a label costs a few runs
//! of pixels and the setting of its values; values never become markup; no reference leads out of the document; every
//! pixel is an ink; prices and barcodes are whole or the label fails.
//!
//! Deliberately not here: gradients, filters, masks, clipping, patterns, translucency (an e-paper shows whole inks),
//! style sheets, scripts, fonts other than the embedded ones. They are refused by name.

mod bind;
mod colour;
mod date;
mod draw;
mod error;
mod geometry;
mod layer;
mod limits;
mod mapping;
mod scan;
mod shape;
mod style;
mod vet;
mod walk;
mod words;

use std::sync::Arc;

use picture::Picture;

use crate::canvas::{Area, Canvas};
use crate::ecc::condition::{self, Condition};
use crate::ecc::draw::Sketch;
use crate::ecc::model::Image;
use crate::ecc::value::Values;
use crate::ecc::{EccInput, check, draw as ecc_draw};
use crate::error::{Cause, RenderError};
use crate::text;
use bind::{Filled, Surroundings};
use colour::Colours;
pub use error::DesignError;
use layer::{Layers, Span};
pub use limits::{MAPPED_MAX, MAPPINGS_BYTES_MAX, SVG_BYTES_MAX};
use mapping::{Mapping, Mappings, Part};
use walk::{Walked, What};

/// What a Studio design is rendered with: the same as an ECC model.
pub type StudioInput<'a> = EccInput<'a>;

/// A parsed and checked Studio design with its static layers; cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct StudioDesign(Arc<Design>);

#[derive(Debug)]
struct Design {
    name: String,
    width: u32,
    height: u32,
    colours: Colours,
    /// Conditions by mapping.
    gates: Vec<Gate>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Gate {
    id: String,
    when: Vec<Condition>,
}

/// One step of drawing.
#[derive(Debug)]
struct Item {
    id: String,
    /// Gates that must be open, by index.
    gates: Vec<usize>,
    drawn: Drawn,
}

#[derive(Debug)]
enum Drawn {
    Layer(Vec<Span>),
    /// A picture of the design's own; dithered once for each palette.
    Image(Box<Image>),
    Filled(Box<Filled>),
}

impl StudioDesign {
    /// Reads and checks an SVG of at most [`SVG_BYTES_MAX`] bytes and JSON mappings of at most [`MAPPINGS_BYTES_MAX`],
    /// and rasterises what does not change. Takes a few milliseconds; keep the outcome.
    pub fn parse(svg: &str, mappings: &str) -> Result<Self, DesignError> {
        let limit = |what, text: &str, most| {
            let bytes = text.len();
            if bytes > most { Err(DesignError::TooLong { what, bytes, most }) } else { Ok(()) }
        };
        limit("SVG", svg, SVG_BYTES_MAX)?;
        limit("mappings", mappings, MAPPINGS_BYTES_MAX)?;
        let mappings: Mappings = serde_json::from_str(mappings)
            .map_err(|cause| DesignError::Mappings(geometry::message(&cause.to_string())))?;
        let Mappings { studio, name, inks, elements } = mappings;
        let elements = elements.0;
        vet(studio, &name, &elements)?;
        scan::scan(svg)?;
        let colours = Colours::new(inks).map_err(DesignError::Mappings)?;
        let walked = walk::walk(svg, &elements, colours)?;
        build(name, walked, elements).map(|design| Self(Arc::new(design)))
    }

    /// The design's name, as its mappings give it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Width and height in pixels, as one reads the design.
    pub fn size(&self) -> (u32, u32) {
        (self.0.width, self.0.height)
    }
}

fn vet(studio: u32, name: &str, elements: &[(String, Mapping)]) -> Result<(), DesignError> {
    let rule = |holds: bool, rule: &str| if holds { Ok(()) } else { Err(DesignError::Mappings(rule.to_owned())) };
    rule(studio == 1, "\"studio\" is the format's version, 1")?;
    rule((1..=64).contains(&name.chars().count()), "\"name\" has 1 to 64 characters")?;
    rule(elements.len() <= MAPPED_MAX, "at most 200 elements are mapped")?;
    for (id, mapping) in elements {
        let fail = |rule| DesignError::Element { element: format!("\"{}\"", geometry::short(id)), rule };
        check::name(id).map_err(fail)?;
        check::conditions(mapping.when()).map_err(fail)?;
        if matches!(mapping, Mapping::Visibility(visibility) if visibility.when.is_empty()) {
            return Err(fail("a visibility has at least one condition".to_owned()));
        }
    }
    Ok(())
}

fn build(name: String, walked: Walked, elements: Vec<(String, Mapping)>) -> Result<Design, DesignError> {
    let Walked { width, height, pieces, rects, colours, segments } = walked;
    let side = |side: u32| i32::try_from(side).unwrap_or(0);
    let sheet = Area { x: 0, y: 0, width: side(width), height: side(height) };
    let around = Surroundings { sheet, rects: &rects, colours: &colours };
    let gates: Vec<Gate> =
        elements.iter().map(|(id, mapping)| Gate { id: id.clone(), when: mapping.when().to_vec() }).collect();
    // Each mapping fills one element, so it is taken once.
    let mut mappings: Vec<_> = elements.into_iter().map(Some).collect();
    let items = text::with_fonts(|fonts| {
        let mut layers = Layers::new(width, height, segments, fonts)?;
        let mut items: Vec<Item> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for piece in pieces {
            let is_static = matches!(piece.what, What::Shape(_) | What::Text { .. });
            if !is_static || piece.gates != open {
                close(&mut layers, &mut items, &open)?;
                open.clone_from(&piece.gates);
            }
            layers.add(&piece)?;
            let (id, drawn) = match piece.what {
                What::Shape(_) | What::Text { .. } => continue,
                What::Image(image) => (piece.label, Drawn::Image(image)),
                What::Mapped { mapping, carrier } => {
                    let Some((id, mapping)) = mappings.get_mut(mapping).and_then(Option::take) else { continue };
                    let bound = bind::bind(&id, mapping, carrier, &around);
                    let filled = bound.map_err(|rule| DesignError::Element { element: piece.label, rule })?;
                    (id, Drawn::Filled(Box::new(filled)))
                }
            };
            items.push(Item { id, gates: piece.gates, drawn });
        }
        close(&mut layers, &mut items, &open)?;
        Ok::<_, DesignError>(items)
    })?;
    let design = Design { name, width, height, colours, gates, items };
    parts_agree(&design)?;
    Ok(design)
}

fn close(layers: &mut Layers<'_>, items: &mut Vec<Item>, gates: &[usize]) -> Result<(), DesignError> {
    if let Some(spans) = layers.close()? {
        items.push(Item { id: String::new(), gates: gates.to_vec(), drawn: Drawn::Layer(spans) });
    }
    Ok(())
}

/// An integer part without its fraction, or the other way round, would read as another price.
fn parts_agree(design: &Design) -> Result<(), DesignError> {
    let conditions = |item: &Item| -> Vec<Condition> {
        item.gates.iter().filter_map(|at| design.gates.get(*at)).flat_map(|gate| gate.when.clone()).collect()
    };
    let parts = || {
        design.items.iter().filter_map(|item| {
            let Drawn::Filled(filled) = &item.drawn else { return None };
            let Filled::Price { price, part, .. } = &**filled else { return None };
            Some((item, price, *part))
        })
    };
    for (item, price, part) in parts() {
        let other = match part {
            Part::Integer => Part::Fraction,
            Part::Fraction => Part::Integer,
            Part::Whole | Part::Currency => continue,
        };
        let agrees = |(twin, other_price, other_part): (&Item, &crate::ecc::model::Price, Part)| {
            other_part == other
                && other_price.value == price.value
                && other_price.currency == price.currency
                && other_price.locale == price.locale
                && other_price.decimals == price.decimals
                && conditions(twin) == conditions(item)
        };
        if !parts().any(agrees) {
            let rule = "an integer and a fraction part go together: same value, currency, locale, decimals, conditions";
            return Err(DesignError::Element { element: format!("\"{}\"", item.id), rule: rule.to_owned() });
        }
    }
    Ok(())
}

/// Renders one label, or says which element could not be drawn and why. Nothing is drawn partly.
pub fn studio_render(design: &StudioDesign, input: &StudioInput<'_>) -> Result<Picture, RenderError> {
    let design = &*design.0;
    let panel = input.panel;
    let (width, height) =
        if panel.rotation.swaps_sides() { (panel.height, panel.width) } else { (panel.width, panel.height) };
    if (width, height) != (design.width, design.height) {
        let (have_width, have_height) = (design.width, design.height);
        return Err(RenderError::DesignSize { width, height, have_width, have_height });
    }
    let values = Values { item: input.item, parameters: input.parameters };
    let mut gates = Gates { gates: &design.gates, open: vec![None; design.gates.len()] };
    let inks = design.colours.indices(panel.palette);
    // The design's size was checked against the picture's limits, and the panel's equals it. Index 0 is white.
    let canvas = Canvas::new(width, height, 0);
    let indices = text::with_fonts(|fonts| {
        let mut sketch = Sketch { canvas, fonts, palette: panel.palette, values, guarded: Vec::new() };
        for item in &design.items {
            if !gates.shown(item, values)? {
                continue;
            }
            match &item.drawn {
                Drawn::Layer(spans) => draw::layer(&mut sketch, spans, &inks),
                Drawn::Image(image) => ecc_draw::picture::draw(&mut sketch, image),
                Drawn::Filled(filled) => {
                    draw::filled(&mut sketch, filled).map_err(|cause| named(&item.id, cause))?;
                }
            }
        }
        sketch.finish()
    })?;
    let picture =
        Picture::new(width, height, panel.palette, indices).map_err(|cause| RenderError::Panel(cause.to_string()))?;
    Ok(picture.rotated(panel.rotation))
}

/// Conditions as they turn out for one label, each looked at once and only when something it decides is to be drawn.
struct Gates<'a> {
    gates: &'a [Gate],
    open: Vec<Option<bool>>,
}

impl Gates<'_> {
    /// Whether all of an item's gates are open, the outermost asked first.
    fn shown(&mut self, item: &Item, values: Values<'_>) -> Result<bool, RenderError> {
        for at in &item.gates {
            let (Some(gate), Some(known)) = (self.gates.get(*at), self.open.get_mut(*at)) else { return Ok(false) };
            let open = match *known {
                Some(open) => open,
                None => condition::hold(&gate.when, values).map_err(|cause| named(&gate.id, cause))?,
            };
            *known = Some(open);
            if !open {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn named(id: &str, cause: Cause) -> RenderError {
    match cause {
        Cause::Budget => RenderError::TooCostly(text::BUDGET),
        cause => RenderError::Element { element: id.to_owned(), cause },
    }
}
