//! Every symbology decoded back by an independent reader, and its geometry: a reader is laxer than the specification.

use picture::{Ink, Palette, Picture, Rotation};
use render::Panel;
use rxing::BarcodeFormat;
use serde_json::{Value, json};

use crate::support::{FRESH, PROMO, STANDARD, bounds, draw, draw_one, layout, panel};

/// Text and format of the one barcode of that format in the picture.
fn read(picture: &Picture, format: BarcodeFormat) -> String {
    let luma = picture
        .indices()
        .iter()
        .map(|index| match picture.palette().inks()[usize::from(*index)].srgb() {
            [r, g, b] => u8::try_from((u32::from(r) * 3 + u32::from(g) * 6 + u32::from(b)) / 10).unwrap(),
        })
        .collect();
    let mut hints = rxing::DecodeHints { TryHarder: Some(true), ..Default::default() };
    rxing::helpers::detect_in_luma_with_hints(luma, picture.width(), picture.height(), Some(format), &mut hints)
        .unwrap_or_else(|cause| panic!("{format} cannot be read: {cause:?}"))
        .getText()
        .to_owned()
}

fn code(symbology: &str, area: [i32; 4], value: &str) -> Value {
    json!({ "kind": "barcode", "id": "code", "box": area, "symbology": symbology, "value": value })
}

/// What a symbol must measure, in modules; quiet zones left, right, above and below.
struct Geometry {
    module: u32,
    columns: u32,
    /// Rows of a matrix, or `None` for bars, which are as high as their box.
    rows: Option<u32>,
    quiet: (u32, u32, u32),
}

/// The picture holds nothing but the symbol.
fn assert_geometry(picture: &Picture, want: &Geometry) {
    let (left, top, right, bottom) = bounds(picture, Ink::Black).unwrap();
    let module = want.module;
    assert_eq!(right - left, want.columns * module, "width is a whole number of modules");
    let rows = match want.rows {
        Some(rows) => {
            assert_eq!(bottom - top, rows * module);
            rows
        }
        None => 1,
    };
    let row_height = (bottom - top) / rows;
    for y in top..bottom {
        for x in left..right {
            let cell = (left + (x - left) / module * module, top + (y - top) / row_height * row_height);
            assert_eq!(picture.at(x, y), picture.at(cell.0, cell.1), "every module is one colour ({x}, {y})");
        }
    }
    let (before, after, vertical) = want.quiet;
    let across = left - before * module..right + after * module;
    for y in top - vertical * module..bottom + vertical * module {
        for x in across.clone().filter(|x| !(left..right).contains(x) || !(top..bottom).contains(&y)) {
            assert_eq!(picture.at(x, y), Some(0), "the quiet zone is white ({x}, {y})");
        }
    }
}

#[test]
fn ean13_reads_back_and_measures_right() {
    for (area, module) in [([35, 4, 226, 60], 2), ([20, 10, 256, 100], 2)] {
        let picture = draw_one(&code("ean13", area, "400638133393"), Palette::Bw, &[]).unwrap();
        assert_eq!(read(&picture, BarcodeFormat::EAN_13), "4006381333931");
        assert_geometry(&picture, &Geometry { module, columns: 95, rows: None, quiet: (11, 7, 0) });
        let (_, top, _, bottom) = bounds(&picture, Ink::Black).unwrap();
        assert_eq!(i32::try_from(bottom - top).unwrap(), area[3], "bars are as high as the box");
    }
}

#[test]
fn every_first_digit_of_ean13_reads_back() {
    for first in 0..=9 {
        let value = format!("{first}00123456789");
        let picture = draw_one(&code("ean13", [35, 4, 226, 60], &value), Palette::Bwr, &[]).unwrap();
        assert!(read(&picture, BarcodeFormat::EAN_13).contains(&value[1..]), "{value}");
        assert_geometry(&picture, &Geometry { module: 2, columns: 95, rows: None, quiet: (11, 7, 0) });
    }
}

#[test]
fn ean8_reads_back_and_measures_right() {
    let picture = draw_one(&code("ean8", [10, 4, 250, 60], "9638507"), Palette::Bw, &[]).unwrap();
    assert_eq!(read(&picture, BarcodeFormat::EAN_8), "96385074");
    assert_geometry(&picture, &Geometry { module: 3, columns: 67, rows: None, quiet: (7, 7, 0) });
}

#[test]
fn code128_reads_back_and_measures_right() {
    for (value, characters) in
        [("LOT-42/A", 8), ("12345678", 4), ("A12345678B", 8), ("x1234", 4), ("00123", 4), ("~ {|}", 5), ("1", 1)]
    {
        let picture =
            draw_one(&code("code128", [0, 4, 296, 60], "{item.code}"), Palette::Bw, &[("code", value)]).unwrap();
        assert_eq!(read(&picture, BarcodeFormat::CODE_128), value);
        // Start, characters, check; the stop has 13 modules.
        let columns = (characters + 2) * 11 + 13;
        let module = (296 / (columns + 20)).min(6);
        assert_geometry(&picture, &Geometry { module, columns, rows: None, quiet: (10, 10, 0) });
    }
}

#[test]
fn gs1_datamatrix_reads_back_and_measures_right() {
    let value = "(01)9521234543213(10)A1(17)261231";
    let picture = draw_one(&code("gs1_datamatrix", [10, 4, 120, 120], value), Palette::Bw, &[]).unwrap();
    // The leading FNC1 is reported as the separator, or not at all.
    assert_eq!(
        read(&picture, BarcodeFormat::DATA_MATRIX).trim_start_matches('\u{1d}'),
        "010952123454321310A1\u{1d}17261231"
    );
    assert_geometry(&picture, &Geometry { module: 6, columns: 18, rows: Some(18), quiet: (1, 1, 1) });
}

#[test]
fn qr_reads_back_and_measures_right() {
    for (correction, columns) in [("low", 25), ("medium", 29), ("quartile", 29), ("high", 33)] {
        let mut element = code("qr", [4, 4, 120, 120], "https://example.com/p/20012345");
        element["correction"] = json!(correction);
        let picture = draw_one(&element, Palette::Bw, &[]).unwrap();
        assert_eq!(read(&picture, BarcodeFormat::QR_CODE), "https://example.com/p/20012345");
        let module = 120 / (columns + 8);
        assert_geometry(&picture, &Geometry { module, columns, rows: Some(columns), quiet: (4, 4, 4) });
    }
}

#[test]
fn the_demo_models_codes_read_back_on_every_panel() {
    let item = [
        ("name", "Bio Vollmilch"),
        ("price", "1.29"),
        ("currency", "EUR"),
        ("locale", "de-DE"),
        ("gtin", "2001234567893"),
        ("url", "https://example.com/p/2001234567893"),
    ];
    let rotations = Rotation::ALL;
    for palette in Palette::ALL {
        for (width, height) in [(296, 128), (400, 300), (800, 480)] {
            for rotation in rotations {
                let (width, height) = if rotation.swaps_sides() { (height, width) } else { (width, height) };
                let panel = Panel { width, height, palette, rotation };
                let back = match rotation {
                    Rotation::Deg90 => Rotation::Deg270,
                    Rotation::Deg270 => Rotation::Deg90,
                    same => same,
                };
                for model in [STANDARD, PROMO] {
                    let picture = draw(model, panel, &item).unwrap();
                    assert_eq!((picture.width(), picture.height()), (width, height));
                    assert_eq!(read(&picture.rotated(back), BarcodeFormat::EAN_13), "2001234567893");
                }
                let fresh = draw(FRESH, panel, &item).unwrap().rotated(back);
                assert!(read(&fresh, BarcodeFormat::DATA_MATRIX).ends_with("0102001234567893"));
            }
        }
    }
}

#[test]
fn bars_are_black_on_white_over_any_ground() {
    let elements = [
        json!({ "kind": "rect", "id": "ground", "box": [0, 0, 296, 128], "fill": "red" }),
        code("ean13", [20, 10, 256, 80], "4006381333931"),
    ];
    let picture = draw(&layout(296, 128, &elements), panel(296, 128, Palette::Bwr), &[]).unwrap();
    assert_eq!(read(&picture, BarcodeFormat::EAN_13), "4006381333931");
    assert_geometry(&picture, &Geometry { module: 2, columns: 95, rows: None, quiet: (11, 7, 0) });
}

#[test]
fn what_does_not_fit_or_encode_fails_naming_the_element() {
    let cases = [
        (
            code("ean13", [0, 0, 225, 60], "4006381333931"),
            "element \"code\": the EAN-13 of \"4006381333931\" needs 226 × 12 px",
        ),
        (code("ean13", [0, 0, 226, 11], "4006381333931"), "needs 226 × 12 px"),
        (code("ean13", [0, 0, 226, 60], "4006381333930"), "its check digit is 0, but 1 is right"),
        (code("ean13", [0, 0, 226, 60], "{item.gtin}"), "item.gtin has no value"),
        (code("qr", [0, 0, 40, 40], "https://example.com"), "needs 66 × 66 px"),
        (code("gs1_datamatrix", [0, 0, 100, 100], "9521234543213"), "application identifier"),
        (code("code128", [0, 0, 296, 60], "Größe"), "U+00F6"),
    ];
    for (element, want) in cases {
        let error = draw_one(&element, Palette::Bw, &[]).unwrap_err().to_string();
        assert!(error.starts_with("element \"code\": ") && error.contains(want), "{error}");
    }
}

#[test]
fn nothing_may_lie_over_a_quiet_zone() {
    let over = |x: i32| {
        let dot = json!({ "kind": "rect", "id": "dot", "box": [x, 40, 1, 1], "fill": "black" });
        let elements = [code("ean13", [10, 10, 226, 80], "4006381333931"), dot];
        draw(&layout(296, 128, &elements), panel(296, 128, Palette::Bw), &[])
    };
    assert!(over(9).is_ok() && over(236).is_ok());
    for x in [10, 31, 235] {
        assert_eq!(over(x).unwrap_err().to_string(), "element \"code\": a later element draws over it");
    }
}
