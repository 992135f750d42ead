//! Static layers: what lies between two mapped elements, rasterised once when a design is read. A layer holds the design's
//! own colour codes, so it serves every palette.

use resvg::tiny_skia::{PathSegment, Pixmap, Transform};
use resvg::usvg::{Group, ImageHrefResolver, Node, Options, Path, Tree};

use super::error::DesignError;
use super::limits::{DASHES_DRAWN_MAX, LAYER_PIXELS_MAX, PAINTED_PIXELS_MAX, SPANS_MAX};
use super::shape::{Segments, code_of};
use super::walk::{Piece, What};
use super::words::{self, Set};
use crate::canvas::{Area, Canvas, TRANSPARENT};
use crate::text::Fonts;

/// Pixels `from..to` of row `y` in one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) y: u16,
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) code: u8,
}

/// Rasterises layers, within the design's budgets.
pub(crate) struct Layers<'a> {
    width: u32,
    height: u32,
    fonts: &'a mut Fonts,
    segments: Segments,
    pixmap: Pixmap,
    canvas: Canvas,
    /// Shapes not yet rasterised.
    pending: String,
    /// Whether the canvas holds anything.
    used: bool,
    pixels: u64,
    painted: u64,
    dashes: f64,
    spans: usize,
}

impl<'a> Layers<'a> {
    /// The sides were checked against the picture's limits before.
    pub(crate) fn new(width: u32, height: u32, segments: Segments, fonts: &'a mut Fonts) -> Result<Self, DesignError> {
        let pixmap =
            Pixmap::new(width, height).ok_or_else(|| DesignError::Svg("its size is out of range".to_owned()))?;
        Ok(Self {
            width,
            height,
            fonts,
            segments,
            pixmap,
            canvas: Canvas::new(width, height, TRANSPARENT),
            pending: String::new(),
            used: false,
            pixels: LAYER_PIXELS_MAX,
            painted: PAINTED_PIXELS_MAX,
            dashes: DASHES_DRAWN_MAX,
            spans: SPANS_MAX,
        })
    }

    /// Adds a static piece to the open layer; others are not its business.
    pub(crate) fn add(&mut self, piece: &Piece) -> Result<(), DesignError> {
        let fail = |rule: String| DesignError::Element { element: piece.label.clone(), rule };
        match &piece.what {
            What::Shape(svg) => self.pending.push_str(svg),
            What::Text { chunks, matrix } => {
                self.flush()?;
                match words::set(chunks, *matrix, self.fonts, &mut self.canvas, &mut self.segments).map_err(fail)? {
                    Set::Drawn => self.used = true,
                    Set::Outlines(svg) => self.pending.push_str(&svg),
                }
            }
            What::Image(_) | What::Mapped { .. } => {}
        }
        Ok(())
    }

    /// Ends the open layer; `None` if nothing is in it.
    pub(crate) fn close(&mut self) -> Result<Option<Vec<Span>>, DesignError> {
        self.flush()?;
        if !std::mem::take(&mut self.used) {
            return Ok(None);
        }
        self.spend(u64::from(self.width) * u64::from(self.height))?;
        let canvas = std::mem::replace(&mut self.canvas, Canvas::new(self.width, self.height, TRANSPARENT));
        let spans = spans(&canvas.into_indices(), self.width);
        let left = self.spans.checked_sub(spans.len());
        self.spans =
            left.ok_or_else(|| DesignError::Svg(format!("its layers have more than {SPANS_MAX} runs of pixels")))?;
        Ok((!spans.is_empty()).then_some(spans))
    }

    fn spend(&mut self, pixels: u64) -> Result<(), DesignError> {
        let left = self.pixels.checked_sub(pixels);
        self.pixels = left.ok_or_else(|| DesignError::Svg("it has too many layers for its size".to_owned()))?;
        Ok(())
    }

    /// Rasterises pending shapes onto the canvas.
    fn flush(&mut self) -> Result<(), DesignError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (width, height) = (self.width, self.height);
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" shape-rendering=\"crispEdges\">{}</svg>",
            self.pending
        );
        self.pending.clear();
        let tree = Tree::from_str(&svg, &options()).map_err(|cause| DesignError::Svg(cause.to_string()))?;
        let mut cost = Cost { sheet: (width, height), painted: 0, dashes: 0.0 };
        cost.group(tree.root())?;
        self.painted = self
            .painted
            .checked_sub(cost.painted)
            .ok_or_else(|| DesignError::Svg("its shapes paint the same pixels too often".to_owned()))?;
        self.dashes -= cost.dashes;
        if self.dashes < 0.0 {
            return Err(DesignError::Svg(format!("its strokes have more than {DASHES_DRAWN_MAX} dashes")));
        }
        resvg::render(&tree, Transform::identity(), &mut self.pixmap.as_mut());
        let touched = touched(&tree, width, height);
        self.spend(u64::from(touched.width.unsigned_abs()) * u64::from(touched.height.unsigned_abs()))?;
        self.take(touched)
    }

    /// Moves rasterised pixels to the canvas and leaves the pixmap clear.
    fn take(&mut self, touched: Area) -> Result<(), DesignError> {
        let index = |value: i32| usize::try_from(value).unwrap_or(0);
        let (left, right) = (index(touched.x), index(touched.right()));
        let width = usize::try_from(self.width).unwrap_or(1).max(1);
        let rows = self.pixmap.pixels_mut().chunks_exact_mut(width).zip(0..);
        for (row, y) in rows.skip(index(touched.y)).take(index(touched.height)) {
            for (pixel, x) in row.get_mut(left..right).unwrap_or_default().iter_mut().zip(touched.x..) {
                if pixel.alpha() == 0 {
                    continue;
                }
                let code = code_of(pixel.red(), pixel.green(), pixel.blue(), pixel.alpha())
                    .ok_or_else(|| DesignError::Svg("a shape left a pixel between two inks".to_owned()))?;
                self.canvas.span(y, x, x + 1, code);
                *pixel = resvg::tiny_skia::PremultipliedColorU8::TRANSPARENT;
            }
        }
        self.used = true;
        Ok(())
    }
}

/// What the shapes reach, clipped to the sheet, with a pixel of margin for rounding.
fn touched(tree: &Tree, width: u32, height: u32) -> Area {
    let bounds = tree.root().abs_stroke_bounding_box();
    let side = |side: u32| i32::try_from(side).unwrap_or(0);
    let edge = |value: f32, margin: i32, most: i32| {
        super::geometry::whole(f64::from(value)).saturating_add(margin).clamp(0, most)
    };
    let (width, height) = (side(width), side(height));
    let (x, y) = (edge(bounds.left(), -2, width), edge(bounds.top(), -2, height));
    Area { x, y, width: edge(bounds.right(), 2, width) - x, height: edge(bounds.bottom(), 2, height) - y }
}

/// Nothing can be reached from what we write; should anything ask, it gets nothing.
fn options() -> Options<'static> {
    Options {
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|_, _| None),
        },
        ..Options::default()
    }
}

/// What rasterising will cost.
struct Cost {
    sheet: (u32, u32),
    painted: u64,
    dashes: f64,
}

/// Farthest a shape may reach, pixels: far beyond any sheet, and exact in the rasteriser's numbers.
const REACH_MAX: f32 = 65_536.0;

impl Cost {
    fn group(&mut self, group: &Group) -> Result<(), DesignError> {
        for node in group.children() {
            match node {
                Node::Group(inner) => self.group(inner)?,
                Node::Path(path) => self.path(path)?,
                // We write neither.
                Node::Image(_) | Node::Text(_) => {}
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path) -> Result<(), DesignError> {
        let bounds = path.abs_stroke_bounding_box();
        let edges = [bounds.left(), bounds.top(), bounds.right(), bounds.bottom()];
        if !edges.iter().all(|edge| edge.abs() <= REACH_MAX) {
            return Err(DesignError::Svg(format!("a shape reaches farther than {REACH_MAX} pixels")));
        }
        let covered = |from: f32, to: f32, side: u32| {
            let side = f64::from(side);
            (f64::from(to).clamp(0.0, side) - f64::from(from).clamp(0.0, side)).ceil() + 1.0
        };
        let (width, height) = self.sheet;
        let area = covered(bounds.left(), bounds.right(), width) * covered(bounds.top(), bounds.bottom(), height);
        self.painted += u64::try_from(super::geometry::whole(area)).unwrap_or(0);
        if let Some(dashes) = path.stroke().and_then(|stroke| stroke.dasharray()) {
            let period: f64 = dashes.iter().map(|dash| f64::from(*dash)).sum();
            let count = f64::from(u32::try_from(dashes.len()).unwrap_or(u32::MAX));
            self.dashes += length(path) / period.max(1e-9) * count;
        }
        Ok(())
    }
}

/// No less than a path's length: that of its control points.
fn length(path: &Path) -> f64 {
    let (mut total, mut at, mut start) = (0.0, None, None);
    let mut go = |to: resvg::tiny_skia::Point, at: &mut Option<resvg::tiny_skia::Point>| {
        if let Some(from) = at.replace(to) {
            total += f64::from(to.x - from.x).hypot(f64::from(to.y - from.y));
        }
    };
    for segment in path.data().segments() {
        match segment {
            PathSegment::MoveTo(point) => {
                at = Some(point);
                start = Some(point);
            }
            PathSegment::LineTo(point) => go(point, &mut at),
            PathSegment::QuadTo(a, point) => [a, point].into_iter().for_each(|point| go(point, &mut at)),
            PathSegment::CubicTo(a, b, point) => [a, b, point].into_iter().for_each(|point| go(point, &mut at)),
            PathSegment::Close => start.into_iter().for_each(|point| go(point, &mut at)),
        }
    }
    total
}

fn spans(indices: &[u8], width: u32) -> Vec<Span> {
    let mut out = Vec::new();
    let short = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    for (y, row) in indices.chunks_exact(usize::try_from(width).unwrap_or(1).max(1)).enumerate() {
        let mut at = 0;
        for run in row.chunk_by(|a, b| a == b) {
            let to = at + run.len();
            if let Some(code) = run.first().filter(|code| **code != TRANSPARENT) {
                out.push(Span { y: short(y), from: short(at), to: short(to), code: *code });
            }
            at = to;
        }
    }
    out
}
