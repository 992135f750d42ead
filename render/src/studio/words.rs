//! Static texts and the look of mapped ones. Upright text is set by the engine that sets values (hinted, whole pixels),
//! so both look alike; turned or outlined text goes to the rasteriser as outlines of the same font.

use std::fmt::Write as _;

use resvg::usvg::roxmltree::Node;

use super::geometry::{Matrix, length, short, whole};
use super::limits::TEXT_CHARS_MAX;
use super::shape::{Segments, paint};
use super::style::Style;
use super::walk::TextCarrier;
use crate::canvas::Canvas;
use crate::ecc::model::Align;
use crate::text::{Fonts, Run as Font, SIZE_MAX, SIZE_MIN, clean, shape};

/// A stretch of text with one anchor point.
#[derive(Debug)]
pub(crate) struct Chunk {
    x: f64,
    y: f64,
    anchor: Align,
    runs: Vec<Run>,
}

/// Text of one style.
#[derive(Debug)]
struct Run {
    style: Style,
    text: String,
}

impl Chunk {
    pub(crate) fn chars(&self) -> usize {
        self.runs.iter().map(|run| run.text.chars().count()).sum()
    }

    pub(crate) fn is_struck(&self) -> bool {
        self.runs.iter().any(|run| run.style.struck)
    }
}

pub(crate) fn check_chars(chars: usize) -> Result<(), String> {
    if chars > TEXT_CHARS_MAX {
        return Err(format!("the design's own texts have more than {TEXT_CHARS_MAX} characters"));
    }
    Ok(())
}

/// Resolves a `tspan`'s style.
type Restyle<'a> = &'a mut dyn FnMut(&Style, Node<'_, '_>) -> Result<Style, String>;

/// The chunks of a `text`. White space is collapsed, as SVG does by default.
pub(crate) fn chunks(node: Node<'_, '_>, style: &Style, restyle: Restyle<'_>) -> Result<Vec<Chunk>, String> {
    let start = Chunk {
        x: coordinate(node, "x")?.unwrap_or(0.0),
        y: coordinate(node, "y")?.unwrap_or(0.0),
        anchor: style.anchor,
        runs: Vec::new(),
    };
    let mut out = vec![start];
    // White space at the start of a chunk does not show.
    let mut spaced = true;
    collect(node, style, restyle, &mut out, &mut spaced)?;
    for chunk in &mut out {
        if let Some(run) = chunk.runs.last_mut() {
            run.text.truncate(run.text.trim_end_matches(' ').len());
        }
        for run in &mut chunk.runs {
            run.text = clean(&run.text, false).map_err(|cause| cause.to_string())?.into_owned();
        }
    }
    Ok(out)
}

fn coordinate(node: Node<'_, '_>, name: &str) -> Result<Option<f64>, String> {
    node.attribute(name).map(length).transpose()
}

fn collect(
    node: Node<'_, '_>,
    style: &Style,
    restyle: Restyle<'_>,
    out: &mut Vec<Chunk>,
    spaced: &mut bool,
) -> Result<(), String> {
    for child in node.children() {
        if let Some(text) = child.text().filter(|_| child.is_text()) {
            let mut run = String::new();
            for ch in text.chars() {
                let space = ch.is_ascii_whitespace();
                if !(space && *spaced) {
                    run.push(if space { ' ' } else { ch });
                }
                *spaced = space;
            }
            if let Some(chunk) = out.last_mut().filter(|_| !run.is_empty()) {
                chunk.runs.push(Run { style: style.clone(), text: run });
            }
        } else if child.is_element() && child.tag_name().name() == "tspan" {
            if child.attribute("transform").is_some() {
                return Err("a <tspan> has no transform".to_owned());
            }
            let inner = restyle(style, child)?;
            if inner.gone || !inner.visible {
                continue;
            }
            let (x, y) = (coordinate(child, "x")?, coordinate(child, "y")?);
            if let Some(last) = out.last() {
                match (x, y) {
                    (Some(x), y) => {
                        let y = y.unwrap_or(last.y);
                        out.push(Chunk { x, y, anchor: inner.anchor, runs: Vec::new() });
                        *spaced = true;
                    }
                    (None, Some(_)) => return Err("a <tspan> with y needs x as well".to_owned()),
                    (None, None) => {}
                }
            }
            collect(child, &inner, restyle, out, spaced)?;
        } else if child.is_element() && !matches!(child.tag_name().name(), "title" | "desc") {
            return Err(format!("<{}> does not stand in a text", short(child.tag_name().name())));
        }
    }
    Ok(())
}

/// The look of a mapped text: that of its first words, if it has any.
pub(crate) fn carrier(chunks: &[Chunk], matrix: Matrix, own: &Style) -> Result<TextCarrier, String> {
    let chunk = chunks.iter().find(|chunk| !chunk.runs.is_empty()).or(chunks.first()).ok_or("it has no place")?;
    let style = chunk.runs.first().map_or(own, |run| &run.style);
    if !matrix.is_similar() {
        return Err("text that is filled with values cannot be turned, mirrored, skewed or stretched".to_owned());
    }
    if style.stroke.is_some() {
        return Err("text that is filled with values has no stroke".to_owned());
    }
    let fill = style.fill.ok_or("text that is filled with values needs a fill")?;
    let (x, y) = matrix.point(chunk.x, chunk.y);
    Ok(TextCarrier {
        x,
        y,
        size: style.size * matrix.a,
        weight: style.weight,
        anchor: chunk.anchor,
        fill,
        struck: style.struck,
    })
}

/// A size in whole pixels, or why it cannot be shown.
pub(crate) fn pixels(size: f64) -> Result<u16, String> {
    let rounded = u16::try_from(whole(size)).ok().filter(|size| (SIZE_MIN..=SIZE_MAX).contains(size));
    rounded.ok_or_else(|| format!("its font is {size:.1} px; {SIZE_MIN} to {SIZE_MAX} px can be shown"))
}

/// What a text becomes on a layer.
pub(crate) enum Set {
    /// Pixels of codes, already drawn.
    Drawn,
    /// SVG of our own, to be rasterised.
    Outlines(String),
}

/// Sets a static text on a canvas of codes, or turns it into outlines.
pub(crate) fn set(
    chunks: &[Chunk],
    matrix: Matrix,
    fonts: &mut Fonts,
    canvas: &mut Canvas,
    segments: &mut Segments,
) -> Result<Set, String> {
    let outlined = chunks.iter().flat_map(|chunk| &chunk.runs).any(|run| run.style.stroke.is_some());
    if matrix.is_similar() && !outlined {
        for chunk in chunks {
            upright(chunk, matrix, fonts, canvas)?;
        }
        return Ok(Set::Drawn);
    }
    let mut out = String::new();
    for chunk in chunks {
        outlines(chunk, matrix, fonts, segments, &mut out)?;
    }
    Ok(Set::Outlines(out))
}

fn upright(chunk: &Chunk, matrix: Matrix, fonts: &mut Fonts, canvas: &mut Canvas) -> Result<(), String> {
    let mut lines = Vec::new();
    for run in &chunk.runs {
        let size = pixels(run.style.size * matrix.a)?;
        let why = |cause: crate::error::Cause| cause.to_string();
        fonts.spend(run.text.chars().count(), size).map_err(why)?;
        let line = shape(fonts, Font { weight: run.style.weight, size }, &run.text).map_err(why)?;
        lines.push((line, run.style.fill));
    }
    let width: i32 = lines.iter().map(|(line, _)| line.advance).sum();
    let (x, y) = matrix.point(chunk.x, chunk.y);
    let mut pen = whole(x)
        - match chunk.anchor {
            Align::Left => 0,
            // As a mapped text is centred, so both stand alike.
            Align::Center => (width + 1) / 2,
            Align::Right => width,
        };
    for (line, fill) in lines {
        if let Some(code) = fill {
            line.draw(canvas, pen, whole(y), code);
        }
        pen += line.advance;
    }
    Ok(())
}

fn outlines(
    chunk: &Chunk,
    matrix: Matrix,
    fonts: &mut Fonts,
    segments: &mut Segments,
    out: &mut String,
) -> Result<(), String> {
    let mut set: Vec<(String, &Style, f64)> = Vec::new();
    let mut pen = 0.0;
    for run in &chunk.runs {
        pixels(run.style.size * matrix.scale())?;
        let outline = fonts.outline(run.style.weight, run.style.size, &run.text).map_err(|cause| cause.to_string())?;
        segments.add(outline.segments)?;
        set.push((outline.d, &run.style, pen));
        pen += outline.advance;
    }
    let start = match chunk.anchor {
        Align::Left => 0.0,
        Align::Center => pen / 2.0,
        Align::Right => pen,
    };
    for (d, style, at) in set {
        let placed = matrix.then(Matrix::shift(chunk.x - start + at, chunk.y))?;
        if let Some(paint) = paint(style, placed) {
            // Writing to a string cannot fail.
            let _ = write!(out, "<path d=\"{d}\"{paint}/>");
        }
    }
    Ok(())
}
