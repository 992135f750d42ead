//! Texts: values, placeholders, conditions, and that text is one-bit on every panel.

use std::collections::BTreeMap;

use picture::{Ink, Palette};
use render::{EccInput, EccModel, render};
use serde_json::{Value, json};

use crate::support::{bounds, count, draw, draw_one, layout, panel, values};

fn text(words: &str) -> Value {
    json!({ "kind": "text", "id": "name", "box": [4, 4, 288, 60], "text": words, "size": 24 })
}

fn fails(words: &str, item: &[(&str, &str)]) -> String {
    draw_one(&text(words), Palette::Bw, item).unwrap_err().to_string()
}

#[test]
fn a_missing_value_is_an_error_unless_the_layout_has_words_or_a_condition() {
    assert_eq!(
        fails("{item.name}", &[]),
        "element \"name\": item.name has no value, and the layout gives no default or condition"
    );
    let spoken = draw_one(&text("{item.name|none}"), Palette::Bw, &[("name", " ")]).unwrap();
    assert_eq!(spoken, draw_one(&text("none"), Palette::Bw, &[]).unwrap());
    let mut conditional = text("{item.name}");
    conditional["when"] = json!([{ "key": "item.name", "is": "present" }]);
    assert_eq!(count(&draw_one(&conditional, Palette::Bw, &[]).unwrap(), Ink::Black), 0);
}

#[test]
fn placeholders_read_items_and_parameters_and_values_are_not_read_again() {
    let model = EccModel::parse(&layout(296, 128, &[text("{item.a}{param.b}{{}}")])).unwrap();
    let (item, parameters) = (values(&[("a", "{item.b}"), ("b", "x")]), values(&[("b", "y")]));
    let input = EccInput { panel: panel(296, 128, Palette::Bw), item: &item, parameters: &parameters };
    let plain = draw_one(&text("{{item.b}}y{{}}"), Palette::Bw, &[]).unwrap();
    assert_eq!(render(&model, &input).unwrap(), plain);
}

#[test]
fn hostile_characters_fail_by_name() {
    assert_eq!(
        fails("{item.name}", &[("name", "日本")]),
        "element \"name\": no embedded font has the character 日 (U+65E5)"
    );
    assert_eq!(
        fails("{item.name}", &[("name", "a\u{202E}b")]),
        "element \"name\": the character U+202E (a direction control) is not allowed in \"a\\u{202e}b\""
    );
    for bad in ["a\nb", "a\u{0}", "a\u{7}", "שלום", "\u{E0041}"] {
        assert!(draw_one(&text("{item.name}"), Palette::Bw, &[("name", bad)]).is_err(), "{bad:?}");
    }
    assert!(fails("{item.name}", &[("name", "x".repeat(1_001).as_str())]).contains("1001 characters"));
}

#[test]
fn decomposed_and_composed_accents_are_one_picture() {
    let pixels = |name| draw_one(&text("{item.name}"), Palette::Bw, &[("name", name)]).unwrap();
    assert_eq!(pixels("A\u{302}\u{301}m thu\u{31B}\u{323}c"), pixels("Ấm thực"));
}

#[test]
fn a_text_too_long_is_an_error_and_ends_in_an_ellipsis_only_if_allowed() {
    let long = "Donaudampfschifffahrtsgesellschaftskapitän";
    assert_eq!(
        fails(long, &[]),
        format!("element \"name\": \"{long}\" does not fit its 288 × 60 px box at the smallest size, 24 px")
    );
    let mut cut = text(long);
    cut["overflow"] = json!("ellipsis");
    let picture = draw_one(&cut, Palette::Bw, &[]).unwrap();
    let (left, _, right, _) = bounds(&picture, Ink::Black).unwrap();
    assert!(left >= 4 && right <= 292 && right > 260);
}

#[test]
fn text_has_two_inks_on_every_panel_and_the_same_shape() {
    let shapes: Vec<usize> = Palette::ALL
        .into_iter()
        .map(|palette| {
            let picture = draw_one(&text("Crisp ÄÖÜ 123"), palette, &[]).unwrap();
            let black = count(&picture, Ink::Black);
            assert_eq!(black + count(&picture, Ink::White), 296 * 128, "{palette}");
            black
        })
        .collect();
    assert!(shapes.iter().all(|black| *black == shapes[0] && *black > 300));
}

#[test]
fn inks_a_panel_lacks_are_replaced_as_documented() {
    use Ink::{Black, DarkGrey, LightGrey, Red, White, Yellow};
    for (ink, palette, want) in [
        (json!("red"), Palette::Bwr, Red),
        (json!("red"), Palette::Bw, Black),
        (json!("red"), Palette::Grey4, DarkGrey),
        (json!("yellow"), Palette::Bwry, Yellow),
        (json!("yellow"), Palette::Bwr, White),
        (json!("yellow"), Palette::Grey4, LightGrey),
        (json!(["yellow", "red"]), Palette::Bwr, Red),
        (json!(["yellow", "red"]), Palette::Bw, Black),
        (json!("dark_grey"), Palette::Bw, Black),
        (json!("light_grey"), Palette::Spectra6, White),
    ] {
        let rect = json!({ "kind": "rect", "id": "r", "box": [0, 0, 296, 128], "fill": ink });
        assert_eq!(count(&draw_one(&rect, palette, &[]).unwrap(), want), 296 * 128, "{ink} on {palette}");
    }
}

#[test]
fn conditions_compare_as_documented() {
    let drawn = |condition: Value, item: &[(&str, &str)]| {
        let rect = json!({ "kind": "rect", "id": "r", "box": [0, 0, 9, 9], "fill": "black", "when": [condition] });
        draw_one(&rect, Palette::Bw, item).map(|picture| count(&picture, Ink::Black) == 81)
    };
    let old = [("old", "10.00"), ("new", "9.99"), ("word", "bio"), ("blank", " ")];
    let is = |key: &str, is: &str| json!({ "key": key, "is": is });
    let compare = |key: &str, is: &str, value: &str| json!({ "key": key, "is": is, "value": value });
    for (condition, want) in [
        (is("item.old", "present"), true),
        (is("item.none", "present"), false),
        (is("item.blank", "present"), false),
        (is("item.none", "absent"), true),
        (is("param.old", "absent"), true),
        (compare("item.word", "equals", "bio"), true),
        (compare("item.word", "not_equals", "bio"), false),
        (compare("item.none", "equals", "bio"), false),
        (compare("item.none", "not_equals", "bio"), true),
        (compare("item.old", "greater", "{item.new}"), true),
        (compare("item.old", "less", "{item.new}"), false),
        (compare("item.old", "greater", "10"), false),
        (compare("item.old", "greater", "{item.none}"), false),
        (compare("item.none", "less", "5"), false),
    ] {
        assert_eq!(drawn(condition.clone(), &old), Ok(want), "{condition}");
    }
    let error = drawn(compare("item.word", "greater", "1"), &old).unwrap_err();
    assert_eq!(error.to_string(), "element \"r\": condition on item.word: \"bio\" is no decimal number");
}

#[test]
fn the_variant_is_chosen_by_exact_size_after_rotation() {
    let model = layout(296, 128, &[text("x")]);
    let error = draw(&model, panel(128, 296, Palette::Bw), &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model has no variant of 128 × 296 pixels (it has 296 × 128); the panel needs one after rotation"
    );
    let turned = render::Panel { rotation: picture::Rotation::Deg90, ..panel(128, 296, Palette::Bw) };
    assert_eq!(draw(&model, turned, &[]).unwrap().width(), 128);
}

#[test]
fn a_model_is_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let model = EccModel::parse(&layout(296, 128, &[text("x")])).unwrap();
    shared(&model);
    assert_eq!((model.name(), model.sizes().collect::<Vec<_>>()), ("test", vec![(296, 128)]));
    let (item, parameters) = (BTreeMap::new(), BTreeMap::new());
    let input = EccInput { panel: panel(296, 128, Palette::Bw), item: &item, parameters: &parameters };
    let digests: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| render(&model, &input).unwrap().digest())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}
