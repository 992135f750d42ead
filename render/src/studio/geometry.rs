//! Numbers and transforms, all finite and in range.

use std::str::FromStr as _;

use svgtypes::{Length, LengthUnit, Transform};

use super::limits::NUMBER_MAX;
use crate::canvas::Area;

/// `(x, y)` to `(a x + c y + e, b x + d y + f)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) c: f64,
    pub(crate) d: f64,
    pub(crate) e: f64,
    pub(crate) f: f64,
}

impl Matrix {
    pub(crate) const IDENTITY: Self = Self { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, f: 0.0 };

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Transform { a, b, c, d, e, f } =
            Transform::from_str(text).map_err(|_| format!("\"{}\" is no transform", short(text)))?;
        Self { a, b, c, d, e, f }.sound()
    }

    /// A shift.
    pub(crate) const fn shift(x: f64, y: f64) -> Self {
        Self { e: x, f: y, ..Self::IDENTITY }
    }

    /// First `inner`, then this.
    pub(crate) fn then(self, inner: Self) -> Result<Self, String> {
        let Self { a, b, c, d, e, f } = self;
        Self {
            a: a * inner.a + c * inner.b,
            b: b * inner.a + d * inner.b,
            c: a * inner.c + c * inner.d,
            d: b * inner.c + d * inner.d,
            e: a * inner.e + c * inner.f + e,
            f: b * inner.e + d * inner.f + f,
        }
        .sound()
    }

    fn sound(self) -> Result<Self, String> {
        let Self { a, b, c, d, e, f } = self;
        let range = [a, b, c, d, e, f].iter().all(|value| value.abs() <= NUMBER_MAX);
        if !range {
            return Err(format!("a transform's numbers lie between -{NUMBER_MAX} and {NUMBER_MAX}"));
        }
        if self.scale() < 1e-3 {
            return Err("a transform shrinks to nothing".to_owned());
        }
        Ok(self)
    }

    /// How much lengths grow, on average.
    pub(crate) fn scale(self) -> f64 {
        (self.a * self.d - self.b * self.c).abs().sqrt()
    }

    /// Whether it only shifts and stretches, without turning or mirroring.
    pub(crate) fn is_upright(self) -> bool {
        self.b.abs() < 1e-9 && self.c.abs() < 1e-9 && self.a > 0.0 && self.d > 0.0
    }

    /// Whether it is upright and stretches both ways alike.
    pub(crate) fn is_similar(self) -> bool {
        self.is_upright() && (self.a - self.d).abs() < 1e-6 * self.a.abs()
    }

    pub(crate) fn point(self, x: f64, y: f64) -> (f64, f64) {
        (self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f)
    }

    /// A rectangle in whole pixels, its edges rounded.
    pub(crate) fn area(self, x: f64, y: f64, width: f64, height: f64) -> Result<Area, String> {
        if !self.is_upright() {
            return Err("a box that is filled with values cannot be turned or mirrored".to_owned());
        }
        let (left, top) = self.point(x, y);
        let (right, bottom) = self.point(x + width, y + height);
        let (x, y) = (whole(left), whole(top));
        Ok(Area { x, y, width: whole(right) - x, height: whole(bottom) - y })
    }
}

/// The nearest whole number, within ±2³⁰.
#[expect(clippy::cast_possible_truncation, reason = "clamped before the cast; NaN becomes 0")]
pub(crate) fn whole(value: f64) -> i32 {
    value.round().clamp(-1_073_741_824.0, 1_073_741_824.0) as i32
}

/// A length in pixels: a number, or one with `px`.
pub(crate) fn length(text: &str) -> Result<f64, String> {
    let length = Length::from_str(text.trim()).map_err(|_| format!("\"{}\" is no number", short(text)))?;
    if !matches!(length.unit, LengthUnit::None | LengthUnit::Px) {
        return Err(format!("\"{}\" is not in pixels", short(text)));
    }
    number(length.number)
}

/// The number, if it is in range.
pub(crate) fn number(value: f64) -> Result<f64, String> {
    if value.abs() <= NUMBER_MAX {
        Ok(value)
    } else {
        Err(format!("numbers lie between -{NUMBER_MAX} and {NUMBER_MAX}"))
    }
}

/// The beginning of a text, for messages.
pub(crate) fn short(text: &str) -> String {
    beginning(text, 60)
}

/// The beginning of somebody else's message, which may quote what it is about at any length.
pub(crate) fn message(text: &str) -> String {
    beginning(text, 300)
}

fn beginning(text: &str, chars: usize) -> String {
    let plain = |ch: char| if ch.is_control() { char::REPLACEMENT_CHARACTER } else { ch };
    let mut out: String = text.chars().take(chars).map(plain).collect();
    if text.chars().nth(chars).is_some() {
        out.push('…');
    }
    out
}
