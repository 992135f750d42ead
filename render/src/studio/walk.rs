//! From the SVG to a flat list of what is painted, in order. Only what is named here is understood; every other element,
//! attribute and value is refused by name. `use` is expanded, styles are inherited and transforms multiplied here, so
//! that what goes on to the rasteriser is written anew by us, and holds no reference to anything.

use std::collections::BTreeMap;

use resvg::usvg::roxmltree::{Attribute, Document, Node, ParsingOptions};

use super::colour::{Code, Colours};
use super::error::DesignError;
use super::geometry::{Matrix, length, short};
use super::limits::{DEPTH_MAX, PAINTED_MAX, VISITS_MAX};
use super::mapping::Mapping;
use super::shape::{self, Segments};
use super::style::Style;
use super::words::{self, Chunk};
use crate::canvas::Area;
use crate::ecc::check::{self, PICTURE_PIXELS_MAX};
use crate::ecc::model::{Align, Dither, Image};
use crate::text::Weight;

const SVG: &str = "http://www.w3.org/2000/svg";
const XLINK: &str = "http://www.w3.org/1999/xlink";
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// What drawing programs keep for themselves; skipped.
const EDITORS: [&str; 6] = [
    "http://www.inkscape.org/namespaces/inkscape",
    "http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://creativecommons.org/ns#",
    "http://purl.org/dc/elements/1.1/",
    "http://www.serif.com/",
];

/// The one form in which a picture may be in a design.
const PNG_URI: &str = "data:image/png;base64,";

/// One thing to paint.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The element, for messages.
    pub(crate) label: String,
    /// Mappings whose conditions must hold, by index.
    pub(crate) gates: Vec<usize>,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// A shape as SVG of our own writing.
    Shape(String),
    Text {
        chunks: Vec<Chunk>,
        matrix: Matrix,
    },
    Image(Image),
    Mapped {
        mapping: usize,
        carrier: Carrier,
    },
}

/// The SVG element that a mapping fills.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carrier {
    Text(TextCarrier),
    Box(Area),
}

/// A text's look, in pixels of the design.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextCarrier {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Align,
    pub(crate) fill: Code,
    pub(crate) struck: bool,
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pieces: Vec<Piece>,
    /// Boxes of rects with an id.
    pub(crate) rects: BTreeMap<String, Result<Area, String>>,
    pub(crate) colours: Colours,
    /// Path segments used so far; outlines of turned text come on top.
    pub(crate) segments: Segments,
}

/// What is inherited.
#[derive(Clone, Debug)]
struct Context {
    matrix: Matrix,
    style: Style,
    gates: Vec<usize>,
    depth: usize,
    in_use: bool,
    hidden: bool,
}

struct Walk<'a, 'input> {
    ids: BTreeMap<&'a str, Node<'a, 'input>>,
    mappings: &'a [(String, Mapping)],
    bound: Vec<bool>,
    colours: Colours,
    visits: usize,
    segments: Segments,
    chars: usize,
    pixels: u64,
    sheet: Area,
    pieces: Vec<Piece>,
    rects: BTreeMap<String, Result<Area, String>>,
}

/// Reads a scanned SVG.
pub(crate) fn walk(svg: &str, mappings: &[(String, Mapping)], mut colours: Colours) -> Result<Walked, DesignError> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: 50_000, ..ParsingOptions::default() };
    let document = Document::parse_with_options(svg, options).map_err(|cause| DesignError::Svg(cause.to_string()))?;
    let root = document.root_element();
    if !is(root, "svg") {
        return Err(DesignError::Svg("its root is no <svg> in the SVG namespace".to_owned()));
    }
    let initial = Style::initial(&mut colours).map_err(DesignError::Svg)?;
    let ids = vet(&document, &initial, &mut colours)?;
    let (width, height) = shape::sheet_size(root).map_err(|rule| broken(root, rule))?;
    let side = |side: u32| i32::try_from(side).unwrap_or(0);
    let mut walk = Walk {
        ids,
        mappings,
        bound: vec![false; mappings.len()],
        colours,
        visits: 0,
        segments: Segments::default(),
        chars: 0,
        pixels: PICTURE_PIXELS_MAX,
        sheet: Area { x: 0, y: 0, width: side(width), height: side(height) },
        pieces: Vec::new(),
        rects: BTreeMap::new(),
    };
    let top =
        Context { matrix: Matrix::IDENTITY, style: initial, gates: Vec::new(), depth: 0, in_use: false, hidden: false };
    walk.element(root, &top)?;
    if let Some((id, _)) = mappings.iter().zip(&walk.bound).find(|(_, bound)| !**bound).map(|(pair, _)| pair) {
        let rule = "it is mapped, but the SVG draws no element of that id".to_owned();
        return Err(DesignError::Element { element: format!("\"{}\"", short(id)), rule });
    }
    let Walk { pieces, rects, colours, segments, .. } = walk;
    Ok(Walked { width, height, pieces, rects, colours, segments })
}

fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.tag_name().namespace() == Some(SVG) && node.tag_name().name() == name
}

/// `"id"`, or the tag and its line.
fn label(node: Node<'_, '_>) -> String {
    match node.attribute("id") {
        Some(id) => format!("<{}> \"{}\"", short(node.tag_name().name()), short(id)),
        None => {
            let line = node.document().text_pos_at(node.range().start).row;
            format!("<{}> in line {line}", short(node.tag_name().name()))
        }
    }
}

fn broken(node: Node<'_, '_>, rule: String) -> DesignError {
    DesignError::Element { element: label(node), rule }
}

/// Attributes of each element that is understood, besides those any may have; `None`: the element is not.
fn attributes(tag: &str) -> Option<&'static [&'static str]> {
    Some(match tag {
        "svg" => &["width", "height", "viewBox", "version", "baseProfile", "preserveAspectRatio"],
        "g" | "defs" | "title" | "desc" | "metadata" => &[],
        "use" => &["x", "y", "href"],
        "rect" => &["x", "y", "width", "height", "rx", "ry"],
        "circle" => &["cx", "cy", "r"],
        "ellipse" => &["cx", "cy", "rx", "ry"],
        "line" => &["x1", "y1", "x2", "y2"],
        "polyline" | "polygon" => &["points"],
        "path" => &["d"],
        "text" | "tspan" => &["x", "y"],
        "image" => &["x", "y", "width", "height", "href", "preserveAspectRatio"],
        _ => return None,
    })
}

/// Whether the element is an editor's own, with all it holds.
fn skipped(node: Node<'_, '_>) -> bool {
    node.tag_name().namespace().is_some_and(|namespace| EDITORS.contains(&namespace))
        || node.ancestors().any(|above| is(above, "metadata"))
}

/// Checks every element, also those never painted, and finds ids.
fn vet<'a, 'input>(
    document: &'a Document<'input>,
    initial: &Style,
    colours: &mut Colours,
) -> Result<BTreeMap<&'a str, Node<'a, 'input>>, DesignError> {
    let mut ids = BTreeMap::new();
    for node in document.descendants().filter(Node::is_element) {
        if skipped(node) && !is(node, "metadata") {
            continue;
        }
        let fail = |rule: String| broken(node, rule);
        let known = (node.tag_name().namespace() == Some(SVG)).then(|| attributes(node.tag_name().name())).flatten();
        let Some(known) = known else {
            return Err(fail("this element is not supported".to_owned()));
        };
        for attribute in node.attributes() {
            vet_attribute(node, attribute, known, initial, colours).map_err(fail)?;
        }
        if let Some(id) = node.attribute("id")
            && ids.insert(id, node).is_some()
        {
            return Err(fail("another element has the same id".to_owned()));
        }
    }
    Ok(ids)
}

fn vet_attribute(
    node: Node<'_, '_>,
    attribute: Attribute<'_, '_>,
    known: &[&str],
    initial: &Style,
    colours: &mut Colours,
) -> Result<(), String> {
    let (name, value) = (attribute.name(), attribute.value());
    match attribute.namespace() {
        Some(namespace) if EDITORS.contains(&namespace) => return Ok(()),
        Some(XML) if ["space", "lang"].contains(&name) => return Ok(()),
        Some(XLINK) if name == "href" && known.contains(&"href") => {}
        None => {}
        Some(_) => return Err(format!("its attribute {} is not supported", short(name))),
    }
    match name {
        "id" | "lang" | "style" | "transform" => {}
        "href" if is(node, "use") && value.starts_with('#') => {}
        "href" if is(node, "image") && value.starts_with(PNG_URI) => {}
        "href" if known.contains(&name) => {
            return Err(format!(
                "it refers to \"{}\"; a <use> may refer to #id, an <image> hold {PNG_URI}…, nothing else",
                short(value)
            ));
        }
        name if known.contains(&name) || name.starts_with("data-") => {}
        name => {
            if !initial.clone().set(name, value, colours)? {
                return Err(format!("its attribute {} is not supported", short(name)));
            }
        }
    }
    if name == "style" { styled(initial, node, colours).map(drop) } else { Ok(()) }
}

/// A style with the element's own properties.
fn styled(inherited: &Style, node: Node<'_, '_>, colours: &mut Colours) -> Result<Style, String> {
    let mut style = inherited.clone();
    style.gone = false;
    for attribute in node.attributes().filter(|attribute| attribute.namespace().is_none()) {
        // Names were vetted; a geometry attribute is none of the properties.
        style.set(attribute.name(), attribute.value(), colours)?;
    }
    for property in node.attribute("style").unwrap_or_default().split(';') {
        let property = property.trim();
        if property.is_empty() {
            continue;
        }
        let (name, value) = property.split_once(':').ok_or_else(|| format!("\"{}\" is no style", short(property)))?;
        if !style.set(name.trim(), value, colours)? {
            return Err(format!("the style {} is not supported", short(name)));
        }
    }
    Ok(style)
}

/// An attribute in pixels; 0 if absent.
pub(crate) fn px(node: Node<'_, '_>, name: &str) -> Result<f64, String> {
    node.attribute(name).map_or(Ok(0.0), length)
}

/// The reference of a `use` or an `image`, with or without the old prefix.
fn href<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    node.attribute("href").or_else(|| node.attribute((XLINK, "href")))
}

impl Walk<'_, '_> {
    fn element(&mut self, node: Node<'_, '_>, outer: &Context) -> Result<(), DesignError> {
        if skipped(node) {
            return Ok(());
        }
        let fail = |rule: String| broken(node, rule);
        self.visits += 1;
        if self.visits > VISITS_MAX {
            return Err(DesignError::Svg(format!("with its <use> it has more than {VISITS_MAX} elements")));
        }
        if outer.depth > DEPTH_MAX {
            return Err(fail(format!("elements are nested more than {DEPTH_MAX} deep")));
        }
        let mut here = self.context(node, outer).map_err(fail)?;
        let mapping = self.mapping(node, &mut here).map_err(fail)?;
        match node.tag_name().name() {
            "svg" if outer.depth > 0 => Err(fail("an <svg> inside another is not supported".to_owned())),
            "svg" | "g" => node.children().filter(Node::is_element).try_for_each(|child| self.element(child, &here)),
            "use" => self.expand(node, here),
            "defs" | "title" | "desc" | "metadata" => Ok(()),
            "tspan" => Err(fail("a <tspan> stands in a <text>".to_owned())),
            _ => self.leaf(node, here, mapping).map_err(fail),
        }
    }

    fn context(&mut self, node: Node<'_, '_>, outer: &Context) -> Result<Context, String> {
        let style = styled(&outer.style, node, &mut self.colours)?;
        let matrix = match node.attribute("transform") {
            Some(transform) if node.tag_name().name() == "svg" => {
                return Err(format!("transform=\"{}\" on the root is not supported", short(transform)));
            }
            Some(transform) => outer.matrix.then(Matrix::parse(transform)?)?,
            None => outer.matrix,
        };
        let hidden = outer.hidden || style.gone;
        Ok(Context { matrix, style, gates: outer.gates.clone(), depth: outer.depth + 1, in_use: outer.in_use, hidden })
    }

    /// The mapping of this element, if it fills the element rather than only showing or hiding it.
    fn mapping(&mut self, node: Node<'_, '_>, here: &mut Context) -> Result<Option<usize>, String> {
        let id = node.attribute("id").unwrap_or_default();
        let Some(at) = self.mappings.iter().position(|(have, _)| have == id) else { return Ok(None) };
        if here.in_use {
            return Err("a mapped element cannot be repeated by <use>".to_owned());
        }
        if matches!(node.tag_name().name(), "svg" | "defs" | "title" | "desc" | "metadata") {
            return Err("this element cannot be mapped".to_owned());
        }
        if let Some(bound) = self.bound.get_mut(at) {
            *bound = true;
        }
        here.gates.push(at);
        let fills = self.mappings.get(at).is_some_and(|(_, mapping)| !matches!(mapping, Mapping::Visibility(_)));
        if fills && (here.hidden || !here.style.visible) {
            return Err("it is mapped, but hidden".to_owned());
        }
        if fills && matches!(node.tag_name().name(), "g" | "use") {
            return Err("only its visibility can be mapped".to_owned());
        }
        Ok(fills.then_some(at))
    }

    fn expand(&mut self, node: Node<'_, '_>, mut here: Context) -> Result<(), DesignError> {
        let fail = |rule: String| broken(node, rule);
        let shift = Matrix::shift(px(node, "x").map_err(fail)?, px(node, "y").map_err(fail)?);
        here.matrix = here.matrix.then(shift).map_err(fail)?;
        here.in_use = true;
        let id = href(node).unwrap_or_default().strip_prefix('#').unwrap_or_default();
        let target = self.ids.get(id).copied();
        let target = target.ok_or_else(|| fail(format!("there is no element \"{}\"", short(id))))?;
        self.element(target, &here)
    }

    fn leaf(&mut self, node: Node<'_, '_>, here: Context, mapping: Option<usize>) -> Result<(), String> {
        let tag = node.tag_name().name();
        let area = || here.matrix.area(px(node, "x")?, px(node, "y")?, px(node, "width")?, px(node, "height")?);
        if let Some(id) = node.attribute("id").filter(|_| tag == "rect" && !here.in_use) {
            self.rects.insert(id.to_owned(), area());
        }
        let what = match (mapping, tag) {
            (Some(mapping), _) => self.mapped(node, &here, mapping)?,
            _ if here.hidden || !here.style.visible => return Ok(()),
            (None, "text") => {
                let chunks =
                    words::chunks(node, &here.style, &mut |style, node| styled(style, node, &mut self.colours))?;
                self.chars += chunks.iter().map(Chunk::chars).sum::<usize>();
                words::check_chars(self.chars)?;
                if here.style.struck {
                    return Err("only a mapped price can be struck through".to_owned());
                }
                What::Text { chunks, matrix: here.matrix }
            }
            (None, "image") => {
                let png = href(node).and_then(|href| href.strip_prefix(PNG_URI)).ok_or("it has no picture")?;
                let png = png.chars().filter(|ch| !ch.is_ascii_whitespace()).collect();
                let mut image = Image {
                    id: String::new(),
                    area: area()?,
                    when: Vec::new(),
                    png,
                    dither: Dither::Diffuse,
                    source: None,
                    dithered: Default::default(),
                };
                check::image(&mut image, self.sheet, &mut self.pixels)?;
                What::Image(image)
            }
            (None, _) => match shape::shape(node, &here.style, here.matrix, &mut self.segments)? {
                Some(svg) => What::Shape(svg),
                None => return Ok(()),
            },
        };
        if self.pieces.len() == PAINTED_MAX {
            return Err(format!("with its <use> the design paints more than {PAINTED_MAX} shapes and texts"));
        }
        self.pieces.push(Piece { label: label(node), gates: here.gates, what });
        Ok(())
    }

    fn mapped(&mut self, node: Node<'_, '_>, here: &Context, mapping: usize) -> Result<What, String> {
        let tag = node.tag_name().name();
        let kind = self.mappings.get(mapping).map(|(_, mapping)| mapping);
        let carrier = match (kind, tag) {
            (Some(Mapping::Text(_) | Mapping::Price(_) | Mapping::Date(_)), "text") => {
                let chunks =
                    words::chunks(node, &here.style, &mut |style, node| styled(style, node, &mut self.colours))?;
                Carrier::Text(words::carrier(&chunks, here.matrix, &here.style)?)
            }
            (Some(Mapping::Barcode(_)), "rect") | (Some(Mapping::Picture(_)), "rect" | "image") => Carrier::Box(
                here.matrix.area(px(node, "x")?, px(node, "y")?, px(node, "width")?, px(node, "height")?)?,
            ),
            (Some(Mapping::Barcode(_)), _) => return Err("a barcode fills a <rect>".to_owned()),
            (Some(Mapping::Picture(_)), _) => return Err("a picture fills a <rect> or an <image>".to_owned()),
            _ => return Err("text, prices and dates fill a <text>".to_owned()),
        };
        Ok(What::Mapped { mapping, carrier })
    }
}
