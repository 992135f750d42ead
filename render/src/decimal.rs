//! Decimal numbers as text: no floats come near a price.

use std::cmp::Ordering;

/// A decimal number in canonical parts: no leading zeros but one, no trailing zeros in the fraction, zero is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    whole: String,
    fraction: String,
}

/// Most digits on each side of the point; far beyond any price.
const DIGITS_MAX: usize = 18;

impl Decimal {
    /// Reads `-?digits[.digits]`, ASCII digits only, at most 18 on each side; anything else is `None`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = match digits.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (digits, ""),
        };
        let bad = |part: &str| part.len() > DIGITS_MAX || !part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || bad(whole) || bad(fraction) {
            return None;
        }
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            significant => significant,
        };
        let fraction = fraction.trim_end_matches('0');
        let zero = whole == "0" && fraction.is_empty();
        Some(Self { negative: negative && !zero, whole: whole.to_owned(), fraction: fraction.to_owned() })
    }

    pub(crate) const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Digits before the point.
    pub(crate) fn whole(&self) -> &str {
        &self.whole
    }

    /// Exactly `places` digits after the point, or `None` if the number has more that are not zero.
    pub(crate) fn fraction(&self, places: usize) -> Option<String> {
        (self.fraction.len() <= places).then(|| format!("{:0<places$}", self.fraction))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |a: &Self, b: &Self| {
            // Fractions compare as text: no trailing zeros, so a prefix is smaller.
            (a.whole.len(), &a.whole, &a.fraction).cmp(&(b.whole.len(), &b.whole, &b.fraction))
        };
        match (self.negative, other.negative) {
            (false, false) => size(self, other),
            (true, true) => size(other, self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_plain_decimals() {
        for bad in ["", "-", ".5", "5.", "1,5", "1e3", "+1", "١", "1 000", "--1", "1.2.3", "1234567890123456789"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
        assert_eq!(Decimal::parse("-0.00"), Decimal::parse("0"));
        assert_eq!(Decimal::parse("007.50"), Decimal::parse("7.5"));
    }

    #[test]
    fn orders_exactly() {
        let ascending = ["-10", "-9.5", "-0.01", "0", "0.009", "0.01", "0.1", "1", "1.05", "1.5", "9", "10", "100.1"];
        for pair in ascending.windows(2) {
            assert!(Decimal::parse(pair[0]) < Decimal::parse(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn never_rounds() {
        let price = Decimal::parse("1.990").unwrap();
        assert_eq!(
            (price.fraction(2), price.fraction(3), price.fraction(1)),
            (Some("99".into()), Some("990".into()), None)
        );
    }
}
