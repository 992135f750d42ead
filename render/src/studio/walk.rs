//! From the SVG to a flat list of what is painted, in order. `use` is expanded, styles are inherited and transforms
//! multiplied here, so that what goes on to the rasteriser is written anew by us, and holds no reference to anything.

use std::collections::BTreeMap;

use resvg::usvg::roxmltree::{Document, Node, ParsingOptions};

use super::colour::{Code, Colours};
use super::error::DesignError;
use super::geometry::{Matrix, message, short};
use super::limits::{DEPTH_MAX, PAINTED_MAX, READ_BYTES_MAX, VISITS_MAX};
use super::mapping::Mapping;
use super::shape::{self, Segments};
use super::style::Style;
use super::vet::{PNG_URI, broken, href, is, label, px, skipped, styled, vet};
use super::words::{self, Chunk};
use crate::canvas::Area;
use crate::dither::Dither;
use crate::ecc::check::{self, PICTURE_PIXELS_MAX};
use crate::ecc::model::{Align, Image};
use crate::text::Weight;

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
    Image(Box<Image>),
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
    read: usize,
    /// Where lines end, so that a label costs no search through the document.
    lines: Vec<usize>,
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
    let document =
        Document::parse_with_options(svg, options).map_err(|cause| DesignError::Svg(message(&cause.to_string())))?;
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
        read: 0,
        lines: svg.match_indices('\n').map(|(at, _)| at).collect(),
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

/// Bytes that handling an element reads: its attributes, and the texts in a `text`.
fn read_bytes(node: Node<'_, '_>) -> usize {
    let attributes = |node: Node<'_, '_>| node.attributes().map(|attribute| attribute.value().len()).sum::<usize>();
    if is(node, "text") {
        node.descendants().map(|inner| attributes(inner) + inner.text().map_or(0, str::len)).sum()
    } else {
        attributes(node)
    }
}

impl Walk<'_, '_> {
    /// As [`label`], without a search.
    fn label(&self, node: Node<'_, '_>) -> String {
        if node.attribute("id").is_some() {
            return label(node);
        }
        let line = self.lines.partition_point(|end| *end < node.range().start) + 1;
        format!("<{}> in line {line}", node.tag_name().name())
    }

    fn element(&mut self, node: Node<'_, '_>, outer: &Context) -> Result<(), DesignError> {
        if skipped(node) {
            return Ok(());
        }
        let fail = |rule: String| broken(node, rule);
        self.visits += 1;
        if self.visits > VISITS_MAX {
            return Err(DesignError::Svg(format!("with its <use> it has more than {VISITS_MAX} elements")));
        }
        self.read += read_bytes(node);
        if self.read > READ_BYTES_MAX {
            return Err(DesignError::Svg(format!("with its <use> it has more than {READ_BYTES_MAX} bytes")));
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
                if chunks.iter().any(Chunk::is_struck) {
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
                What::Image(Box::new(image))
            }
            (None, _) => match shape::shape(node, &here.style, here.matrix, &mut self.segments)? {
                Some(svg) => What::Shape(svg),
                None => return Ok(()),
            },
        };
        if self.pieces.len() == PAINTED_MAX {
            return Err(format!("with its <use> the design paints more than {PAINTED_MAX} shapes and texts"));
        }
        let label = self.label(node);
        self.pieces.push(Piece { label, gates: here.gates, what });
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
