//! Documents that are no model, and the limits.

use render::ecc::{DOCUMENT_BYTES_MAX, ELEMENTS_MAX};
use render::{EccModel, ModelError};
use serde_json::{Value, json};

use crate::support::layout;

fn refusal(document: &str) -> String {
    EccModel::parse(document).unwrap_err().to_string()
}

fn with(change: impl FnOnce(&mut Value)) -> String {
    let mut element = json!({ "kind": "text", "id": "name", "box": [0, 0, 100, 40], "text": "x", "size": 20 });
    change(&mut element);
    layout(296, 128, &[element])
}

#[test]
fn what_is_not_the_documented_json_is_refused() {
    for (document, want) in [
        (String::new(), "cannot be read"),
        ("[]".to_owned(), "cannot be read"),
        ("{}".to_owned(), "missing field"),
        (with(|e| e["colour"] = json!("red")), "unknown field `colour`"),
        (with(|e| e["kind"] = json!("video")), "unknown variant `video`"),
        (with(|e| e["ink"] = json!("pink")), "\"pink\" is no ink"),
        (with(|e| e["ink"] = json!([])), "1 to 8"),
        (with(|e| e["text"] = json!("{item.name")), "brace"),
        (with(|e| e["text"] = json!("a}b")), "brace"),
        (with(|e| e["text"] = json!("{name}")), "item. or param."),
        (with(|e| e["text"] = json!("{item.}")), "is no key"),
        (with(|e| e["text"] = json!("{item.a b}")), "is no key"),
        (with(|e| e["size"] = json!(20.5)), "cannot be read"),
        (with(|e| e["size"] = json!(-1)), "cannot be read"),
        (with(|e| e["box"] = json!([0, 0, 10])), "cannot be read"),
        (with(|e| e["box"] = json!([0, 0, 10, 2_000_000_000])), "box's numbers"),
        (with(|e| e["when"] = json!([{ "key": "name", "is": "present" }])), "item. or param."),
        (with(|e| e["when"] = json!([{ "key": "item.a", "is": "like" }])), "unknown variant `like`"),
    ] {
        let error = refusal(&document);
        assert!(error.contains(want), "{want}: {error}");
    }
    // Deep nesting must not overflow the stack.
    assert!(matches!(EccModel::parse(&"[".repeat(60_000)), Err(ModelError::Json(_))));
}

#[test]
fn rules_name_the_element() {
    for (document, want) in [
        (with(|e| e["box"] = json!([200, 0, 100, 40])), "box does not lie on the layout"),
        (with(|e| e["box"] = json!([-1, 0, 100, 40])), "box does not lie on the layout"),
        (with(|e| e["box"] = json!([0, 0, 0, 40])), "box does not lie on the layout"),
        (with(|e| e["size"] = json!(9)), "10 to 400"),
        (with(|e| e["size"] = json!(401)), "10 to 400"),
        (with(|e| e["size_min"] = json!(21)), "size_min"),
        (with(|e| e["lines_max"] = json!(0)), "1 to 40"),
        (with(|e| e["line_height"] = json!(20)), "80 to 200"),
        (with(|e| e["when"] = json!([{ "key": "item.a", "is": "equals" }])), "exactly when it compares"),
        (with(|e| e["when"] = json!([{ "key": "item.a", "is": "present", "value": "x" }])), "exactly when it compares"),
        (with(|e| e["when"] = json!(vec![json!({ "key": "item.a", "is": "present" }); 9])), "at most 8"),
    ] {
        let error = refusal(&document);
        assert!(error.contains("element \"name\"") && error.contains(want), "{want}: {error}");
    }
    for (element, want) in [
        (json!({ "kind": "rect", "id": "e", "box": [0, 0, 9, 9] }), "a fill or a stroke"),
        (
            json!({ "kind": "rect", "id": "e", "box": [0, 0, 9, 9], "fill": "red", "radius": 5 }),
            "half the shorter side",
        ),
        (json!({ "kind": "line", "id": "e", "from": [0, 0], "to": [296, 0] }), "ends do not lie"),
        (json!({ "kind": "line", "id": "e", "from": [0, 0], "to": [1, 0], "stroke_width": 65 }), "1 to 64"),
        (
            json!({ "kind": "barcode", "id": "e", "box": [0, 0, 9, 9], "symbology": "qr", "value": "x", "readable": true }),
            "only linear",
        ),
        (
            json!({ "kind": "barcode", "id": "e", "box": [0, 0, 9, 9], "symbology": "qr", "value": "x", "module_min": 7 }),
            "module_min",
        ),
        (json!({ "kind": "price", "id": "e", "box": [0, 0, 9, 9], "value": "1", "size": 20, "decimals": 5 }), "0 to 4"),
        (
            json!({ "kind": "price", "id": "e", "box": [0, 0, 9, 9], "value": "1", "size": 20, "currency_place": "under" }),
            "needs a split price",
        ),
        (
            json!({ "kind": "price", "id": "e", "box": [0, 0, 9, 9], "value": "1", "size": 20, "minor_percent": 50 }),
            "for a split price",
        ),
        (json!({ "kind": "picture", "id": "e", "box": [0, 0, 9, 9], "png": "not base64!" }), "no base64"),
        (json!({ "kind": "picture", "id": "e", "box": [0, 0, 9, 9], "png": "aGVsbG8=" }), "PNG cannot be read"),
        (json!({ "kind": "text", "id": "ä", "box": [0, 0, 9, 9], "text": "x", "size": 20 }), "an id has"),
    ] {
        let error = refusal(&layout(296, 128, &[element]));
        assert!(error.contains("element \"") && error.contains(want), "{want}: {error}");
    }
}

#[test]
fn the_document_has_limits() {
    let dot = |id: usize| json!({ "kind": "rect", "id": format!("e{id}"), "box": [0, 0, 1, 1], "fill": "red" });
    let many = |count: usize| layout(296, 128, &(0..count).map(dot).collect::<Vec<_>>());
    assert!(EccModel::parse(&many(ELEMENTS_MAX)).is_ok());
    assert!(refusal(&many(ELEMENTS_MAX + 1)).contains("at most 200 elements"));
    assert!(refusal(&layout(296, 128, &[dot(1), dot(1)])).contains("same id"));
    let long = format!("{}{}", layout(1, 1, &[]), " ".repeat(DOCUMENT_BYTES_MAX));
    assert!(matches!(EccModel::parse(&long), Err(ModelError::TooLong { .. })));
    for (width, height) in [(0, 1), (4_097, 1), (4_096, 4_096)] {
        assert!(refusal(&layout(width, height, &[])).contains("size is out of range"));
    }
    let variant = json!({ "width": 1, "height": 1, "elements": [] });
    let document = |ecc: u32, name: &str, variants: Vec<Value>| {
        json!({ "ecc": ecc, "name": name, "variants": variants }).to_string()
    };
    assert!(refusal(&document(2, "x", vec![variant.clone()])).contains("version"));
    assert!(refusal(&document(1, "", vec![variant.clone()])).contains("name"));
    assert!(refusal(&document(1, "x", vec![])).contains("variants"));
    assert!(refusal(&document(1, "x", vec![variant.clone(), variant])).contains("same size"));
}

#[test]
fn a_picture_bomb_is_refused_before_it_is_decoded() {
    use base64::Engine as _;
    let png = |width: u32, height: u32, claim: Option<(u32, u32)>| {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&vec![0; (width * height) as usize]).unwrap();
        if let Some((width, height)) = claim {
            bytes[16..20].copy_from_slice(&width.to_be_bytes());
            bytes[20..24].copy_from_slice(&height.to_be_bytes());
        }
        base64::engine::general_purpose::STANDARD.encode(bytes)
    };
    let element =
        |id: &str, area: [u32; 4], png: String| json!({ "kind": "picture", "id": id, "box": area, "png": png });
    let model = |elements: &[Value]| layout(1_200, 1_200, elements);
    assert!(EccModel::parse(&model(&[element("p", [0, 0, 90, 90], png(90, 90, None))])).is_ok());
    assert!(refusal(&model(&[element("p", [0, 0, 90, 90], png(1_100, 1_100, None))])).contains("1100 × 1100"));
    assert!(refusal(&model(&[element("p", [0, 0, 1_100, 1_100], png(1_100, 1_100, None))])).contains("1,000,000"));
    assert!(refusal(&model(&[element("p", [0, 0, 90, 90], png(90, 90, Some((60_000, 60_000))))])).contains("PNG"));
    let half = |id: &str| element(id, [0, 0, 800, 700], png(800, 700, None));
    assert!(refusal(&model(&[half("a"), half("b")])).contains("1,000,000"));
}
