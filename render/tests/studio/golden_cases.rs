//! What the golden pictures show: the demo designs on their panels, and one design for each thing a design can do.

use picture::{Palette, Rotation};
use render::Panel;
use serde_json::{Value, json};

use crate::support::{BIO_296, BIO_400, POSTER_296, POSTER_400, mappings, panel, svg};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) svg: String,
    pub(crate) mappings: String,
    pub(crate) panel: Panel,
    pub(crate) item: Vec<(&'static str, &'static str)>,
}

pub(crate) const MILK: &[(&str, &str)] = &[
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
    ("url", "https://example.com/p/1"),
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

const BARE: &[(&str, &str)] = &[("name", "Gurke")];

fn demo(name: &'static str, [svg, mappings]: [&str; 2], panel: Panel, item: &[(&'static str, &'static str)]) -> Case {
    Case { name, svg: svg.to_owned(), mappings: mappings.to_owned(), panel, item: item.to_vec() }
}

fn small(
    name: &'static str,
    body: &str,
    elements: &Value,
    palette: Palette,
    item: &[(&'static str, &'static str)],
) -> Case {
    let (svg, mappings) = (svg(296, 128, body), mappings(elements));
    Case { name, svg, mappings, panel: panel(296, 128, palette), item: item.to_vec() }
}

pub(crate) fn cases() -> Vec<Case> {
    [demos(), texts(), values(), drawings()].into_iter().flatten().collect()
}

fn demos() -> Vec<Case> {
    use Palette::{Bw, Bwr, Bwry, Grey4, Spectra6};
    let turned = |rotation| Panel { rotation, ..panel(128, 296, Bwr) };
    vec![
        demo("poster-400-bwry", POSTER_400, panel(400, 300, Bwry), MILK),
        demo("poster-400-bw", POSTER_400, panel(400, 300, Bw), MILK),
        demo("poster-400-grey4", POSTER_400, panel(400, 300, Grey4), MILK),
        demo("poster-400-polish", POSTER_400, panel(400, 300, Bwry), POLISH),
        demo("poster-400-bare", POSTER_400, panel(400, 300, Bwry), BARE),
        demo("poster-296-bwr", POSTER_296, panel(296, 128, Bwr), MILK),
        demo("poster-296-polish", POSTER_296, panel(296, 128, Bwry), POLISH),
        demo("poster-296-turned-90", POSTER_296, turned(Rotation::Deg90), MILK),
        demo("poster-296-turned-270", POSTER_296, turned(Rotation::Deg270), MILK),
        demo("bio-296-bwr", BIO_296, panel(296, 128, Bwr), MILK),
        demo("bio-296-grey4", BIO_296, panel(296, 128, Grey4), MILK),
        demo("bio-296-bare", BIO_296, panel(296, 128, Bwr), BARE),
        demo("bio-400-spectra6", BIO_400, panel(400, 300, Spectra6), MILK),
        demo("bio-400-bwry", BIO_400, panel(400, 300, Bwry), POLISH),
    ]
}

fn texts() -> Vec<Case> {
    let anchors = r##"
        <line x1="148.5" y1="0" x2="148.5" y2="128" stroke="#aaa"/>
        <text id="a" x="148" y="24" font-size="18">start</text>
        <text id="b" x="148" y="48" font-size="18" text-anchor="middle" fill="red">middle</text>
        <text id="c" x="148" y="72" font-size="18" text-anchor="end" font-weight="bold">end</text>
        <text x="148" y="96" font-size="18" text-anchor="middle">static <tspan font-weight="bold" fill="red">bold red</tspan> tail</text>
        <g transform="translate(20 8) scale(2)"><text id="d" x="0" y="54" font-size="10">scaled</text></g>
        <text font-size="14"><tspan x="180" y="110">two lines</tspan><tspan x="180" y="124">of tspans</tspan></text>"##;
    let plain = json!({
        "a": { "format": "text", "value": "{item.name}" }, "b": { "format": "text", "value": "{item.name}" },
        "c": { "format": "text", "value": "{item.name}" }, "d": { "format": "text", "value": "{item.name}" } });
    let boxes = r##"
        <rect id="r1" x="2.5" y="2.5" width="140" height="60" fill="none" stroke="#555"/>
        <rect id="r2" x="152.5" y="2.5" width="140" height="60" fill="none" stroke="#555"/>
        <rect id="r3" x="2.5" y="66.5" width="140" height="58" fill="#ff0" stroke="#555"/>
        <rect id="r4" x="152.5" y="66.5" width="140" height="58" fill="#c00"/>
        <text id="a" font-size="20">x</text>
        <text id="b" font-size="20" text-anchor="middle" font-weight="bold">x</text>
        <text id="c" font-size="40" text-anchor="end">x</text>
        <text id="d" font-size="14" fill="white">x</text>"##;
    let boxed = json!({
        "a": { "format": "text", "value": "{item.name}", "box": "r1", "lines_max": 3, "size_min": 12 },
        "b": { "format": "text", "value": "{item.name}", "box": "r2", "lines_max": 2, "size_min": 12, "vertical_align": "top", "overflow": "ellipsis" },
        "c": { "format": "text", "value": "{item.name}", "box": "r3", "size_min": 10, "vertical_align": "bottom", "overflow": "ellipsis" },
        "d": { "format": "text", "value": "{item.name}", "box": "r4", "lines_max": 4, "line_height": 100 } });
    let turned = r##"
        <rect width="296" height="128" fill="#ffc"/>
        <text transform="translate(70 70) rotate(-30)" text-anchor="middle" font-size="26" font-weight="bold" fill="#c00">Angebot</text>
        <text transform="translate(160 120) rotate(-90)" font-size="16">senkrecht ÄÖÜß</text>
        <text x="176" y="50" font-size="32" font-weight="bold" fill="white" stroke="black" stroke-width="2">Kontur</text>
        <text transform="translate(180 100) skewX(-15)" font-size="24">schräg</text>"##;
    vec![
        small("text-anchors", anchors, &plain, Palette::Bwr, &[("name", "Größe Ấ")]),
        small(
            "text-boxes",
            boxes,
            &boxed,
            Palette::Bwry,
            &[("name", "Ein etwas längerer Name, der umbricht und schrumpft")],
        ),
        small("text-turned", turned, &json!({}), Palette::Bwr, &[]),
    ]
}

fn values() -> Vec<Case> {
    let parts = r#"
        <text id="e" x="100" y="60" font-size="70" font-weight="bold" text-anchor="end">1</text>
        <text id="c" x="104" y="34" font-size="34" font-weight="bold">29</text>
        <text id="s" x="104" y="60" font-size="22">€</text>
        <rect y="70" width="296" height="58" fill="red"/>
        <text id="w" x="288" y="116" font-size="40" font-weight="bold" text-anchor="end" fill="white">1,29 €</text>
        <text id="o" x="8" y="112" font-size="28" fill="white" text-decoration="line-through">1,79</text>"#;
    let priced = json!({
        "e": { "format": "price", "part": "integer", "value": "{item.price}", "size_min": 20 },
        "c": { "format": "price", "part": "fraction", "value": "{item.price}" },
        "s": { "format": "price", "part": "currency", "value": "{item.price}" },
        "w": { "format": "price", "value": "{item.price}" },
        "o": { "format": "price", "value": "{item.old_price}" } });
    let dates = r#"
        <text id="a" x="8" y="24" font-size="18">d</text><text id="b" x="8" y="54" font-size="18">d</text>
        <text id="c" x="8" y="84" font-size="18">d</text><text id="d" x="8" y="114" font-size="18" font-weight="bold">d</text>"#;
    let dated = json!({
        "a": { "format": "date", "value": "{item.until}" },
        "b": { "format": "date", "value": "{item.until}", "locale": "en-US" },
        "c": { "format": "date", "value": "{item.until}", "pattern": "d.M.yy" },
        "d": { "format": "date", "value": "{item.until}", "pattern": "yyyy/MM/dd", "box": [100, 90, 190, 34] } });
    let codes = r#"
        <rect id="ean" x="0" y="0" width="226" height="56" fill="none"/>
        <rect id="qr" x="230" y="0" width="66" height="66" fill="none"/>
        <rect id="c128" x="0" y="62" width="226" height="62" fill="none"/>
        <rect id="gs1" x="236" y="68" width="58" height="58" fill="none"/>"#;
    let coded = json!({
        "ean": { "format": "barcode", "symbology": "ean13", "value": "{item.gtin}", "readable": true },
        "qr": { "format": "barcode", "symbology": "qr", "value": "{item.url}" },
        "c128": { "format": "barcode", "symbology": "code128", "value": "L-42", "readable": true },
        "gs1": { "format": "barcode", "symbology": "gs1_datamatrix", "value": "(01)9521234543213(10)A1" } });
    let eight = json!({ "e": { "format": "barcode", "symbology": "ean8", "value": "9638507", "readable": true, "align": "left" } });
    let shown = r#"
        <g id="yes"><circle cx="60" cy="64" r="40" fill="red"/><text x="60" y="70" text-anchor="middle" font-size="18" fill="white">yes</text></g>
        <g id="no"><circle cx="150" cy="64" r="40" fill="red"/></g>
        <rect x="40" y="50" width="216" height="28" fill="yellow"/>
        <text id="over" x="148" y="71" text-anchor="middle" font-size="20">between</text>
        <g id="nested"><g id="inner"><circle cx="236" cy="64" r="22" fill="black"/></g></g>
        <text id="maybe" x="148" y="120" text-anchor="middle" font-size="14">static, when absent</text>"#;
    let conditions = json!({
        "yes": { "format": "visibility", "when": [{ "key": "item.price", "is": "less", "value": "{item.old_price}" }] },
        "no": { "format": "visibility", "when": [{ "key": "item.price", "is": "greater", "value": "{item.old_price}" }] },
        "over": { "format": "text", "value": "{item.name}" },
        "nested": { "format": "visibility", "when": [{ "key": "item.name", "is": "present" }] },
        "inner": { "format": "visibility", "when": [{ "key": "item.name", "is": "equals", "value": "between" }] },
        "maybe": { "format": "visibility", "when": [{ "key": "item.none", "is": "absent" }] } });
    let milk = |pairs: &[(&'static str, &'static str)]| [MILK, pairs].concat();
    vec![
        small("price-parts", parts, &priced, Palette::Bwr, MILK),
        small(
            "price-parts-yen",
            parts,
            &priced,
            Palette::Bw,
            &[("price", "1980"), ("old_price", "2480"), ("currency", "JPY"), ("locale", "ja")],
        ),
        small("dates", dates, &dated, Palette::Bw, &milk(&[("until", "2026-03-05")])),
        small("codes", codes, &coded, Palette::Bwr, MILK),
        small(
            "code-ean8",
            r#"<rect id="e" x="10" y="10" width="200" height="100" fill="none"/>"#,
            &eight,
            Palette::Bwr,
            &[],
        ),
        small(
            "visibility",
            shown,
            &conditions,
            Palette::Bwry,
            &[("name", "between"), ("price", "1"), ("old_price", "2")],
        ),
    ]
}

/// A colour ramp with a transparent corner, as a PNG in base64.
pub(crate) fn photo(width: u32, height: u32) -> String {
    use base64::Engine as _;
    let mut rgba = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let ramp = |at: u32, of: u32| u8::try_from(at * 255 / (of - 1)).unwrap();
            let (across, down) = (ramp(x, width), ramp(y, height));
            rgba.extend(if y * 4 < height { [across; 3] } else { [across, down, 255 - across] });
            rgba.push(if x + y < 24 { 0 } else { 255 });
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header().unwrap().write_image_data(&rgba).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn drawings() -> Vec<Case> {
    let shapes = r##"
        <rect x="4" y="4" width="60" height="40" rx="10" fill="red" stroke="black" stroke-width="3"/>
        <circle cx="100" cy="24" r="20" fill="none" stroke="#0000cc" stroke-width="4"/>
        <ellipse cx="170" cy="24" rx="40" ry="18" fill="#ffcc00"/>
        <polygon points="230,44 250,4 270,44" fill="#006633" stroke="black"/>
        <polyline points="280,4 290,14 280,24 290,34 280,44" fill="none" stroke="black" stroke-width="2"/>
        <path d="M10 60C60 120 110 0 150 80S200 120 220 60" fill="none" stroke="red" stroke-width="3"/>
        <path d="M230 60h50v50h-50zM240 70h30v30h-30z" fill="black" fill-rule="evenodd"/>
        <line x1="4" y1="118.5" x2="220" y2="118.5" stroke="black" stroke-dasharray="6 3 1 3"/>
        <path d="M20 110A30 14 20 0 1 80 104" fill="none" stroke="black" stroke-width="0.4"/>
        <rect x="100" y="96" width="30" height="16" style="fill:#aaa;stroke:#555;stroke-width:2"/>
        <g transform="translate(190 92) rotate(15)" fill="black"><rect width="18" height="18"/></g>"##;
    let used = r##"
        <defs><g id="star"><polygon points="0,-12 3,-4 12,-4 5,2 8,11 0,5 -8,11 -5,2 -12,-4 -3,-4"/></g></defs>
        <g fill="red"><use href="#star" x="30" y="30"/><use xlink:href="#star" transform="translate(80 30) scale(2)"/></g>
        <use href="#star" transform="translate(160 60) rotate(20) scale(3.5 4)" fill="none" stroke="black"/>
        <use href="#star" transform="translate(250 64) scale(4)" fill="#ffcc00"/>"##;
    let photo_at = |x: u32, y: u32| {
        format!(
            "<image x=\"{x}\" y=\"{y}\" width=\"120\" height=\"90\" href=\"data:image/png;base64,{}\"/>",
            photo(120, 90)
        )
    };
    let pictures = format!(
        "<rect width=\"296\" height=\"128\" fill=\"white\"/>{}<circle cx=\"70\" cy=\"60\" r=\"20\" fill=\"white\"/><rect id=\"p\" x=\"150\" y=\"8\" width=\"130\" height=\"100\"/><text x=\"10\" y=\"122\" font-size=\"14\">Crisp over a photo</text>",
        photo_at(10, 10)
    );
    let pictured = json!({ "p": { "format": "picture", "value": "{item.photo}", "dither": "nearest" } });
    let logo: &'static str = Box::leak(photo(100, 80).into_boxed_str());
    let layered = r#"
        <rect width="296" height="128" fill="red"/>
        <text id="low" x="10" y="70" font-size="60" font-weight="bold">x</text>
        <circle cx="120" cy="60" r="40" fill="yellow"/>
        <text id="high" x="80" y="90" font-size="40" font-weight="bold" fill="black">x</text>
        <rect x="200" y="20" width="80" height="80" fill="white"/>"#;
    let layers =
        json!({ "low": { "format": "text", "value": "UNDER" }, "high": { "format": "text", "value": "over" } });
    vec![
        small("shapes-spectra6", shapes, &json!({}), Palette::Spectra6, &[]),
        small("shapes-bwr", shapes, &json!({}), Palette::Bwr, &[]),
        small("shapes-grey4", shapes, &json!({}), Palette::Grey4, &[]),
        small("use", used, &json!({}), Palette::Bwry, &[]),
        small("pictures-bwry", &pictures, &pictured, Palette::Bwry, &[("photo", logo)]),
        small("pictures-bw", &pictures, &pictured, Palette::Bw, &[("photo", logo)]),
        small("layers", layered, &layers, Palette::Bwry, &[]),
    ]
}
