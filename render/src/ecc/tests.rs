//! How prices read, in words.

use super::model::{Element, Price};
use super::price::write;
use super::*;

fn price(value: &str, currency: &str, locale: &str, extra: &str) -> Result<String, String> {
    let document = format!(
        r#"{{"kind":"price","id":"p","box":[0,0,9,9],"value":"{value}","currency":"{currency}","locale":"{locale}","size":20{extra}}}"#
    );
    let Ok(Element::Price(price)) = serde_json::from_str::<Element>(&document) else {
        unreachable!("a price: {document}")
    };
    let none = BTreeMap::new();
    let written = |price: &Price| write(price, Values { item: &none, parameters: &none });
    written(&price).map(|written| written.text().replace('\u{A0}', "_")).map_err(|cause| cause.to_string())
}

#[test]
fn prices_read_as_their_place_writes_them() {
    for (value, currency, locale, want) in [
        ("1234.5", "EUR", "de-DE", "1.234,50 €"),
        ("1234.5", "EUR", "de-AT", "€ 1_234,50"),
        ("1234.5", "CHF", "de-CH", "CHF 1’234.50"),
        ("1234.5", "EUR", "es-ES", "1234,50 €"),
        ("12345.5", "EUR", "es-ES", "12.345,50 €"),
        ("1234.5", "PLN", "pl", "1234,50 zł"),
        ("12345.5", "PLN", "pl-PL", "12_345,50 zł"),
        ("1234.5", "EUR", "fr_FR", "1_234,50 €"),
        ("1234.5", "GBP", "en-GB", "£1,234.50"),
        ("1234567.89", "INR", "en-IN", "₹12,34,567.89"),
        ("123", "INR", "hi-IN", "₹123.00"),
        ("12345", "INR", "hi-IN", "₹12,345.00"),
        ("1980", "JPY", "ja-JP", "¥1,980"),
        ("3.125", "KWD", "en-US", "KWD 3.125"),
        ("0", "EUR", "nl-NL", "€ 0,00"),
        ("0.01", "EUR", "el", "0,01 €"),
        ("999999.99", "BRL", "pt-BR", "R$ 999.999,99"),
        ("5", "EUR", "zh-Hant-TW", "€5.00"),
        ("7", "XYZ", "en", "XYZ 7.00"),
    ] {
        assert_eq!(price(value, currency, locale, ""), Ok(want.to_owned()), "{value} {currency} {locale}");
    }
}

#[test]
fn the_layout_decides_decimals_and_what_is_shown() {
    let shown = |value, extra| price(value, "EUR", "en", extra);
    assert_eq!(shown("5", r#","decimals":0"#), Ok("€5".to_owned()));
    assert_eq!(shown("5.125", r#","decimals":3"#), Ok("€5.125".to_owned()));
    assert_eq!(shown("5", r#","show_currency":"code""#), Ok("EUR 5.00".to_owned()));
    assert_eq!(shown("5", r#","show_currency":"none""#), Ok("5.00".to_owned()));
    assert!(shown("5.5", r#","decimals":0"#).is_err_and(|why| why.contains("prices are not rounded")));
}
