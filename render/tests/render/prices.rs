//! A price is whole and readable, or the label fails with its reason.

use picture::{Ink, Palette};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{bounds, count, draw, draw_one, layout, panel};

fn price(area: [i32; 4], size: u16, floor: u16) -> Value {
    json!({ "kind": "price", "id": "price", "box": area, "value": "{item.price}", "size": size, "size_min": floor })
}

const EURO: [(&str, &str); 2] = [("currency", "EUR"), ("locale", "de-DE")];

fn with(price: &str) -> Vec<(&str, &str)> {
    [("price", price)].into_iter().chain(EURO).collect()
}

#[test]
fn it_shrinks_to_its_floor_then_fails_naming_element_value_and_box() {
    let area = [10, 10, 120, 60];
    let height = |value: &str| {
        let picture = draw_one(&price(area, 48, 20), Palette::Bw, &with(value)).unwrap();
        let (left, top, right, bottom) = bounds(&picture, Ink::Black).unwrap();
        assert!(left >= 10 && right <= 130 && top >= 10 && bottom <= 70, "{value} leaves its box");
        bottom - top
    };
    let heights = ["1.29", "12.99", "129.99", "1299.99"].map(height);
    assert!(heights.is_sorted_by(|a, b| a >= b) && heights[0] > heights[3], "{heights:?}");
    let error = draw_one(&price(area, 48, 20), Palette::Bw, &with("1234567.89")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "element \"price\": \"1.234.567,89 €\" does not fit its 120 × 60 px box at the smallest size, 20 px"
    );
}

#[test]
fn what_is_no_price_fails_with_its_reason() {
    for (value, why) in [
        ("", "item.price has no value"),
        ("   ", "item.price has no value"),
        ("1,29", "not written as digits with a point"),
        ("1.299", "more than 2 digits after the point"),
        ("-1.29", "below zero"),
        ("NaN", "not written as digits"),
        ("1e9", "not written as digits"),
        ("１.29", "not written as digits"),
    ] {
        let error = draw_one(&price([0, 0, 296, 128], 40, 20), Palette::Bw, &with(value)).unwrap_err().to_string();
        assert!(error.starts_with("element \"price\": ") && error.contains(why), "{error}");
    }
    let mut item = with("1.29");
    item[1] = ("currency", "euro");
    assert!(
        draw_one(&price([0, 0, 296, 128], 40, 20), Palette::Bw, &item).unwrap_err().to_string().contains("ISO 4217")
    );
    item[1] = ("currency", "EUR");
    item[2] = ("locale", "xx");
    assert!(draw_one(&price([0, 0, 296, 128], 40, 20), Palette::Bw, &item).unwrap_err().to_string().contains("locale"));
    let missing = draw_one(&price([0, 0, 296, 128], 40, 20), Palette::Bw, &[("price", "1"), ("locale", "de")]);
    assert!(missing.unwrap_err().to_string().contains("item.currency has no value"));
}

#[test]
fn trailing_zeros_are_no_rounding() {
    let pixels = |value| draw_one(&price([0, 0, 296, 128], 40, 20), Palette::Bw, &with(value)).unwrap();
    assert_eq!(pixels("1.2"), pixels("001.2000"));
    assert_ne!(pixels("1.2"), pixels("1.21"));
}

#[test]
fn white_on_red_works_and_white_on_white_does_not() {
    let mut element = price([0, 0, 148, 128], 48, 20);
    element["ink"] = json!("white");
    let error = draw_one(&element, Palette::Bwr, &with("9.99")).unwrap_err().to_string();
    assert_eq!(error, "element \"price\": \"9,99 €\" would not be visible: what lies beneath has the same ink, white");
    let ground = json!({ "kind": "rect", "id": "ground", "box": [0, 0, 148, 128], "fill": "red" });
    let elements = [ground, element.clone()];
    let picture = draw(&layout(296, 128, &elements), panel(296, 128, Palette::Bwr), &with("9.99")).unwrap();
    let white_in_ground = 148 * 128 - count(&picture, Ink::Red);
    assert!((300..4_000).contains(&white_in_ground), "{white_in_ground}");
    // On a panel without red the ground is black and the digits still white.
    let black = draw(&layout(296, 128, &elements), panel(296, 128, Palette::Bw), &with("9.99")).unwrap();
    assert_eq!(148 * 128 - count(&black, Ink::Black), white_in_ground);
    // Half on the red, half on the white: the case that read ",99".
    let half = [json!({ "kind": "rect", "id": "ground", "box": [60, 0, 88, 128], "fill": "red" }), element];
    assert!(draw(&layout(296, 128, &half), panel(296, 128, Palette::Bwr), &with("109.99")).is_err());
}

#[test]
fn a_later_element_may_not_cover_it() {
    let elements = [
        price([0, 0, 296, 60], 48, 20),
        json!({ "kind": "text", "id": "over", "box": [0, 20, 296, 40], "text": "over", "size": 20 }),
    ];
    let error = draw(&layout(296, 128, &elements), panel(296, 128, Palette::Bw), &with("1.29")).unwrap_err();
    assert_eq!(error.to_string(), "element \"price\": a later element draws over it");
}

#[test]
fn a_strike_adds_ink_within_the_box() {
    let mut element = price([10, 10, 100, 40], 30, 20);
    let plain = draw_one(&element, Palette::Bw, &with("12.49")).unwrap();
    element["strike"] = json!(true);
    let struck = draw_one(&element, Palette::Bw, &with("12.49")).unwrap();
    assert_eq!(bounds(&plain, Ink::Black), bounds(&struck, Ink::Black));
    assert!(count(&struck, Ink::Black) > count(&plain, Ink::Black) + 20);
}

/// Black columns of a picture, as runs: one for each glyph where glyphs do not touch.
fn glyphs(picture: &picture::Picture) -> usize {
    let dark = |x: u32| (0..picture.height()).any(|y| picture.at(x, y) == Some(1));
    let columns: Vec<bool> = (0..picture.width()).map(dark).collect();
    columns.chunk_by(|a, b| a == b).filter(|run| run[0]).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Every digit, separator and sign that is written is seen, inside the box, or the label fails.
    #[test]
    fn all_digits_are_visible_or_the_label_fails(
        whole in 0_u64..100_000_000, cents in 0_u8..100, width in 40_i32..290, height in 12_i32..120,
        size in 20_u16..100, floor in 16_u16..20, align in 0_usize..3,
    ) {
        let mut element = price([3, 4, width, height], size, floor);
        element["align"] = json!(["left", "center", "right"][align]);
        element["show_currency"] = json!("none");
        // Tabular digits leave a gap between any two at these sizes, so runs of columns count them.
        let value = format!("{whole}.{cents:02}");
        let item = [("price", value.as_str()), ("currency", "EUR"), ("locale", "en-US")];
        match draw_one(&element, Palette::Bw, &item) {
            Ok(picture) => {
                let (left, top, right, bottom) = bounds(&picture, Ink::Black).unwrap();
                let edge = |from: i32, size: i32| u32::try_from(from + size).unwrap();
                prop_assert!(left >= 3 && top >= 4 && right <= edge(3, width) && bottom <= edge(4, height));
                let digits = whole.to_string().len();
                prop_assert_eq!(glyphs(&picture), digits + (digits - 1) / 3 + 3);
            }
            Err(error) => prop_assert!(error.to_string().contains("does not fit"), "{error}"),
        }
    }
}
