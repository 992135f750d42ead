//! What a design promises: inks, order, sizes, sharing, values.

use picture::{Ink, Palette, Rotation};
use render::{Panel, StudioDesign};
use serde_json::{Value, json};

use crate::golden_cases::{MILK, cases, photo};
use crate::support::{POSTER_296, count, draw, mappings, panel, refused, render as studio, svg, values};

fn texts(mapping: &Value) -> Value {
    json!({ "t": mapping })
}

const WORDS: &str = "<text id=\"t\" x=\"10\" y=\"60\" font-size=\"40\">x</text>";

#[test]
fn designs_are_shared_between_threads_and_panels_whatever_the_order() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let design = StudioDesign::parse(POSTER_296[0], POSTER_296[1]).unwrap();
    shared(&design);
    assert_eq!((design.name(), design.size()), ("poster", (296, 128)));
    let draw = |palette| studio(&design, panel(296, 128, palette), MILK).unwrap().digest();
    let one: Vec<_> = Palette::ALL.into_iter().map(draw).collect();
    std::thread::scope(|scope| {
        let others: Vec<_> =
            (0..4).map(|_| scope.spawn(|| Palette::ALL.into_iter().rev().map(draw).collect::<Vec<_>>())).collect();
        for other in others {
            assert!(other.join().unwrap().iter().rev().eq(one.iter()));
        }
    });
}

#[test]
fn the_designs_size_is_the_panels_after_rotation() {
    let design = StudioDesign::parse(POSTER_296[0], POSTER_296[1]).unwrap();
    for rotation in Rotation::ALL {
        let (width, height) = if rotation.swaps_sides() { (128, 296) } else { (296, 128) };
        let panel = Panel { width, height, palette: Palette::Bwr, rotation };
        let picture = studio(&design, panel, MILK).unwrap();
        assert_eq!((picture.width(), picture.height()), (width, height));
        let wrong = Panel { width: height, height: width, ..panel };
        let why = studio(&design, wrong, MILK).unwrap_err().to_string();
        assert!(why.contains("the design is 296 × 128 pixels; the panel needs 128 × 296"), "{why}");
    }
}

#[test]
fn shapes_and_texts_are_whole_inks_and_only_pictures_are_dithered() {
    // One colour of the drawing is one ink on the panel: red words and shapes on white leave no third ink.
    let body = "<rect width=\"296\" height=\"128\" fill=\"white\"/>
        <circle cx=\"60\" cy=\"60\" r=\"47.3\" fill=\"#e30613\"/><path d=\"M120 10C200 90 90 30 280 120\" fill=\"none\" stroke=\"#e30613\" stroke-width=\"1.7\"/>
        <text transform=\"translate(150 80) rotate(17)\" font-size=\"30\" fill=\"#e30613\">schräg</text>
        <text id=\"t\" x=\"150\" y=\"30\" font-size=\"20\" fill=\"#e30613\">x</text>";
    for palette in Palette::ALL {
        let picture = draw(body, &texts(&json!({ "format": "text", "value": "Wert" })), palette, &[]).unwrap();
        let red =
            [Ink::Red, Ink::DarkGrey, Ink::Black].into_iter().find(|ink| palette.index_of(*ink).is_some()).unwrap();
        assert_eq!(count(&picture, Ink::White) + count(&picture, red), 296 * 128, "{palette}");
        assert!(count(&picture, red) > 5_000, "{palette}");
    }
    // The same with a photograph: others appear, and only inside it.
    let with_photo = format!(
        "{body}<image x=\"200\" y=\"60\" width=\"60\" height=\"40\" href=\"data:image/png;base64,{}\"/>",
        photo(60, 40)
    );
    let picture = draw(&with_photo, &texts(&json!({ "format": "text", "value": "Wert" })), Palette::Bwry, &[]).unwrap();
    let others =
        (0..128).flat_map(|y| (0..296).map(move |x| (x, y))).filter(|(x, y)| matches!(picture.at(*x, *y), Some(1 | 3)));
    let others: Vec<_> = others.collect();
    assert!(others.len() > 100 && others.iter().all(|(x, y)| (200..260).contains(x) && (60..100).contains(y)));
}

#[test]
fn every_golden_design_draws_on_every_palette_with_its_inks_only() {
    for case in cases() {
        let design = StudioDesign::parse(&case.svg, &case.mappings).unwrap();
        for palette in Palette::ALL {
            // White on white or black on black may make a price unreadable; then the label fails and says so.
            match studio(&design, Panel { palette, ..case.panel }, &case.item) {
                Ok(picture) => assert!(picture.indices().iter().all(|at| usize::from(*at) < palette.inks().len())),
                Err(why) => assert!(why.to_string().contains("would not be visible"), "{} {palette}: {why}", case.name),
            }
        }
    }
}

#[test]
fn declared_inks_win_over_the_nearest() {
    let parse = |inks: Value| {
        let mappings = json!({ "studio": 1, "name": "x", "inks": inks, "elements": {} }).to_string();
        StudioDesign::parse(&svg(9, 9, "<rect width=\"9\" height=\"9\" fill=\"#ffcc00\"/>"), &mappings).unwrap()
    };
    let at = |design: &StudioDesign, palette| {
        let picture = studio(design, panel(9, 9, palette), &[]).unwrap();
        palette.inks()[usize::from(picture.at(4, 4).unwrap())]
    };
    let (plain, declared) = (parse(json!({})), parse(json!({ "#FC0": ["yellow", "red", "black"] })));
    assert_eq!((at(&plain, Palette::Bwry), at(&plain, Palette::Bwr)), (Ink::Yellow, Ink::White));
    assert_eq!((at(&plain, Palette::Grey4), at(&plain, Palette::Bw)), (Ink::LightGrey, Ink::White));
    assert_eq!((at(&declared, Palette::Bwry), at(&declared, Palette::Bwr)), (Ink::Yellow, Ink::Red));
    assert_eq!(at(&declared, Palette::Bw), Ink::Black);
}

#[test]
fn elements_are_drawn_in_document_order() {
    let elements = json!({ "p": { "format": "picture", "value": "{item.p}", "dither": "nearest" } });
    let black = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    let below = "<rect x=\"10\" y=\"10\" width=\"9\" height=\"9\" fill=\"red\"/>";
    let filled = "<rect id=\"p\" x=\"14\" y=\"14\" width=\"1\" height=\"1\"/>";
    let at = |body: &str| draw(body, &elements, Palette::Bwr, &[("p", black)]).unwrap().at(14, 14);
    assert_eq!(at(&format!("{below}{filled}")), Some(1));
    assert_eq!(at(&format!("{filled}{below}")), Some(2));
}

#[test]
fn a_price_is_whole_or_the_label_fails() {
    let price = |body: &str, extra: Value, item: &[(&str, &str)]| {
        let mut mapping = json!({ "format": "price", "value": "{item.price}" });
        mapping.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        draw(body, &texts(&mapping), Palette::Bwr, item).map(drop).map_err(|why| why.to_string())
    };
    let euros = |price: &'static str| vec![("price", price), ("currency", "EUR"), ("locale", "de")];
    let boxed = json!({ "box": [10, 10, 100, 40], "size_min": 20 });
    assert_eq!(price(WORDS, boxed.clone(), &euros("9.99")), Ok(()));
    let why = price(WORDS, boxed.clone(), &euros("123456789.99")).unwrap_err();
    assert!(why.starts_with("element \"t\"") && why.contains("100 × 40") && why.contains("20 px"), "{why}");
    for (item, reason) in [
        (vec![], "item.price has no value"),
        (euros("-0.01"), "below zero"),
        (euros("NaN"), "no price"),
        (euros("1e21"), "no price"),
        (euros("1.999"), "not rounded"),
        (vec![("price", "1.00"), ("currency", "Euro"), ("locale", "de")], "ISO 4217"),
        (vec![("price", "1.00"), ("currency", "EUR"), ("locale", "tlh")], "locale"),
    ] {
        let why = price(WORDS, boxed.clone(), &item).unwrap_err();
        assert!(why.contains(reason), "{reason}: {why}");
    }
    let white = WORDS.replace("<text", "<text fill=\"white\"");
    assert!(price(&white, json!({}), &euros("9.99")).unwrap_err().contains("not be visible"));
    let covered = format!("{WORDS}<rect width=\"200\" height=\"90\" fill=\"red\"/>");
    assert!(price(&covered, json!({}), &euros("9.99")).unwrap_err().contains("draws over it"));
    let edge = WORDS.replace("x=\"10\"", "x=\"280\"");
    assert!(price(&edge, json!({}), &euros("9.99")).unwrap_err().contains("does not fit"));
}

#[test]
fn texts_wrap_shrink_and_then_fail_inside_their_box() {
    let body = "<rect id=\"r\" x=\"20\" y=\"20\" width=\"120\" height=\"50\" fill=\"none\"/><text id=\"t\" font-size=\"30\" fill=\"red\">x</text>";
    let mapping = |overflow: &str| {
        texts(
            &json!({ "format": "text", "value": "{item.name}", "box": "r", "lines_max": 3, "size_min": 12, "overflow": overflow }),
        )
    };
    for name in ["kurz", "ein mittellanger Name", "ein recht langer Name, der schrumpfen muss", "Ấ̂gjpqyÅ"] {
        let picture = draw(body, &mapping("error"), Palette::Bwr, &[("name", name)]).unwrap();
        let outside = (0..128)
            .flat_map(|y| (0..296).map(move |x| (x, y)))
            .filter(|(x, y)| picture.at(*x, *y) == Some(2))
            .find(|(x, y)| !(20..140).contains(x) || !(20..70).contains(y));
        assert!(outside.is_none() && count(&picture, Ink::Red) > 50, "{name}: {outside:?}");
    }
    let long = "wirklich sehr viel mehr Wörter als in drei Zeilen zu zwölf Pixeln passen ".repeat(3);
    let why = draw(body, &mapping("error"), Palette::Bwr, &[("name", &long)]).unwrap_err().to_string();
    assert!(why.starts_with("element \"t\"") && why.contains("120 × 50"), "{why}");
    assert!(draw(body, &mapping("ellipsis"), Palette::Bwr, &[("name", &long)]).is_ok());
}

#[test]
fn absent_values_take_defaults_or_fail_by_name() {
    let with = |value: &str, item: &[(&str, &str)]| {
        draw(WORDS, &texts(&json!({ "format": "text", "value": value })), Palette::Bw, item)
            .map(|picture| count(&picture, Ink::Black))
    };
    assert!(with("{item.name}", &[]).unwrap_err().to_string().contains("item.name has no value"));
    assert!(with("{item.name}", &[("name", "  ")]).is_err());
    assert!(with("{param.shelf}", &[("shelf", "x")]).unwrap_err().to_string().contains("param.shelf"));
    assert!(with("{item.name|ohne}", &[]).unwrap() > 50);
    assert_eq!(with("{item.name|}", &[]).unwrap(), 0);
    let when = json!({ "format": "text", "value": "{item.name}", "when": [{ "key": "item.name", "is": "present" }] });
    assert_eq!(count(&draw(WORDS, &texts(&when), Palette::Bw, &[]).unwrap(), Ink::Black), 0);
}

#[test]
fn conditions_of_groups_hold_for_all_they_contain() {
    let body =
        "<g id=\"g\"><rect width=\"50\" height=\"50\"/><text id=\"t\" x=\"60\" y=\"60\" font-size=\"20\">x</text></g>";
    let elements = json!({
        "g": { "format": "visibility", "when": [{ "key": "item.show", "is": "equals", "value": "yes" }] },
        "t": { "format": "text", "value": "{item.name}" } });
    let ink =
        |item: &[(&str, &str)]| draw(body, &elements, Palette::Bw, item).map(|picture| count(&picture, Ink::Black));
    // Hidden with its group, the text needs no value.
    assert_eq!(ink(&[]), Ok(0));
    assert!(ink(&[("show", "yes"), ("name", "Wort")]).unwrap() > 2_550);
    assert!(ink(&[("show", "yes")]).is_err());
    let order =
        json!({ "g": { "format": "visibility", "when": [{ "key": "item.show", "is": "less", "value": "2" }] } });
    let why = draw(body, &order, Palette::Bw, &[("show", "viel")]).unwrap_err().to_string();
    assert!(why.contains("element \"g\"") && why.contains("no decimal number"), "{why}");
}

#[test]
fn what_mapped_text_cannot_do_is_refused_by_name() {
    let text = texts(&json!({ "format": "text", "value": "a" }));
    for (body, reason) in [
        ("<text id=\"t\" transform=\"rotate(9)\" y=\"20\">x</text>", "cannot be turned"),
        ("<text id=\"t\" transform=\"scale(2 1)\" y=\"20\">x</text>", "stretched"),
        ("<text id=\"t\" stroke=\"red\" y=\"20\">x</text>", "no stroke"),
        ("<text id=\"t\" fill=\"none\" y=\"20\">x</text>", "needs a fill"),
        ("<text id=\"t\" y=\"20\" font-style=\"italic\">x</text>", "font-style"),
        ("<text id=\"t\" y=\"20\" letter-spacing=\"2\">x</text>", "letter-spacing"),
        ("<text id=\"t\" y=\"20\" text-decoration=\"underline\">x</text>", "text-decoration"),
        ("<text id=\"t\" y=\"20\" text-decoration=\"line-through\">x</text>", "struck through"),
        ("<text id=\"t\" y=\"20\" font-size=\"9\">x</text>", "10 to 400 px"),
        ("<text y=\"20\"><tspan text-decoration=\"line-through\">x</tspan></text>", "struck through"),
        ("<text id=\"t\" y=\"20\" fill-opacity=\"0.4\">x</text>", "fill-opacity"),
        ("<text id=\"t\" x=\"999\" y=\"20\">x</text>", "anchor"),
        ("<text id=\"t\" y=\"20\" visibility=\"hidden\">x</text>", "hidden"),
        ("<defs><text id=\"t\" y=\"20\">x</text></defs>", "draws no element"),
        ("<defs><text id=\"t\" y=\"20\">x</text></defs><use href=\"#t\"/>", "repeated by <use>"),
        ("<rect id=\"t\" width=\"9\" height=\"9\"/>", "fill a <text>"),
        ("<g id=\"t\"/>", "visibility"),
        ("<rect width=\"9\" height=\"9\"/>", "draws no element"),
        ("<text y=\"20\">x<tspan id=\"t\">y</tspan></text>", "draws no element"),
    ] {
        let why = refused(body, &text);
        assert!(why.contains(reason), "{body}: {why}");
    }
}

#[test]
fn conditions_within_a_hidden_group_are_not_asked() {
    let body = "<g id=\"g\"><rect id=\"r\" width=\"9\" height=\"9\"/></g>";
    let elements = json!({
        "g": { "format": "visibility", "when": [{ "key": "item.show", "is": "present" }] },
        "r": { "format": "visibility", "when": [{ "key": "item.count", "is": "greater", "value": "2" }] } });
    let ink =
        |item: &[(&str, &str)]| draw(body, &elements, Palette::Bw, item).map(|picture| count(&picture, Ink::Black));
    assert_eq!(ink(&[("count", "viele")]), Ok(0));
    assert_eq!(ink(&[("count", "3"), ("show", "x")]), Ok(81));
    assert!(ink(&[("count", "viele"), ("show", "x")]).is_err());
}

#[test]
fn values_are_set_as_in_an_ecc_layout() {
    let body = "<rect id=\"b\" x=\"4\" y=\"60\" width=\"226\" height=\"66\"/><rect id=\"q\" x=\"230\" y=\"60\" width=\"66\" height=\"66\"/>
        <text id=\"n\" font-size=\"24\" text-anchor=\"middle\" font-weight=\"bold\">x</text><text id=\"p\" font-size=\"40\" text-anchor=\"end\" fill=\"red\">x</text>";
    let elements = json!({
        "n": { "format": "text", "value": "{item.name}", "box": [4, 4, 160, 50], "lines_max": 2, "size_min": 12 },
        "p": { "format": "price", "value": "{item.price}", "box": [170, 4, 120, 50], "split": true, "size_min": 20 },
        "b": { "format": "barcode", "symbology": "ean13", "value": "{item.gtin}", "readable": true },
        "q": { "format": "barcode", "symbology": "qr", "value": "{item.url}" } });
    let layout = json!({ "ecc": 1, "name": "same", "variants": [{ "width": 296, "height": 128, "elements": [
        { "kind": "text", "id": "n", "box": [4, 4, 160, 50], "text": "{item.name}", "size": 24, "size_min": 12, "lines_max": 2, "align": "center", "weight": "bold" },
        { "kind": "price", "id": "p", "box": [170, 4, 120, 50], "value": "{item.price}", "size": 40, "size_min": 20, "split": true, "align": "right", "ink": "red" },
        { "kind": "barcode", "id": "b", "box": [4, 60, 226, 66], "symbology": "ean13", "value": "{item.gtin}", "readable": true },
        { "kind": "barcode", "id": "q", "box": [230, 60, 66, 66], "symbology": "qr", "value": "{item.url}" }] }] });
    let model = render::EccModel::parse(&layout.to_string()).unwrap();
    let (item, none) = (values(MILK), values(&[]));
    let input = render::EccInput { panel: panel(296, 128, Palette::Bwr), item: &item, parameters: &none };
    assert!(draw(body, &elements, Palette::Bwr, MILK).unwrap() == render::render(&model, &input).unwrap());
}

#[test]
fn parts_of_a_price_go_together() {
    let body = "<text id=\"i\" x=\"10\" y=\"60\" font-size=\"40\">1</text><text id=\"f\" x=\"90\" y=\"60\" font-size=\"20\">2</text>";
    let part = |part: &str, value: &str| json!({ "format": "price", "part": part, "value": value });
    let why =
        refused(body, &json!({ "i": part("integer", "{item.price}"), "f": part("fraction", "{item.old_price}") }));
    assert!(why.contains("go together"), "{why}");
    let mut shown = part("fraction", "{item.price}");
    shown["when"] = json!([{ "key": "item.cents", "is": "present" }]);
    assert!(refused(body, &json!({ "i": part("integer", "{item.price}"), "f": shown })).contains("go together"));
    let both = json!({ "i": part("integer", "{item.price}"), "f": part("fraction", "{item.price}") });
    let item = [("price", "12.50"), ("currency", "EUR"), ("locale", "de")];
    assert!(draw(body, &both, Palette::Bw, &item).is_ok());
}

#[test]
fn drawing_programs_documents_are_understood() {
    let svg = r##"<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!-- Created with a drawing program -->
<svg width="296px" height="128px" viewBox="0 0 296 128" version="1.1" id="svg1" xml:space="preserve"
   xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" xmlns:sodipodi="http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd"
   xmlns="http://www.w3.org/2000/svg" xmlns:svg="http://www.w3.org/2000/svg" inkscape:version="1.4">
  <sodipodi:namedview id="namedview1" pagecolor="#ffffff"/>
  <defs id="defs1"/>
  <metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/></metadata>
  <g inkscape:label="Layer 1" inkscape:groupmode="layer" id="layer1">
    <text xml:space="preserve" id="t" x="10" y="20"
      style="font-size:20px;font-family:'DejaVu Sans Condensed';-inkscape-font-specification:'DejaVu Sans Condensed, Normal';font-style:normal;font-variant:normal;fill:#000000;stroke:none"><tspan
        sodipodi:role="line" id="tspan1" x="30" y="60" style="font-weight:bold;font-size:24px">Name</tspan></text>
  </g>
</svg>"##;
    let mapped = texts(&json!({ "format": "text", "value": "{item.name}" }));
    let design = StudioDesign::parse(svg, &mappings(&mapped)).unwrap();
    let picture = studio(&design, panel(296, 128, Palette::Bw), &[("name", "Wert")]).unwrap();
    let plain = draw(
        "<text id=\"t\" x=\"30\" y=\"60\" font-size=\"24\" font-weight=\"700\">x</text>",
        &mapped,
        Palette::Bw,
        &[("name", "Wert")],
    );
    assert!(plain.unwrap() == picture);
}

#[test]
fn static_and_mapped_text_look_alike() {
    for anchor in ["start", "middle", "end"] {
        let text = |words: &str| {
            format!(
                "<text id=\"t\" x=\"148\" y=\"60\" font-size=\"24\" font-weight=\"bold\" text-anchor=\"{anchor}\" fill=\"red\">{words}</text>"
            )
        };
        let fixed = draw(&text("Größe"), &json!({}), Palette::Bwr, &[]).unwrap();
        let mapped =
            draw(&text("x"), &texts(&json!({ "format": "text", "value": "Größe" })), Palette::Bwr, &[]).unwrap();
        assert!(fixed == mapped, "{anchor}");
    }
}
