//! From a hinted outline to one-bit spans: non-zero winding, pixel centres, dropout control. Integers only.
//!
//! Coordinates are 26.6 fixed point (64 units a pixel), y downwards.

use skrifa::outline::OutlinePen;

/// Pixels `from..to` of row `y`, relative to the pen on the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) y: i16,
    pub(crate) from: i16,
    pub(crate) to: i16,
}

/// Units a pixel.
const ONE: i32 = 64;
/// A pixel's centre.
const HALF: i32 = 32;
/// Largest coordinate kept: beyond any glyph at the largest size, and far from overflow.
const LIMIT: i32 = 1 << 17;

type Point = (i32, i32);

/// Collects an outline as straight edges.
#[derive(Default)]
pub(crate) struct Outline {
    edges: Vec<(Point, Point)>,
    start: Point,
    at: Point,
}

/// From the font scaler's pixels (exact multiples of 1/64 when hinted) to fixed point.
#[expect(clippy::cast_possible_truncation, reason = "clamped before the cast; a NaN becomes 0")]
fn fixed(value: f32) -> i32 {
    (value * 64.0).round().clamp(-131_072.0, 131_072.0) as i32
}

fn point(x: f32, y: f32) -> Point {
    (fixed(x), -fixed(y))
}

impl Outline {
    fn edge(&mut self, to: Point) {
        if self.at.1 != to.1 || self.at.0 != to.0 {
            self.edges.push((self.at, to));
        }
        self.at = to;
    }

    fn finish_contour(&mut self) {
        self.edge(self.start);
    }

    /// Straight pieces of a curve: about one for every two pixels, at least 4.
    fn pieces(points: &[Point]) -> i32 {
        let length: i32 = points
            .windows(2)
            .map(|pair| match pair {
                [a, b] => (a.0 - b.0).abs() + (a.1 - b.1).abs(),
                _ => 0,
            })
            .sum();
        (length / (2 * ONE)).clamp(4, 64)
    }

    /// A Bézier curve as straight pieces, by repeated interpolation kept whole until the last division.
    fn curve<const N: usize>(&mut self, points: [Point; N]) {
        let pieces = i64::from(Self::pieces(&points));
        for step in 1..=pieces {
            let at = |coordinate: fn(&Point) -> i32| {
                let mut values = points.map(|point| i64::from(coordinate(&point)));
                let mut whole = 1;
                for left in (1..N).rev() {
                    for at in 0..left {
                        if let Some([from, to]) = values.get_mut(at..at + 2) {
                            *from = *from * (pieces - step) + *to * step;
                        }
                    }
                    whole *= pieces;
                }
                i32::try_from(values.first().map_or(0, |value| value.div_euclid(whole))).unwrap_or(0)
            };
            self.edge((at(|point| point.0), at(|point| point.1)));
        }
    }

    /// The filled pixels, row by row.
    pub(crate) fn fill(mut self) -> Vec<Span> {
        self.finish_contour();
        let (mut left, mut top, mut right, mut bottom) = (LIMIT, LIMIT, -LIMIT, -LIMIT);
        for (x, y) in self.edges.iter().flat_map(|(a, b)| [*a, *b]) {
            (left, right) = (left.min(x), right.max(x));
            (top, bottom) = (top.min(y), bottom.max(y));
        }
        if left >= right && top >= bottom {
            return Vec::new();
        }
        // One pixel of margin for dropout pixels.
        let x0 = left.div_euclid(ONE) - 1;
        let y0 = top.div_euclid(ONE) - 1;
        let mut bits = Bits::new((right.div_euclid(ONE) + 2 - x0, bottom.div_euclid(ONE) + 2 - y0));
        let mut dropouts = Vec::new();
        for (row, from, to) in intervals(&self.edges, false) {
            let (first, last) = (centre_from(from), centre_from(to));
            for x in first..last {
                bits.set(x - x0, row - y0);
            }
            if first >= last {
                dropouts.push(((first - 1, row), (first, row), ((from + to).div_euclid(2).div_euclid(ONE), row)));
            }
        }
        // The same along columns, only for what falls between pixel centres there.
        for (column, from, to) in intervals(&self.edges, true) {
            let (first, last) = (centre_from(from), centre_from(to));
            if first >= last {
                dropouts.push((
                    (column, first - 1),
                    (column, first),
                    (column, (from + to).div_euclid(2).div_euclid(ONE)),
                ));
            }
        }
        // A stem thinner than a pixel that misses both centres beside it gets the nearer pixel, unless one is set.
        for (before, after, nearer) in dropouts {
            if !bits.get(before.0 - x0, before.1 - y0) && !bits.get(after.0 - x0, after.1 - y0) {
                bits.set(nearer.0 - x0, nearer.1 - y0);
            }
        }
        bits.spans(x0, y0)
    }
}

/// The first pixel whose centre is at or right of `x`.
fn centre_from(x: i32) -> i32 {
    (x - HALF + ONE - 1).div_euclid(ONE)
}

/// Inside intervals along each scan line, as (line, from, to): rows, or columns when `turned`.
fn intervals(edges: &[(Point, Point)], turned: bool) -> Vec<(i32, i32, i32)> {
    let mut crossings: Vec<(i32, i32, i32)> = Vec::new();
    for (a, b) in edges {
        let (a, b) = if turned { ((a.1, a.0), (b.1, b.0)) } else { (*a, *b) };
        let (low, high, direction) = if a.1 <= b.1 { (a, b, 1) } else { (b, a, -1) };
        if low.1 == high.1 {
            continue;
        }
        for line in centre_from(low.1)..centre_from(high.1) {
            let along = i64::from(line * ONE + HALF - low.1) * i64::from(high.0 - low.0);
            let x = i64::from(low.0) + along.div_euclid(i64::from(high.1 - low.1));
            crossings.push((line, i32::try_from(x).unwrap_or(LIMIT), direction));
        }
    }
    crossings.sort_unstable();
    let mut out = Vec::with_capacity(crossings.len() / 2);
    let (mut winding, mut from, mut current) = (0, 0, i32::MIN);
    for (line, x, direction) in crossings {
        if line != current {
            (current, winding) = (line, 0);
        }
        if winding == 0 {
            from = x;
        }
        winding += direction;
        if winding == 0 {
            out.push((line, from, x));
        }
    }
    out
}

/// A small bitmap, clipped.
struct Bits {
    width: i32,
    height: i32,
    set: Vec<bool>,
}

impl Bits {
    fn new((width, height): (i32, i32)) -> Self {
        let area = usize::try_from(width).unwrap_or(0) * usize::try_from(height).unwrap_or(0);
        Self { width, height, set: vec![false; area] }
    }

    fn at(&self, x: i32, y: i32) -> Option<usize> {
        let inside = (0..self.width).contains(&x) && (0..self.height).contains(&y);
        inside.then(|| usize::try_from(y * self.width + x).ok()).flatten()
    }

    fn get(&self, x: i32, y: i32) -> bool {
        self.at(x, y).and_then(|at| self.set.get(at)).copied().unwrap_or(false)
    }

    fn set(&mut self, x: i32, y: i32) {
        if let Some(bit) = self.at(x, y).and_then(|at| self.set.get_mut(at)) {
            *bit = true;
        }
    }

    fn spans(&self, x0: i32, y0: i32) -> Vec<Span> {
        let mut out = Vec::new();
        let short = |value: i32| i16::try_from(value).unwrap_or(0);
        for y in 0..self.height {
            let mut x = 0;
            while x < self.width {
                if !self.get(x, y) {
                    x += 1;
                    continue;
                }
                let from = x;
                while self.get(x, y) {
                    x += 1;
                }
                out.push(Span { y: short(y + y0), from: short(from + x0), to: short(x + x0) });
            }
        }
        out
    }
}

impl OutlinePen for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.finish_contour();
        self.at = point(x, y);
        self.start = self.at;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.edge(point(x, y));
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.curve([self.at, point(cx, cy), point(x, y)]);
    }

    fn curve_to(&mut self, c0x: f32, c0y: f32, c1x: f32, c1y: f32, x: f32, y: f32) {
        self.curve([self.at, point(c0x, c0y), point(c1x, c1y), point(x, y)]);
    }

    fn close(&mut self) {
        self.finish_contour();
    }
}
