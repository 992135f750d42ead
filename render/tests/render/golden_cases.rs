//! What the golden pictures show: panels, rotations, scripts, prices, barcodes, shapes, pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use picture::{Palette, Rotation};
use render::Panel;
use serde_json::{Value, json};

use crate::support::{FRESH, PROMO, STANDARD, layout, panel};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) model: String,
    pub(crate) panel: Panel,
    pub(crate) item: Vec<(&'static str, &'static str)>,
}

const MILK: &[(&str, &str)] = &[
    ("name", "Bio Vollmilch 3,8 % länger frisch"),
    ("brand", "Landgut Süd"),
    ("price", "1.29"),
    ("currency", "EUR"),
    ("locale", "de-DE"),
    ("unit_price", "1.29"),
    ("unit", "l"),
    ("gtin", "2001234567893"),
    ("old_price", "1.79"),
    ("promo_text", "Aktion der Woche"),
    ("origin", "Deutschland"),
    ("class", "I"),
    ("url", "https://example.com/p/2001234567893"),
];

const GREEK: &[(&str, &str)] = &[
    ("name", "Ελληνικό παρθένο ελαιόλαδο Κορωνέικη 750 ml"),
    ("brand", "Ελαιώνας"),
    ("price", "12.95"),
    ("currency", "EUR"),
    ("locale", "el-GR"),
    ("unit_price", "17.27"),
    ("unit", "l"),
    ("gtin", "2101234567890"),
    ("origin", "Ελλάδα"),
    ("class", "Έξτρα"),
];

const POLISH: &[(&str, &str)] = &[
    ("name", "Żółć gęślą jaźń – śliwki w czekoladzie, opakowanie rodzinne"),
    ("brand", "Łąka"),
    ("price", "1249.99"),
    ("currency", "PLN"),
    ("locale", "pl-PL"),
    ("unit_price", "24.99"),
    ("unit", "kg"),
    ("gtin", "2201234567897"),
    ("old_price", "1299.00"),
    ("promo_text", "Promocja −20 %"),
    ("origin", "Polska"),
    ("class", "II"),
    ("url", "https://example.com/p/1"),
];

const CYRILLIC: &[(&str, &str)] = &[
    ("name", "Яблука «Голден», свіжі, їжа й ґатунок"),
    ("brand", "Щедрик"),
    ("price", "49.9"),
    ("currency", "UAH"),
    ("locale", "uk-UA"),
    ("unit_price", "49.90"),
    ("unit", "кг"),
    ("gtin", "2301234567894"),
    ("origin", "Україна"),
    ("class", "I"),
    ("url", "https://example.com/p/2"),
];

fn case(name: &'static str, model: &str, panel: Panel, item: &[(&'static str, &'static str)]) -> Case {
    Case { name, model: model.to_owned(), panel, item: item.to_vec() }
}

fn without(item: &[(&'static str, &'static str)], key: &str) -> Vec<(&'static str, &'static str)> {
    item.iter().filter(|(have, _)| *have != key).copied().collect()
}

fn turned(palette: Palette, rotation: Rotation) -> Panel {
    if rotation.swaps_sides() {
        Panel { rotation, ..panel(128, 296, palette) }
    } else {
        Panel { rotation, ..panel(296, 128, palette) }
    }
}

pub(crate) fn cases() -> Vec<Case> {
    [demos(), scripts(), prices(), codes(), drawings()].into_iter().flatten().collect()
}

fn demos() -> Vec<Case> {
    use Palette::{Bw, Bwr, Bwry, Grey4, Spectra6};
    let small = |palette| panel(296, 128, palette);
    vec![
        case("standard-296-bwr", STANDARD, small(Bwr), MILK),
        case("standard-296-bw-polish", STANDARD, small(Bw), POLISH),
        case("standard-296-bwry-greek", STANDARD, small(Bwry), GREEK),
        case("standard-296-grey4-cyrillic", STANDARD, small(Grey4), CYRILLIC),
        case("standard-296-no-price", STANDARD, small(Bwr), &without(MILK, "price")),
        case("standard-296-bare", STANDARD, small(Bwr), &[("name", "Gurke")]),
        case("standard-296-turned-90", STANDARD, turned(Bwr, Rotation::Deg90), MILK),
        case("standard-296-turned-180", STANDARD, turned(Bwr, Rotation::Deg180), MILK),
        case("standard-296-turned-270", STANDARD, turned(Bwr, Rotation::Deg270), MILK),
        case("standard-400-bwry-greek", STANDARD, panel(400, 300, Bwry), GREEK),
        case("standard-400-bw", STANDARD, panel(400, 300, Bw), MILK),
        case("standard-800-spectra6-polish", STANDARD, panel(800, 480, Spectra6), POLISH),
        case("promo-296-bwr", PROMO, small(Bwr), MILK),
        case("promo-296-bw-polish", PROMO, small(Bw), POLISH),
        case("promo-296-grey4", PROMO, small(Grey4), MILK),
        case("promo-296-no-price", PROMO, small(Bwr), &without(MILK, "price")),
        case("promo-400-bwry-polish", PROMO, panel(400, 300, Bwry), POLISH),
        case("promo-800-spectra6", PROMO, panel(800, 480, Spectra6), MILK),
        case("fresh-296-bwr-cyrillic", FRESH, small(Bwr), CYRILLIC),
        case("fresh-400-bwry-greek", FRESH, panel(400, 300, Bwry), GREEK),
        case("fresh-400-no-currency", FRESH, panel(400, 300, Bwry), &without(MILK, "currency")),
        case("fresh-800-spectra6-cyrillic", FRESH, panel(800, 480, Spectra6), CYRILLIC),
    ]
}

fn text(id: &str, area: [i32; 4], size: u16, words: &str) -> Value {
    json!({ "kind": "text", "id": id, "box": area, "size": size, "text": words, "size_min": 10 })
}

fn scripts() -> Vec<Case> {
    let rows = [
        "Phở bò đặc biệt, ẤM ẪN Ễ Ộ Ử ỹ ẳ",
        "Zażółć gęślą jaźń ŁÓDŹ Ćma",
        "Ξεσκεπάζω τὴν ψυχοφθόρα ΐ Ϋ",
        "Съешь же ещё этих мягких булок ЇЄҐ",
        "Iğdır ılık İstanbul şöğüş",
        "Příliš žluťoučký kůň úpěl ďábelské",
    ];
    let sheet = |weight: &str| {
        let elements: Vec<Value> = (0..)
            .zip(rows)
            .map(|(at, row)| {
                let mut element = text(&format!("row{at}"), [4, at * 21, 288, 21], 15, row);
                element["weight"] = json!(weight);
                element
            })
            .collect();
        layout(296, 128, &elements)
    };
    let mut y = 0;
    let ladder: Vec<Value> = [10, 11, 12, 13, 14, 16, 18, 22, 28, 36]
        .into_iter()
        .map(|size| {
            let element = text(
                &format!("s{size}"),
                [2, y, 396, i32::from(size) + 5],
                size,
                &format!("{size} Hamburgefonstiv 0123456789 €"),
            );
            y += i32::from(size) + 6;
            element
        })
        .collect();
    let marks = [
        text("marks", [4, 4, 288, 56], 34, "б\u{301} Х\u{304} q\u{303} m\u{323} W\u{331}"),
        text("rare", [4, 64, 288, 56], 34, "Ỽỽ Ỿỿ ẞ ǅ Ƞ ϗ ԥ"),
    ];
    let fitting = [
        json!({ "kind": "text", "id": "a", "box": [0, 0, 96, 60], "size": 20, "size_min": 12, "lines_max": 3, "text": "Donaudampfschifffahrtsgesellschaft", "ink": "black" }),
        json!({ "kind": "text", "id": "b", "box": [100, 0, 96, 60], "size": 20, "size_min": 16, "lines_max": 2, "overflow": "ellipsis", "text": "Sehr lange Beschreibung, die niemals passt", "align": "center" }),
        json!({ "kind": "text", "id": "c", "box": [200, 0, 96, 60], "size": 16, "lines_max": 3, "text": "rechts\nunten\nzwei", "align": "right", "vertical_align": "bottom" }),
        json!({ "kind": "text", "id": "d", "box": [0, 64, 146, 60], "size": 40, "size_min": 10, "text": "schrumpft bis es passt", "weight": "bold" }),
        json!({ "kind": "rect", "id": "e0", "box": [150, 64, 146, 64], "fill": "red" }),
        json!({ "kind": "text", "id": "e", "box": [154, 66, 138, 60], "size": 22, "lines_max": 2, "text": "ÄÖÜ gjpqy\nÂ Ž {{x}}", "ink": "white", "weight": "bold", "vertical_align": "top" }),
    ];
    vec![
        case("scripts-regular", &sheet("regular"), panel(296, 128, Palette::Bw), &[]),
        case("scripts-bold", &sheet("bold"), panel(296, 128, Palette::Bw), &[]),
        case("sizes", &layout(400, 300, &ladder), panel(400, 300, Palette::Bw), &[]),
        case("marks", &layout(296, 128, &marks), panel(296, 128, Palette::Bw), &[]),
        case("fitting", &layout(296, 128, &fitting), panel(296, 128, Palette::Bwr), &[]),
    ]
}

fn prices() -> Vec<Case> {
    let rows = [
        ("1234.5", "EUR", "de-DE"),
        ("1299.90", "CHF", "de-CH"),
        ("1234567.89", "USD", "en-US"),
        ("1234567.89", "INR", "en-IN"),
        ("1980", "JPY", "ja-JP"),
        ("12345.6", "PLN", "pl-PL"),
        ("3.125", "KWD", "en-GB"),
        ("89", "CZK", "cs-CZ"),
        ("0.00", "EUR", "nl-NL"),
        ("2499", "HUF", "hu-HU"),
        ("19.95", "SEK", "sv-SE"),
        ("7.5", "GBP", "en-GB"),
    ];
    let grid: Vec<Value> = (0..)
        .zip(rows)
        .map(|(at, (value, currency, locale))| {
            json!({ "kind": "price", "id": format!("p{at}"), "box": [at % 2 * 200 + 6, at / 2 * 48 + 4, 188, 40], "value": value, "currency": currency, "locale": locale,
                "size": 40, "size_min": 14, "split": at % 4 < 2, "weight": if at % 3 == 0 { "bold" } else { "regular" }, "align": if at % 2 == 0 { "left" } else { "right" } })
        })
        .collect();
    let accents = [
        json!({ "kind": "rect", "id": "ground", "box": [0, 0, 148, 128], "fill": "red" }),
        json!({ "kind": "price", "id": "white", "box": [4, 4, 140, 60], "value": "9.99", "currency": "EUR", "locale": "de", "size": 70, "size_min": 20, "split": true, "currency_place": "under", "weight": "bold", "ink": "white", "align": "center" }),
        json!({ "kind": "price", "id": "old", "box": [4, 70, 140, 50], "value": "12.49", "currency": "EUR", "locale": "de", "size": 40, "size_min": 20, "ink": "white", "strike": true, "align": "center" }),
        json!({ "kind": "price", "id": "wide", "box": [152, 4, 140, 60], "value": "123456.78", "currency": "EUR", "locale": "de", "size": 70, "size_min": 16, "split": true, "weight": "bold", "ink": ["yellow", "red"], "align": "right" }),
        json!({ "kind": "price", "id": "per", "box": [152, 70, 140, 24], "value": "3.98", "currency": "EUR", "locale": "de", "size": 16, "before": "1 kg = ", "align": "right" }),
        json!({ "kind": "price", "id": "code", "box": [152, 98, 140, 24], "value": "3.98", "currency": "EUR", "locale": "en-IE", "show_currency": "code", "size": 18, "after": " / kg", "align": "right" }),
    ];
    vec![
        case("price-locales", &layout(400, 300, &grid), panel(400, 300, Palette::Bw), &[]),
        case("price-accents-bwr", &layout(296, 128, &accents), panel(296, 128, Palette::Bwr), &[]),
        case("price-accents-bw", &layout(296, 128, &accents), panel(296, 128, Palette::Bw), &[]),
    ]
}

fn code(id: &str, symbology: &str, area: [i32; 4], value: &str, readable: bool) -> Value {
    json!({ "kind": "barcode", "id": id, "box": area, "symbology": symbology, "value": value, "readable": readable })
}

fn codes() -> Vec<Case> {
    let bw = |width, height, elements: &[Value]| (layout(width, height, elements), panel(width, height, Palette::Bw));
    let named = |name, (model, panel): (String, Panel)| case(name, &model, panel, &[]);
    let mut wide = code("c", "ean13", [0, 0, 400, 120], "5901234123457", true);
    wide["module_max"] = json!(3);
    vec![
        named("code-ean13", bw(296, 128, &[code("c", "ean13", [20, 10, 256, 100], "4006381333931", true)])),
        named("code-ean13-plain", bw(296, 128, &[code("c", "ean13", [20, 10, 256, 60], "952123454321", false)])),
        named("code-ean13-wide", bw(400, 300, &[wide])),
        named("code-ean8", bw(200, 200, &[code("c", "ean8", [10, 20, 180, 90], "9638507", true)])),
        named("code-128", bw(296, 128, &[code("c", "code128", [0, 20, 296, 80], "LOT-42/A", true)])),
        named("code-128-digits", bw(296, 128, &[code("c", "code128", [0, 20, 296, 80], "A12345678B", true)])),
        named(
            "code-gs1",
            bw(
                200,
                200,
                &[code("c", "gs1_datamatrix", [10, 10, 180, 180], "(01)9521234543213(17)261231(10)A1", false)],
            ),
        ),
        named(
            "code-qr",
            bw(200, 200, &[code("c", "qr", [0, 0, 200, 200], "https://example.com/p/2001234567893", false)]),
        ),
    ]
}

/// A colour wheel of sorts with a transparent corner, as a PNG in base64.
fn photo(width: u32, height: u32) -> String {
    let mut rgba = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let ramp = |at: u32, of: u32| u8::try_from(at * 255 / (of - 1)).unwrap();
            let (across, down) = (ramp(x, width), ramp(y, height));
            let grey = y * 4 < height;
            let corner = x + y < 24;
            rgba.extend(if grey { [across; 3] } else { [across, down, 255 - across] });
            rgba.push(if corner { 0 } else { 255 });
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header().unwrap().write_image_data(&rgba).unwrap();
    BASE64.encode(bytes)
}

fn drawings() -> Vec<Case> {
    let shapes = [
        json!({ "kind": "rect", "id": "a", "box": [4, 4, 60, 40], "fill": "red", "stroke": "black", "stroke_width": 3, "radius": 10 }),
        json!({ "kind": "rect", "id": "b", "box": [70, 4, 60, 40], "stroke": "black" }),
        json!({ "kind": "rect", "id": "c", "box": [136, 4, 60, 40], "fill": "yellow", "radius": 20 }),
        json!({ "kind": "ellipse", "id": "d", "box": [202, 4, 90, 40], "fill": "light_grey", "stroke": "dark_grey", "stroke_width": 4 }),
        json!({ "kind": "ellipse", "id": "e", "box": [4, 50, 71, 71], "fill": "blue" }),
        json!({ "kind": "ellipse", "id": "f", "box": [80, 50, 40, 71], "stroke": "green", "stroke_width": 2 }),
        json!({ "kind": "line", "id": "g", "from": [130, 50], "to": [290, 120], "stroke": "red", "stroke_width": 3 }),
        json!({ "kind": "line", "id": "h", "from": [130, 120], "to": [290, 60] }),
        json!({ "kind": "line", "id": "i", "from": [130, 124], "to": [290, 124], "stroke_width": 4 }),
        json!({ "kind": "line", "id": "j", "from": [126, 50], "to": [126, 124], "stroke_width": 2, "stroke": "green" }),
    ];
    let shapes = layout(296, 128, &shapes);
    let photo = layout(
        200,
        200,
        &[
            json!({ "kind": "rect", "id": "ground", "box": [0, 0, 200, 200], "fill": "white" }),
            json!({ "kind": "picture", "id": "photo", "box": [20, 10, 160, 120], "png": photo(160, 120) }),
            json!({ "kind": "picture", "id": "nearest", "box": [20, 140, 80, 50], "png": photo(80, 50), "dither": "nearest" }),
            text("words", [106, 150, 90, 30], 14, "Crisp text"),
        ],
    );
    let square = |palette| panel(200, 200, palette);
    vec![
        case("shapes-spectra6", &shapes, panel(296, 128, Palette::Spectra6), &[]),
        case("shapes-grey4", &shapes, panel(296, 128, Palette::Grey4), &[]),
        case("shapes-bw", &shapes, panel(296, 128, Palette::Bw), &[]),
        case("photo-bw", &photo, square(Palette::Bw), &[]),
        case("photo-bwr", &photo, square(Palette::Bwr), &[]),
        case("photo-bwry", &photo, square(Palette::Bwry), &[]),
        case("photo-grey4", &photo, square(Palette::Grey4), &[]),
        case("photo-spectra6", &photo, square(Palette::Spectra6), &[]),
    ]
}
