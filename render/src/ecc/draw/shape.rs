//! Rectangles, ellipses, lines: whole pixels, integer arithmetic.

use super::Sketch;
use crate::canvas::Area;
use crate::ecc::model::{Ellipse, Line, Rect};

/// The columns (from, to) of an outline in one row, relative to its area.
type Outline = fn(size: (i32, i32), radius: i32, row: i32) -> (i32, i32);

/// What is painted, and in which inks (indices).
struct Paint {
    area: Area,
    radius: i32,
    fill: Option<u8>,
    stroke: Option<u8>,
    stroke_width: u16,
    outline: Outline,
}

pub(crate) fn rect(sketch: &mut Sketch<'_>, rect: &Rect) {
    let paint = Paint {
        area: rect.area,
        radius: rect.radius.into(),
        fill: rect.fill.as_ref().map(|inks| sketch.ink(inks).index),
        stroke: rect.stroke.as_ref().map(|inks| sketch.ink(inks).index),
        stroke_width: rect.stroke_width,
        outline: rounded,
    };
    paint.onto(sketch);
}

pub(crate) fn ellipse(sketch: &mut Sketch<'_>, ellipse: &Ellipse) {
    let paint = Paint {
        area: ellipse.area,
        radius: 0,
        fill: ellipse.fill.as_ref().map(|inks| sketch.ink(inks).index),
        stroke: ellipse.stroke.as_ref().map(|inks| sketch.ink(inks).index),
        stroke_width: ellipse.stroke_width,
        outline: elliptic,
    };
    paint.onto(sketch);
}

impl Paint {
    /// Row by row: the stroke from the outer outline to the inner one, the fill within.
    fn onto(&self, sketch: &mut Sketch<'_>) {
        let area = self.area;
        let width = if self.stroke.is_some() { i32::from(self.stroke_width) } else { 0 };
        let inner = (area.width - 2 * width, area.height - 2 * width);
        for row in 0..area.height {
            let (from, to) = (self.outline)((area.width, area.height), self.radius, row);
            let y = area.y + row;
            let within = (row >= width && row - width < inner.1 && inner.0 > 0)
                .then(|| (self.outline)(inner, (self.radius - width).max(0), row - width));
            if let Some(stroke) = self.stroke {
                let (hole_from, hole_to) = within.map_or((to, to), |(from, to)| (from + width, to + width));
                sketch.canvas.span(y, area.x + from, area.x + hole_from, stroke);
                sketch.canvas.span(y, area.x + hole_to, area.x + to, stroke);
            }
            if let (Some(fill), Some((from, to))) = (self.fill, within) {
                sketch.canvas.span(y, area.x + width + from, area.x + width + to, fill);
            }
        }
    }
}

fn rounded((width, height): (i32, i32), radius: i32, row: i32) -> (i32, i32) {
    let depth = row.min(height - 1 - row);
    if depth >= radius {
        return (0, width);
    }
    // The row's middle, in half pixels from the corner's centre.
    let inset = inset(2 * radius, 2 * (radius - depth) - 1);
    (inset, width - inset)
}

fn elliptic((width, height): (i32, i32), _: i32, row: i32) -> (i32, i32) {
    // The row's middle, in half pixels from the centre, scaled to a circle as wide as the ellipse.
    let offset = i64::from((2 * row + 1 - height).abs()) * i64::from(width) / i64::from(height.max(1));
    let inset = inset(width, i32::try_from(offset).unwrap_or(0));
    (inset, width - inset)
}

/// Pixels outside a circle on each side of the row `offset` half pixels from its centre; `diameter` in pixels. A
/// pixel is inside if its middle is.
fn inset(diameter: i32, offset: i32) -> i32 {
    let square = (i64::from(diameter).pow(2) - i64::from(offset).pow(2)).max(0);
    (diameter - i32::try_from(square.isqrt()).unwrap_or(0)).div_euclid(2)
}

pub(crate) fn line(sketch: &mut Sketch<'_>, line: &Line) {
    let index = sketch.ink(&line.stroke).index;
    let width = i32::from(line.stroke_width);
    let ((x0, y0), (x1, y1)) = (line.from, line.to);
    let (dx, dy) = ((x1 - x0).abs(), (y1 - y0).abs());
    // A square pen of the stroke's width, moved along the longer axis: exact for upright and level lines.
    let steps = dx.max(dy);
    let back = (width - 1) / 2;
    let along = |from: i32, to: i32, step: i32| {
        if steps == 0 { from } else { from + ((to - from) * step * 2 + steps).div_euclid(2 * steps) }
    };
    for step in 0..=steps {
        let (x, y) = (along(x0, x1, step), along(y0, y1, step));
        let pen = if dx >= dy {
            Area { x, y: y - back, width: 1, height: width }
        } else {
            Area { x: x - back, y, width, height: 1 }
        };
        sketch.canvas.fill(pen, index);
    }
}
