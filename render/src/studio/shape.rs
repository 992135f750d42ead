//! Static shapes, checked number by number and written anew for the rasteriser.

use std::fmt::Write as _;

use picture::{PIXELS_MAX, SIDE_MAX};
use resvg::usvg::roxmltree::Node;
use svgtypes::{NumberListParser, PathParser, PathSegment};

use super::colour::Code;
use super::geometry::{Matrix, length, number, short};
use super::limits::SEGMENTS_MAX;
use super::style::Style;

/// Path segments used so far.
#[derive(Debug, Default)]
pub(crate) struct Segments(usize);

impl Segments {
    pub(crate) fn add(&mut self, count: usize) -> Result<(), String> {
        self.0 += count;
        if self.0 > SEGMENTS_MAX {
            return Err(format!("the design has more than {SEGMENTS_MAX} path segments"));
        }
        Ok(())
    }
}

/// The colour that stands for a code while shapes are rasterised; see [`code_of`].
pub(crate) fn stand_in(code: Code) -> String {
    format!("#{code:02x}5aa5")
}

/// The code that an opaque pixel stands for.
pub(crate) const fn code_of(red: u8, green: u8, blue: u8, alpha: u8) -> Option<Code> {
    if green == 0x5A && blue == 0xA5 && alpha == 255 { Some(red) } else { None }
}

/// Size of the design: whole pixels, one user unit each.
pub(crate) fn sheet_size(root: Node<'_, '_>) -> Result<(u32, u32), String> {
    let side = |name: &str| root.attribute(name).map(length).transpose();
    let (width, height) = (side("width")?, side("height")?);
    let viewed = root.attribute("viewBox").map(view_box).transpose()?;
    let (width, height) = match (width.zip(height), viewed) {
        (Some(size), Some(viewed)) if size != viewed => {
            return Err("width, height and viewBox differ; a unit of the drawing must be a pixel".to_owned());
        }
        (Some(size), _) | (None, Some(size)) => size,
        (None, None) => return Err("it has no width and height, and no viewBox".to_owned()),
    };
    let whole = |value: f64| {
        let sound = value.fract() == 0.0 && (1.0..=f64::from(SIDE_MAX)).contains(&value);
        let value = u32::try_from(super::geometry::whole(value)).ok().filter(|_| sound);
        value.ok_or_else(|| format!("its sides are whole pixels from 1 to {SIDE_MAX}"))
    };
    let (width, height) = (whole(width)?, whole(height)?);
    let area = usize::try_from(u64::from(width) * u64::from(height)).unwrap_or(usize::MAX);
    if area > PIXELS_MAX {
        return Err(format!("it has more than {PIXELS_MAX} pixels"));
    }
    Ok((width, height))
}

fn view_box(text: &str) -> Result<(f64, f64), String> {
    let numbers = list(text, 4)?;
    match numbers.as_slice() {
        [x, y, width, height] if *x == 0.0 && *y == 0.0 => Ok((*width, *height)),
        _ => Err(format!("viewBox=\"{}\" is not \"0 0 width height\"", short(text))),
    }
}

/// At most `most` numbers.
fn list(text: &str, most: usize) -> Result<Vec<f64>, String> {
    let mut out = Vec::new();
    for value in NumberListParser::from(text) {
        if out.len() == most {
            return Err(format!("a list has more than {most} numbers"));
        }
        out.push(number(value.map_err(|_| format!("\"{}\" is no list of numbers", short(text)))?)?);
    }
    Ok(out)
}

/// The shape as an SVG element of our own, or `None` if it paints nothing.
pub(crate) fn shape(
    node: Node<'_, '_>,
    style: &Style,
    matrix: Matrix,
    segments: &mut Segments,
) -> Result<Option<String>, String> {
    let tag = node.tag_name().name();
    // Stroking costs more than filling.
    let weight = if style.stroke.is_some() { 3 } else { 1 };
    let mut out = format!("<{tag}");
    let mut put = |names: &[&str], least: f64| -> Result<(), String> {
        for name in names {
            let Some(text) = node.attribute(*name).filter(|text| *text != "auto") else { continue };
            let value = length(text)?;
            if value < least {
                return Err(format!("{name}=\"{}\" is negative", short(text)));
            }
            // Writing to a string cannot fail.
            let _ = write!(out, " {name}=\"{value}\"");
        }
        Ok(())
    };
    let any = f64::NEG_INFINITY;
    match tag {
        "rect" => {
            put(&["x", "y"], any)?;
            put(&["width", "height", "rx", "ry"], 0.0)?;
            segments.add(8 * weight)?;
        }
        "circle" | "ellipse" => {
            put(&["cx", "cy"], any)?;
            put(if tag == "circle" { &["r"] } else { &["rx", "ry"] }, 0.0)?;
            segments.add(4 * weight)?;
        }
        "line" => {
            put(&["x1", "y1", "x2", "y2"], any)?;
            segments.add(weight)?;
        }
        "polyline" | "polygon" => {
            let points = list(node.attribute("points").unwrap_or_default(), 2 * SEGMENTS_MAX)?;
            segments.add(points.len() / 2 * weight)?;
            let points: Vec<String> = points.iter().map(f64::to_string).collect();
            let _ = write!(out, " points=\"{}\"", points.join(" "));
        }
        "path" => {
            let d = node.attribute("d").unwrap_or_default();
            path(d, weight, segments)?;
            // Only letters, digits, signs and spaces of path data are left after the check.
            let _ = write!(out, " d=\"{d}\"");
        }
        _ => return Err("this element is not supported".to_owned()),
    }
    Ok(paint(style, matrix).map(|paint| format!("{out}{paint}/>")))
}

fn path(d: &str, weight: usize, segments: &mut Segments) -> Result<(), String> {
    for segment in PathParser::from(d) {
        let segment = segment.map_err(|_| format!("d=\"{}\" is no path", short(d)))?;
        segments.add(weight)?;
        let numbers = match segment {
            PathSegment::MoveTo { x, y, .. }
            | PathSegment::LineTo { x, y, .. }
            | PathSegment::SmoothQuadratic { x, y, .. } => [x, y, 0.0, 0.0, 0.0, 0.0],
            PathSegment::HorizontalLineTo { x, .. } => [x, 0.0, 0.0, 0.0, 0.0, 0.0],
            PathSegment::VerticalLineTo { y, .. } => [0.0, y, 0.0, 0.0, 0.0, 0.0],
            PathSegment::CurveTo { x1, y1, x2, y2, x, y, .. } => [x1, y1, x2, y2, x, y],
            PathSegment::SmoothCurveTo { x2, y2, x, y, .. } => [x2, y2, x, y, 0.0, 0.0],
            PathSegment::Quadratic { x1, y1, x, y, .. } => [x1, y1, x, y, 0.0, 0.0],
            PathSegment::EllipticalArc { rx, ry, x_axis_rotation, x, y, .. } => [rx, ry, x_axis_rotation, x, y, 0.0],
            PathSegment::ClosePath { .. } => [0.0; 6],
        };
        for value in numbers {
            number(value)?;
        }
    }
    Ok(())
}

/// Paint and transform attributes, or `None` if nothing would show. `pub` for outlines of turned text.
pub(crate) fn paint(style: &Style, matrix: Matrix) -> Option<String> {
    let stroke = style.stroke.filter(|_| style.stroke_width > 0.0);
    if style.fill.is_none() && stroke.is_none() {
        return None;
    }
    let mut out = String::new();
    let Matrix { a, b, c, d, e, f } = matrix;
    if matrix != Matrix::IDENTITY {
        let _ = write!(out, " transform=\"matrix({a} {b} {c} {d} {e} {f})\"");
    }
    let fill = style.fill.map_or_else(|| "none".to_owned(), stand_in);
    let _ = write!(out, " fill=\"{fill}\"");
    if style.even_odd {
        out.push_str(" fill-rule=\"evenodd\"");
    }
    if let Some(code) = stroke {
        // A stroke thinner than a pixel would have gaps.
        let width = style.stroke_width.max(1.0 / matrix.scale());
        let Style { cap, join, miter, .. } = style;
        let _ = write!(
            out,
            " stroke=\"{}\" stroke-width=\"{width}\" stroke-linecap=\"{cap}\" stroke-linejoin=\"{join}\" stroke-miterlimit=\"{miter}\"",
            stand_in(code)
        );
        if !style.dashes.is_empty() {
            let dashes: Vec<String> = style.dashes.iter().map(f64::to_string).collect();
            let _ =
                write!(out, " stroke-dasharray=\"{}\" stroke-dashoffset=\"{}\"", dashes.join(" "), style.dash_offset);
        }
    }
    Some(out)
}
