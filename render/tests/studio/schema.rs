//! The published schema, the guide and its example say what the code does.

use std::collections::BTreeSet;

use render::StudioDesign;
use serde_json::{Value, json};

use crate::support::{mappings, svg};

const SCHEMA: &str = include_str!("../../../docs/studio-mappings.schema.json");
const GUIDE: &str = include_str!("../../../docs/studio-design.md");

const SVG: &str =
    r#"<rect id="r" x="1" y="1" width="200" height="90"/><text id="t" x="9" y="60" font-size="20">x</text>"#;

fn names(list: &Value) -> BTreeSet<String> {
    match list {
        Value::Object(map) => map.keys().cloned().collect(),
        list => list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
    }
}

/// A sound mapping of each format with every field, and the element it is for. `part` and `separator` exclude the
/// fields of whole prices only by value.
fn full() -> Vec<(&'static str, Value)> {
    let when = json!([{ "key": "item.a", "is": "present" }]);
    vec![
        (
            "t",
            json!({ "format": "text", "when": when, "value": "x", "box": "r", "vertical_align": "top", "size_min": 10, "lines_max": 2, "line_height": 110, "overflow": "ellipsis" }),
        ),
        (
            "t",
            json!({ "format": "price", "when": when, "value": "1", "currency": "EUR", "locale": "de", "part": "whole", "separator": false, "decimals": 2, "show_currency": "code", "split": true, "currency_place": "under",
            "minor_percent": 50, "currency_percent": 40, "before": "a", "after": "b", "box": [0, 0, 90, 90], "vertical_align": "baseline", "size_min": 10 }),
        ),
        (
            "t",
            json!({ "format": "date", "when": when, "value": "2026-01-01", "pattern": "d.M.yy", "locale": "de", "box": "r", "vertical_align": "bottom", "size_min": 10 }),
        ),
        (
            "r",
            json!({ "format": "barcode", "when": when, "symbology": "qr", "value": "x", "module_min": 1, "module_max": 2, "readable": false, "correction": "low", "align": "left", "vertical_align": "top" }),
        ),
        (
            "r",
            json!({ "format": "picture", "when": when, "value": "{item.p}", "dither": "nearest", "align": "left", "vertical_align": "top" }),
        ),
        ("r", json!({ "format": "visibility", "when": when })),
    ]
}

fn read(id: &str, mapping: &Value) -> Result<(), String> {
    let parsed = StudioDesign::parse(&svg(296, 128, SVG), &mappings(&json!({ id: mapping })));
    parsed.map(drop).map_err(|why| why.to_string())
}

/// The names serde says it expected, besides the wrong one.
fn expected(why: &str) -> BTreeSet<String> {
    let (_, list) = why.split_once("expected").unwrap_or_else(|| panic!("{why}"));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_schema_has_the_formats_and_fields_the_code_has() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let formats: BTreeSet<String> =
        full().iter().map(|(_, each)| each["format"].as_str().unwrap().to_owned()).collect();
    assert_eq!(expected(&read("t", &json!({ "format": "none" })).unwrap_err()), formats);
    let listed = schema["properties"]["elements"]["additionalProperties"]["oneOf"].as_array().unwrap();
    let listed: BTreeSet<String> =
        listed.iter().map(|one| one["$ref"].as_str().unwrap()["#/$defs/".len()..].to_owned()).collect();
    assert_eq!(listed, formats);
    for (id, mapping) in full() {
        let format = mapping["format"].as_str().unwrap();
        let part = &schema["$defs"][format];
        let fields = names(&part["properties"]);
        assert_eq!(names(&mapping), fields, "{format}: the example has every field");
        assert_eq!(part["additionalProperties"], json!(false));
        assert_eq!(read(id, &mapping), Ok(()), "{format}");
        let mut wrong = mapping.clone();
        wrong["no-such-field"] = json!(1);
        assert!(read(id, &wrong).unwrap_err().contains("unknown field `no-such-field`"), "{format}");
        for field in &fields {
            let mut without = mapping.clone();
            let map = without.as_object_mut().unwrap();
            map.remove(field);
            // Rules between fields are not "required": these read only together with others.
            map.retain(|name, _| match field.as_str() {
                "split" => !["currency_place", "minor_percent"].contains(&name.as_str()),
                "box" => !["vertical_align", "lines_max"].contains(&name.as_str()),
                _ => true,
            });
            assert_eq!(read(id, &without).is_ok(), !names(&part["required"]).contains(field), "{format}.{field}");
        }
    }
}

#[test]
fn the_schemas_choices_are_the_codes_and_the_guide_names_them() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (id, mapping) in full() {
        let format = mapping["format"].as_str().unwrap();
        assert!(GUIDE.contains(&format!("### {format}\n")), "{format}");
        for (field, rule) in schema["$defs"][format]["properties"].as_object().unwrap() {
            assert!(GUIDE.contains(&format!("`{field}`")), "{format}.{field}");
            let Some(choices) = rule.get("enum") else { continue };
            let mut wrong = mapping.clone();
            wrong[field] = json!("no-such-choice");
            assert_eq!(expected(&read(id, &wrong).unwrap_err()), names(choices), "{format}.{field}");
            for choice in names(choices) {
                assert!(GUIDE.contains(&format!("`{choice}`")), "{format}.{field}: {choice}");
            }
        }
    }
    let inks: BTreeSet<String> = picture::Ink::ALL.iter().map(|ink| ink.name().to_owned()).collect();
    assert_eq!(names(&schema["$defs"]["ink"]["enum"]), inks);
}

#[test]
fn the_documents_own_fields_are_the_schemas() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let wrong = json!({ "studio": 1, "name": "x", "elements": {}, "no-such-field": 1 }).to_string();
    let why = StudioDesign::parse(&svg(9, 9, ""), &wrong).unwrap_err().to_string();
    assert_eq!(expected(&why), names(&schema["properties"]));
}

#[test]
fn the_guides_example_is_a_design() {
    let block = |kind: &str| GUIDE.split(kind).nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let design = StudioDesign::parse(block("```xml\n"), block("```json\n")).unwrap();
    assert_eq!((design.name(), design.size()), ("smallest", (296, 128)));
}
