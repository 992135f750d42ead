//! Whatever values and layouts say: a picture or a reason, in bounded work.

use std::collections::BTreeMap;

use picture::{Palette, Rotation};
use proptest::prelude::*;
use render::{EccInput, EccModel, Panel, render};
use serde_json::{Value, json};

use crate::support::{FRESH, PROMO, STANDARD, draw, layout, panel};

const KEYS: [&str; 13] = [
    "name",
    "brand",
    "price",
    "currency",
    "locale",
    "unit_price",
    "unit",
    "gtin",
    "old_price",
    "promo_text",
    "origin",
    "class",
    "url",
];

/// Plausible, odd and hostile values.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,9}(\\.[0-9]{1,3})?",
        "[0-9]{12,13}",
        Just("EUR".to_owned()),
        Just("de-DE".to_owned()),
        "\\PC{0,40}",
        "[ -~àéîõüßąęőÀÉĀẤỬΑ-ωА-я]{0,200}",
        any::<String>(),
    ]
}

fn element() -> impl Strategy<Value = Value> {
    let area = (0..120_i32, 0..60_i32, 1..176_i32, 1..68_i32);
    let text = (area.clone(), 10_u16..120, 1_u16..6, any::<bool>(), any::<bool>()).prop_map(|((x, y, w, h), size, lines, ellipsis, bold)| {
        json!({ "kind": "text", "box": [x, y, w, h], "text": "{item.name|–} {item.brand|x}", "size": size, "size_min": 10, "lines_max": lines,
            "overflow": if ellipsis { "ellipsis" } else { "error" }, "weight": if bold { "bold" } else { "regular" } })
    });
    let price = (area.clone(), 10_u16..200, any::<bool>(), any::<bool>()).prop_map(|((x, y, w, h), size, split, strike)| {
        json!({ "kind": "price", "box": [x, y, w, h], "value": "{item.price|1.00}", "currency": "{item.currency|EUR}", "locale": "{item.locale|de}", "size": size, "size_min": 10, "split": split, "strike": strike, "after": "{item.unit|}" })
    });
    let shape = (area.clone(), any::<bool>(), 1_u16..64).prop_map(|((x, y, w, h), round, stroke)| {
        json!({ "kind": if round { "ellipse" } else { "rect" }, "box": [x, y, w, h], "fill": "red", "stroke": "yellow", "stroke_width": stroke })
    });
    let line = (area.clone(), 1_u16..64).prop_map(|((x, y, w, h), stroke)| {
        json!({ "kind": "line", "from": [x, y + h - 1], "to": [x + w - 1, y], "stroke_width": stroke })
    });
    let code = (area, 0_usize..5, 1_u16..4).prop_map(|((x, y, w, h), symbology, module)| {
        let symbology = ["ean13", "ean8", "code128", "gs1_datamatrix", "qr"][symbology];
        json!({ "kind": "barcode", "box": [x, y, w, h], "symbology": symbology, "value": "{item.gtin|2001234567893}", "module_min": module, "readable": module > 1 && symbology != "qr" && symbology != "gs1_datamatrix" })
    });
    prop_oneof![text, price, shape, line, code]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_values_in_the_demo_models(
        item in proptest::collection::btree_map(proptest::sample::select(&KEYS[..]).prop_map(str::to_owned), value(), 0..13),
        model in 0_usize..3, palette in 0_usize..5, size in 0_usize..3, rotation in 0_usize..4,
    ) {
        let model = EccModel::parse([STANDARD, PROMO, FRESH][model]).unwrap();
        let (width, height) = [(296, 128), (400, 300), (800, 480)][size];
        let rotation = Rotation::ALL[rotation];
        let (width, height) = if rotation.swaps_sides() { (height, width) } else { (width, height) };
        let panel = Panel { width, height, palette: Palette::ALL[palette], rotation };
        match render(&model, &EccInput { panel, item: &item, parameters: &BTreeMap::new() }) {
            Ok(picture) => prop_assert_eq!((picture.width(), picture.height()), (width, height)),
            Err(error) => prop_assert!(error.to_string().starts_with("element \""), "{error}"),
        }
    }

    #[test]
    fn any_layout_of_any_elements(
        mut elements in proptest::collection::vec(element(), 0..12),
        item in proptest::collection::btree_map(proptest::sample::select(&KEYS[..]).prop_map(str::to_owned), value(), 0..13),
        palette in 0_usize..5,
    ) {
        for (at, element) in elements.iter_mut().enumerate() {
            element["id"] = json!(format!("e{at}"));
        }
        let model = EccModel::parse(&layout(296, 128, &elements)).unwrap();
        let panel = panel(296, 128, Palette::ALL[palette]);
        let input = EccInput { panel, item: &item, parameters: &BTreeMap::new() };
        // A picture or a reason, and the same again.
        prop_assert_eq!(render(&model, &input), render(&model, &input));
    }

    #[test]
    fn any_bytes_as_a_document(text in any::<String>(), cut in any::<prop::sample::Index>(), put in any::<String>()) {
        prop_assert!(EccModel::parse(&text).is_err());
        let at = cut.index(STANDARD.len());
        if STANDARD.is_char_boundary(at) {
            let damaged = format!("{}{put}{}", &STANDARD[..at], &STANDARD[at..]);
            if let Ok(model) = EccModel::parse(&damaged) {
                let input = EccInput { panel: panel(296, 128, Palette::Bw), item: &BTreeMap::new(), parameters: &BTreeMap::new() };
                // Only that it returns.
                drop(render(&model, &input));
            }
        }
    }
}

#[test]
fn a_pathological_layout_is_refused_as_too_costly() {
    let elements: Vec<Value> = (0..200)
        .map(|at| {
            json!({ "kind": "text", "id": format!("e{at}"), "box": [0, 0, 600, 40], "text": "{item.name}", "size": 400, "size_min": 10, "lines_max": 40, "overflow": "ellipsis" })
        })
        .collect();
    let words = "many words in a row ".repeat(50);
    let error =
        draw(&layout(600, 400, &elements), panel(600, 400, Palette::Bw), &[("name", words.as_str())]).unwrap_err();
    assert!(error.to_string().contains("too costly"), "{error}");
}
