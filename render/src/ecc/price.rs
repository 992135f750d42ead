//! A price in words and signs, before anything is drawn.

use super::locale::{Locale, currency, locale};
use super::model::{Price, ShowCurrency};
use super::value::Values;
use crate::decimal::Decimal;
use crate::error::Cause;

/// The parts of a written price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Whole number, grouped.
    pub(crate) major: String,
    /// Decimal separator, empty without decimals.
    pub(crate) separator: String,
    /// Digits after it.
    pub(crate) minor: String,
    /// Currency sign or code, empty if not shown.
    pub(crate) currency: String,
    pub(crate) locale: Locale,
}

impl Written {
    /// As one text, for messages.
    pub(crate) fn text(&self) -> String {
        let number = format!("{}{}{}", self.major, self.separator, self.minor);
        let space = if self.locale.spaced && !self.currency.is_empty() { " " } else { "" };
        if self.locale.prefix {
            format!("{}{space}{number}", self.currency)
        } else {
            format!("{number}{space}{}", self.currency)
        }
    }
}

/// Most digits after the point a layout may ask for.
pub(crate) const DECIMALS_MAX: u8 = 4;

/// Reads and writes the price; never rounds, never guesses.
pub(crate) fn write(price: &Price, values: Values<'_>) -> Result<Written, Cause> {
    let value = price.value.plain(values)?;
    let value = value.trim();
    let bad = |why: &str| Cause::Price { value: value.to_owned(), why: why.to_owned() };
    let decimal = Decimal::parse(value).ok_or_else(|| bad("it is not written as digits with a point, like 12.99"))?;
    if decimal.is_negative() {
        return Err(bad("it is below zero"));
    }
    let tag = price.locale.plain(values)?;
    let locale = locale(tag.trim()).ok_or_else(|| bad(&format!("the locale \"{tag}\" is not known")))?;
    let needs_currency = price.show_currency != ShowCurrency::None || price.decimals.is_none();
    let (places, sign) = if needs_currency {
        let code = price.currency.plain(values)?;
        let code = code.trim();
        let (places, sign) =
            currency(code).ok_or_else(|| bad(&format!("the currency \"{code}\" is no ISO 4217 code")))?;
        let shown = match price.show_currency {
            ShowCurrency::Symbol => sign,
            ShowCurrency::Code => code.to_owned(),
            ShowCurrency::None => String::new(),
        };
        (places, shown)
    } else {
        (0, String::new())
    };
    let places = usize::from(price.decimals.unwrap_or(places));
    let minor = decimal
        .fraction(places)
        .ok_or_else(|| bad(&format!("it has more than {places} digits after the point, and prices are not rounded")))?;
    let separator = if minor.is_empty() { String::new() } else { locale.decimal.to_string() };
    // Letters stand off the number even where a sign would not: CHF 5, $5.
    let letters = sign.chars().next_back().is_some_and(char::is_alphabetic);
    let locale = Locale { spaced: locale.spaced || letters, ..locale };
    Ok(Written { major: grouped(decimal.whole(), locale), separator, minor, currency: sign, locale })
}

fn grouped(digits: &str, locale: Locale) -> String {
    if digits.len() < 3 + locale.group_min {
        return digits.to_owned();
    }
    let mut out = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len() - at;
        let boundary =
            if locale.by_two { left == 3 || (left > 3 && !left.is_multiple_of(2)) } else { left.is_multiple_of(3) };
        if at > 0 && boundary {
            out.push(locale.group);
        }
        out.push(digit);
    }
    out
}
