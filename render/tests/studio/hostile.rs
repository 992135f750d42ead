//! Hostile designs: each is refused when it is read, before anything is rasterised, with a reason that names the cause.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

use picture::{Ink, Palette};
use proptest::prelude::*;
use render::{DesignError, StudioDesign, StudioInput, studio_render};
use serde_json::json;

use crate::golden_cases::cases;
use crate::support::{count, mappings, panel, render, svg};

/// Files of `tests/hostile`, and what the reason holds (one of these).
const CORPUS: &[(&str, &[&str])] = &[
    ("animate", &["<animate>"]),
    ("attribute-twice", &["duplicated", "twice", "already"]),
    ("billion-laughs", &["document types"]),
    ("class", &["class"]),
    ("clip-path-cycle", &["<clipPath>"]),
    ("comment-not-closed", &["missing"]),
    ("coordinate-huge", &["numbers lie"]),
    ("coordinate-nan", &["no number"]),
    ("dash-many", &["dashes"]),
    ("dash-negative", &["dasharray"]),
    ("dash-tiny", &["dasharray"]),
    ("duplicate-id", &["same id"]),
    ("event-attribute", &["onclick"]),
    ("external-dtd", &["document types"]),
    ("external-entity", &["document types"]),
    ("file-in-unused-defs", &["refers to"]),
    ("fill-url", &["no plain colour"]),
    ("filter-huge", &["<filter>"]),
    ("filter-image", &["<filter>"]),
    ("filter-in-defs", &["<filter>"]),
    ("font-generic", &["sans-serif"]),
    ("font-huge", &["px can be shown"]),
    ("font-tiny", &["px can be shown"]),
    ("font-unknown", &["Comic Sans MS"]),
    ("foreign-object", &["<foreignObject>"]),
    ("gradient", &["<linearGradient>"]),
    ("image-device", &["refers to"]),
    ("image-environ", &["refers to"]),
    ("image-fifo", &["refers to"]),
    ("image-file", &["refers to"]),
    ("image-file-uri", &["refers to"]),
    ("image-jpeg-data", &["refers to"]),
    ("image-not-base64", &["base64"]),
    ("image-parent-folder", &["refers to"]),
    ("image-png-crc", &["PNG"]),
    ("image-png-huge-header", &["100000"]),
    ("image-png-scaled", &["its box"]),
    ("image-png-truncated", &["PNG"]),
    ("image-remote", &["refers to"]),
    ("image-svg-data", &["refers to"]),
    ("image-unc", &["refers to"]),
    ("link", &["<a>"]),
    ("marker", &["<marker>"]),
    ("mask", &["<mask>"]),
    ("nested-svg", &["inside another"]),
    ("no-namespace", &["namespace"]),
    ("not-closed", &["svg", "close", "tag"]),
    ("parameter-entity", &["document types"]),
    ("path-far", &["farther"]),
    ("path-huge", &["numbers lie"]),
    ("path-not-a-path", &["no path"]),
    ("pattern-nested", &["<pattern>"]),
    ("script", &["<script>"]),
    ("set-href", &["<set>"]),
    ("size-fraction", &["whole pixels"]),
    ("size-huge", &["numbers lie"]),
    ("size-infinite", &["no number", "numbers lie"]),
    ("size-many-pixels", &["pixels"]),
    ("size-millimetres", &["not in pixels"]),
    ("size-missing", &["no width"]),
    ("size-nan", &["no number"]),
    ("size-negative", &["whole pixels"]),
    ("size-percent", &["not in pixels"]),
    ("size-zero", &["whole pixels"]),
    ("stroke-huge", &["numbers lie"]),
    ("style-font-face", &["<style>"]),
    ("style-import", &["<style>"]),
    ("style-url", &["no plain colour"]),
    ("switch", &["<switch>"]),
    ("symbol", &["<symbol>"]),
    ("tag-not-closed", &["not closed"]),
    ("text-control", &["U+202E"]),
    ("text-no-glyph", &["U+65E5"]),
    ("text-path", &["<textPath>"]),
    ("text-right-to-left", &["right-to-left"]),
    ("transform-huge", &["transform"]),
    ("transform-nan", &["transform"]),
    ("transform-singular", &["nothing"]),
    ("transform-tower", &["transform"]),
    ("translucent", &["whole inks"]),
    ("translucent-colour", &["translucent"]),
    ("two-roots", &["unknown token"]),
    ("unknown-entity", &["entity"]),
    ("use-bomb", &["more than"]),
    ("use-cycle", &["nested"]),
    ("use-file", &["refers to"]),
    ("use-missing", &["no element"]),
    ("use-remote", &["refers to"]),
    ("use-root", &["<svg>"]),
    ("use-self", &["nested"]),
    ("view-box-scaled", &["differ"]),
    ("view-box-shifted", &["viewBox"]),
    ("xhtml", &["<img>"]),
    ("xml-stylesheet", &["processing instructions"]),
];

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile"))
}

fn parse(svg: &str) -> Result<StudioDesign, DesignError> {
    StudioDesign::parse(svg, &mappings(&json!({})))
}

#[test]
fn each_file_of_the_corpus_is_refused_for_its_reason() {
    let mut wrong = Vec::new();
    for (name, reasons) in CORPUS {
        let text = read_to_string(folder().join(format!("{name}.svg"))).unwrap();
        match parse(&text).map_err(|why| why.to_string()) {
            Ok(_) => wrong.push(format!("{name}: accepted")),
            Err(why) if why.len() > 1_500 => wrong.push(format!("{name}: the reason has {} bytes", why.len())),
            Err(why) if reasons.iter().any(|reason| why.contains(reason)) => {}
            Err(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_corpus_is_complete() {
    let listed: BTreeSet<String> = CORPUS.iter().map(|(name, _)| format!("{name}.svg")).collect();
    let files: BTreeSet<String> =
        read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(listed, files);
    assert!(files.len() >= 40);
}

/// Documents too large to commit.
fn large() -> Vec<(&'static str, String, &'static str)> {
    let many = |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<String>();
    let stops = many(100_000, &|_| "<stop/>".to_owned());
    let same = |part: &str, count: usize| part.repeat(count);
    vec![
        ("100,000 deep", svg(9, 9, &same("<g>", 100_000)), "at most 262144"),
        ("60,000 deep", svg(9, 9, &same("<g>", 60_000)), "deep"),
        ("33 deep", svg(9, 9, &format!("{}{}", same("<g>", 33), same("</g>", 33))), "deep"),
        ("a million segments", svg(9, 9, &format!("<path d=\"M0 0{}\"/>", same("h1", 1_000_000))), "at most 262144"),
        ("100,000 segments", svg(9, 9, &format!("<path d=\"M0 0{}\"/>", same("h1", 100_000))), "path segments"),
        ("20,000 points", svg(9, 9, &format!("<polyline points=\"{}\"/>", same("1 2 ", 20_000))), "more than"),
        ("100,000 stops", svg(9, 9, &format!("<linearGradient>{stops}</linearGradient>")), "at most 262144"),
        ("20,000 elements", svg(9, 9, &same("<g></g>", 20_000)), "10000 elements"),
        ("20,000 attributes", svg(9, 9, &format!("<g {}/>", many(20_000, &|at| format!("a{at}=\"\" ")))), "attributes"),
        ("2,500 shapes", svg(9, 9, &same("<path d=\"M0 0h1\"/>", 2_500)), "paints more than 2000"),
        ("a long text", svg(9, 9, &format!("<text>{}</text>", same("long ", 2_000))), "characters"),
        ("many texts", svg(296, 128, &same(&format!("<text y=\"20\">{}</text>", same("x", 900)), 5)), "characters"),
        ("a long word", svg(9, 9, &format!("<text>{}</text>", same("x", 200_000))), "characters"),
        (
            "a style read again and again",
            svg(
                9,
                9,
                &format!(
                    "<defs><g id=\"a\" style=\"{}\"/></defs>{}",
                    same("fill:red;", 20_000),
                    same("<use href=\"#a\"/>", 2_000)
                ),
            ),
            "more than 2097152 bytes",
        ),
        (
            "the whole sheet painted 2,000 times",
            svg(2_000, 1_000, &same("<rect width=\"2000\" height=\"1000\"/>", 200)),
            "too often",
        ),
        ("70 colours", svg(9, 9, &many(70, &|at| format!("<g fill=\"#0000{at:02x}\"/>"))), "accepted"),
        (
            "namespaces",
            svg(9, 9, &many(3_000, &|at| format!("<g xmlns:a{at}=\"http://www.serif.com/{at}\"/>"))),
            "64 namespaces",
        ),
        ("an unclosed comment", svg(9, 9, &format!("<!--{}", same("-", 200_000))), "missing"),
        ("a document of nothing", same(" ", 200_000), "SVG"),
    ]
}

#[test]
fn large_documents_are_refused_by_their_budgets() {
    for (name, text, reason) in large() {
        let outcome = parse(&text).map_or_else(|why| why.to_string(), |_| "accepted".to_owned());
        assert!(reason.split('|').any(|reason| outcome.contains(reason)), "{name}: {outcome}");
    }
}

#[test]
fn layers_are_bounded_by_the_size_of_the_sheet() {
    let mut body = String::new();
    let mut elements = serde_json::Map::new();
    for at in 0..100 {
        write!(body, "<rect width=\"9\" height=\"9\"/><rect id=\"e{at}\" y=\"500\" width=\"400\" height=\"400\"/>")
            .unwrap();
        elements.insert(format!("e{at}"), json!({ "format": "picture", "value": "{item.p}" }));
    }
    let mappings = mappings(&serde_json::Value::Object(elements));
    let outcome = StudioDesign::parse(&svg(2_000, 1_000, &body), &mappings).map(drop).map_err(|why| why.to_string());
    assert_eq!(outcome, Err("the SVG is refused: it has too many layers for its size".to_owned()));
    assert!(StudioDesign::parse(&svg(600, 1_000, &body), &mappings).is_ok());
}

#[test]
fn hostile_mappings_are_refused() {
    let text = "<text id=\"t\" x=\"9\" y=\"30\" font-size=\"20\">x</text>";
    let read = |mappings: &str| match StudioDesign::parse(&svg(296, 128, text), mappings) {
        Ok(_) => panic!("accepted: {mappings}"),
        Err(why) => why.to_string(),
    };
    let element = |mapping: &str| read(&format!("{{\"studio\":1,\"name\":\"x\",\"elements\":{{\"t\":{mapping}}}}}"));
    for (why, reason) in [
        (read(""), "cannot be read"),
        (read(&"[".repeat(60_000)), "cannot be read"),
        (read(&" ".repeat(70_000)), "at most 65536"),
        (read("{\"studio\":2,\"name\":\"x\",\"elements\":{}}"), "version"),
        (read("{\"studio\":1,\"name\":\"\",\"elements\":{}}"), "name"),
        (read("{\"studio\":1,\"name\":\"x\",\"elements\":{},\"more\":1}"), "unknown field"),
        (read(&format!("{{\"studio\":1,\"name\":\"x\",\"elements\":{{}},\"{}\":1}}", "y".repeat(60_000))), "unknown"),
        (read("{\"studio\":1,\"name\":\"x\",\"elements\":{},\"inks\":{\"url(#a)\":\"red\"}}"), "colour"),
        (read("{\"studio\":1,\"name\":\"x\",\"elements\":{},\"inks\":{\"red\":\"pink\"}}"), "no ink"),
        (element("{\"format\":\"text\",\"value\":\"a\"},\"t\":{\"format\":\"text\",\"value\":\"b\"}"), "mapped twice"),
        (element("{\"format\":\"text\",\"value\":\"{item.name\"}"), "brace"),
        (element("{\"format\":\"text\",\"value\":\"{{7*7}}\",\"box\":[0,0,9999,9]}"), "does not lie"),
        (element("{\"format\":\"text\",\"value\":\"a\",\"box\":\"nowhere\"}"), "no <rect>"),
        (element("{\"format\":\"text\",\"value\":\"a\",\"lines_max\":2}"), "needs a \"box\""),
        (element("{\"format\":\"script\",\"value\":\"a\"}"), "unknown variant"),
        (element("{\"format\":\"barcode\",\"symbology\":\"qr\",\"value\":\"a\"}"), "fills a <rect>"),
        (element("{\"format\":\"picture\",\"value\":\"a\"}"), "fills a <rect>"),
        (element("{\"format\":\"visibility\",\"when\":[]}"), "condition"),
        (element("{\"format\":\"date\",\"value\":\"a\",\"pattern\":\"EEEE\"}"), "date pattern"),
        (element("{\"format\":\"price\",\"value\":\"a\",\"part\":\"integer\"}"), "go together"),
        (element("{\"format\":\"price\",\"value\":\"a\",\"part\":\"fraction\"}"), "go together"),
        (element("{\"format\":\"price\",\"value\":\"a\",\"part\":\"currency\",\"split\":true}"), "part of a price"),
    ] {
        assert!(why.contains(reason) && why.len() < 1_500, "{reason}: {why}");
    }
}

#[test]
fn values_never_become_markup() {
    let body = "<text id=\"t\" x=\"2\" y=\"60\" font-size=\"10\">x</text>";
    let elements = json!({ "t": { "format": "text", "value": "{item.name}" } });
    let design = StudioDesign::parse(&svg(296, 128, body), &mappings(&elements)).unwrap();
    let draw = |name: &str| render(&design, panel(296, 128, Palette::Bw), &[("name", name)]);
    for name in ["\"/><image href=\"/a.png\"/>", "]]>", "&xxe;&lt;", "<!-- -->", "{{7*7}}", "{item.url}", "</text><g>"]
    {
        // Each sign is a glyph on the line; markup would leave nothing or be refused.
        let dark = count(&draw(name).unwrap(), Ink::Black);
        assert!(dark > 10, "{name}");
    }
    for (name, sign) in [
        ("a\u{1}b", "U+0001"),
        ("a\u{FFFE}b", "U+FFFE"),
        ("a\u{FFFF}", "U+FFFF"),
        ("\u{202E}x", "U+202E"),
        ("日", "U+65E5"),
        ("🛒", "U+1F6D2"),
        ("a\nb", "U+000A"),
        ("\u{E000}", "U+E000"),
    ] {
        let why = draw(name).unwrap_err().to_string();
        assert!(why.starts_with("element \"t\"") && why.contains(sign), "{why}");
    }
    assert!(draw(&"x".repeat(100_000)).unwrap_err().to_string().contains("100000 characters"));
}

#[test]
fn hostile_pictures_as_values_are_refused() {
    let body = "<rect id=\"p\" x=\"10\" y=\"10\" width=\"40\" height=\"40\"/>";
    let elements = json!({ "p": { "format": "picture", "value": "{item.p}" } });
    let design = StudioDesign::parse(&svg(296, 128, body), &mappings(&elements)).unwrap();
    let draw = |value: &str| render(&design, panel(296, 128, Palette::Bw), &[("p", value)]).map(drop);
    let why = |value: &str| draw(value).unwrap_err().to_string();
    assert_eq!(draw(&crate::golden_cases::photo(40, 40)), Ok(()));
    assert_eq!(draw(&crate::golden_cases::photo(4, 9)), Ok(()));
    assert!(why(&crate::golden_cases::photo(41, 40)).contains("41 × 40"));
    assert!(why("not base64 <").contains("base64"));
    assert!(why("AAAA").contains("PNG"));
    assert!(why("/etc/passwd").contains("the picture cannot be shown"));
    assert!(why(&"A".repeat(90_000)).contains("87384"));
    let mut photo = crate::golden_cases::photo(40, 40);
    photo.truncate(photo.len() / 8 * 4);
    assert!(why(&photo).contains("PNG"));
}

/// Pieces of markup, sound and hostile.
fn piece() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (-50..350_i32).prop_map(|n| n.to_string()),
        Just("1e9".to_owned()),
        Just("NaN".to_owned()),
        Just("-0.5".to_owned()),
        Just("0.0001".to_owned()),
    ];
    let numbers = proptest::collection::vec(number, 6);
    let tag = proptest::sample::select(vec![
        "rect", "circle", "ellipse", "line", "path", "text", "use", "g", "image", "filter",
    ]);
    let style = proptest::sample::select(vec![
        "fill=\"red\"",
        "stroke=\"#0000ff\"",
        "stroke=\"red\" stroke-dasharray=\"3 1\"",
        "transform=\"rotate(30)\"",
        "transform=\"scale(3) skewX(20)\"",
        "opacity=\"0\"",
        "style=\"fill:none;stroke:black;stroke-width:.2\"",
        "font-size=\"30\" text-anchor=\"middle\"",
        "id=\"a\"",
        "href=\"#a\"",
    ]);
    (tag, numbers, style).prop_map(|(tag, n, style)| {
        let at = |index: usize| n[index].as_str();
        let geometry = match tag {
            "rect" => {
                format!("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"", at(0), at(1), at(2), at(3), at(4))
            }
            "circle" => format!("cx=\"{}\" cy=\"{}\" r=\"{}\"", at(0), at(1), at(2)),
            "ellipse" => format!("cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"", at(0), at(1), at(2), at(3)),
            "line" => format!("x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", at(0), at(1), at(2), at(3)),
            "path" => format!(
                "d=\"M{} {}C{} {} {} {} {} {}A{} {} {} 0 1 {} {}Z\"",
                at(0),
                at(1),
                at(2),
                at(3),
                at(4),
                at(5),
                at(1),
                at(0),
                at(2),
                at(3),
                at(4),
                at(0),
                at(5)
            ),
            "text" | "use" => format!("x=\"{}\" y=\"{}\"", at(0), at(1)),
            _ => String::new(),
        };
        if tag == "text" {
            format!("<text {geometry} {style}>Größe {}</text>", at(0))
        } else {
            format!("<{tag} {geometry} {style}/>")
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_drawing_is_a_picture_or_a_reason(pieces in proptest::collection::vec(piece(), 1..8), palette in 0_usize..5) {
        if let Ok(design) = parse(&svg(296, 128, &pieces.concat())) {
            let palette = Palette::ALL[palette];
            let picture = render(&design, panel(296, 128, palette), &[]).unwrap();
            let inks = palette.inks().len();
            prop_assert!(picture.indices().iter().all(|index| usize::from(*index) < inks));
        }
    }

    #[test]
    fn a_damaged_design_never_panics(case in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), put in "[<>/\"'=&#a-z0-9 ]{0,6}") {
        let cases = cases();
        let case = case.get(&cases);
        let at = cut.index(case.svg.len());
        if case.svg.is_char_boundary(at) && case.svg.is_char_boundary((at + 3).min(case.svg.len())) {
            let damaged = format!("{}{put}{}", &case.svg[..at], &case.svg[(at + 3).min(case.svg.len())..]);
            if let Ok(design) = StudioDesign::parse(&damaged, &case.mappings) {
                let item = BTreeMap::new();
                // Only that it returns.
                drop(studio_render(&design, &StudioInput { panel: case.panel, item: &item, parameters: &item }));
            }
        }
    }

    #[test]
    fn any_bytes_are_refused(text in any::<String>()) {
        prop_assert!(parse(&text).is_err());
        prop_assert!(StudioDesign::parse(&svg(9, 9, ""), &text).is_err());
    }
}
