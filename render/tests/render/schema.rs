//! The published schema and the examples in the documentation say what the code does.

use std::collections::BTreeSet;

use render::EccModel;
use serde_json::{Value, json};

use crate::support::{FRESH, PROMO, STANDARD, layout};

const SCHEMA: &str = include_str!("../../../docs/ecc-layout.schema.json");
const GUIDE: &str = include_str!("../../../docs/ecc-layout.md");

fn names(list: &Value) -> BTreeSet<String> {
    match list {
        Value::Object(map) => map.keys().cloned().collect(),
        list => list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
    }
}

/// The names serde says it expected, besides the wrong one.
fn expected(document: &Value) -> BTreeSet<String> {
    let error = EccModel::parse(&document.to_string()).unwrap_err().to_string();
    let (_, list) = error.split_once("expected").unwrap_or_else(|| panic!("{error}"));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A sound element of each kind with every field.
fn full() -> Vec<Value> {
    let when = json!([{ "key": "item.a", "is": "present" }]);
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    vec![
        json!({ "kind": "text", "id": "e", "box": [0, 0, 9, 9], "when": when, "text": "x", "font": "sans_condensed", "weight": "bold", "size": 20, "size_min": 10,
            "align": "left", "vertical_align": "top", "lines_max": 2, "line_height": 110, "overflow": "ellipsis", "ink": ["red", "black"] }),
        json!({ "kind": "price", "id": "e", "box": [0, 0, 9, 9], "when": when, "value": "1", "currency": "EUR", "locale": "de", "decimals": 2, "show_currency": "code", "split": true,
            "currency_place": "under", "minor_percent": 50, "currency_percent": 40, "before": "a", "after": "b", "strike": true, "font": "sans_condensed", "weight": "bold",
            "size": 20, "size_min": 10, "align": "left", "vertical_align": "top", "ink": "red" }),
        json!({ "kind": "rect", "id": "e", "box": [0, 0, 9, 9], "when": when, "fill": "red", "stroke": "black", "stroke_width": 1, "radius": 2 }),
        json!({ "kind": "ellipse", "id": "e", "box": [0, 0, 9, 9], "when": when, "fill": "red", "stroke": "black", "stroke_width": 1 }),
        json!({ "kind": "line", "id": "e", "from": [0, 0], "to": [9, 9], "when": when, "stroke": "black", "stroke_width": 1 }),
        json!({ "kind": "picture", "id": "e", "box": [0, 0, 1, 1], "when": when, "png": pixel, "dither": "nearest" }),
        json!({ "kind": "barcode", "id": "e", "box": [0, 0, 9, 9], "when": when, "symbology": "qr", "value": "x", "module_min": 1, "module_max": 2, "readable": false, "correction": "low",
            "align": "left", "vertical_align": "top" }),
    ]
}

#[test]
fn the_schema_has_the_kinds_and_fields_the_code_has() {
    let schema = parsed(SCHEMA);
    let kinds: BTreeSet<String> = full().iter().map(|element| element["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(expected(&parsed(&layout(9, 9, &[json!({ "kind": "none" })]))), kinds);
    let listed = schema["$defs"]["variant"]["properties"]["elements"]["items"]["oneOf"].as_array().unwrap();
    let listed: BTreeSet<String> =
        listed.iter().map(|kind| kind["$ref"].as_str().unwrap()["#/$defs/".len()..].to_owned()).collect();
    assert_eq!(listed, kinds);
    for element in full() {
        let kind = element["kind"].as_str().unwrap();
        let part = &schema["$defs"][kind];
        let mut wrong = element.clone();
        wrong["unknown-field"] = json!(1);
        let mut fields = expected(&parsed(&layout(20, 20, &[wrong])));
        fields.insert("kind".to_owned());
        assert_eq!(names(&part["properties"]), fields, "{kind}");
        assert_eq!(names(&element), fields, "{kind}: the example has every field");
        assert_eq!(part["additionalProperties"], json!(false));
        EccModel::parse(&layout(20, 20, std::slice::from_ref(&element))).unwrap();
        for field in &fields {
            let mut without = element.clone();
            without.as_object_mut().unwrap().remove(field);
            // Rules between fields are not "required": these two read only together with others.
            without
                .as_object_mut()
                .unwrap()
                .retain(|name, _| field != "split" || !["currency_place", "minor_percent"].contains(&name.as_str()));
            let accepted = EccModel::parse(&layout(20, 20, &[without])).is_ok();
            assert_eq!(accepted, !names(&part["required"]).contains(field), "{kind}.{field}");
        }
    }
}

#[test]
fn the_schema_has_the_documents_own_fields() {
    let schema = parsed(SCHEMA);
    let with = |path: &[&str]| {
        let rect = json!({ "kind": "rect", "id": "e", "box": [0, 0, 1, 1], "fill": "red", "when": [{ "key": "item.a", "is": "present" }] });
        let mut document = parsed(&layout(9, 9, &[rect]));
        let part = path.iter().fold(&mut document, |part, step| match step.parse::<usize>() {
            Ok(at) => &mut part[at],
            Err(_) => &mut part[*step],
        });
        part["unknown-field"] = json!(1);
        expected(&document)
    };
    assert_eq!(with(&[]), names(&schema["properties"]));
    assert_eq!(with(&["variants", "0"]), names(&schema["$defs"]["variant"]["properties"]));
    let condition = ["variants", "0", "elements", "0", "when", "0"];
    assert_eq!(with(&condition), names(&schema["$defs"]["condition"]["properties"]));
}

#[test]
fn the_schemas_choices_are_the_codes() {
    let schema = parsed(SCHEMA);
    for element in full() {
        let kind = element["kind"].as_str().unwrap();
        for (field, rule) in schema["$defs"][kind]["properties"].as_object().unwrap() {
            let Some(choices) = rule.get("enum") else { continue };
            let mut wrong = element.clone();
            wrong[field] = json!("no-such-choice");
            assert_eq!(expected(&parsed(&layout(20, 20, &[wrong]))), names(choices), "{kind}.{field}");
        }
    }
    let inks: BTreeSet<String> = picture::Ink::ALL.iter().map(|ink| ink.name().to_owned()).collect();
    assert_eq!(names(&schema["$defs"]["ink"]["enum"]), inks);
}

#[test]
fn the_guides_example_and_the_demo_models_are_models() {
    let example = GUIDE.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for document in [example, STANDARD, PROMO, FRESH] {
        EccModel::parse(document).unwrap();
    }
}

#[test]
fn the_guide_names_every_field_and_choice() {
    let schema = parsed(SCHEMA);
    for element in full() {
        let kind = element["kind"].as_str().unwrap();
        for (field, rule) in schema["$defs"][kind]["properties"].as_object().unwrap() {
            let choices = rule.get("enum").map(names).unwrap_or_default();
            for name in choices.iter().chain([field]) {
                assert!(GUIDE.contains(&format!("`{name}`")), "{kind}: {name}");
            }
        }
    }
}
