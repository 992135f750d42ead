use super::*;
use crate::error::Cause;

/// What issue and documentation promise the fonts cover.
const COVERED: [std::ops::RangeInclusive<u32>; 4] = [0x20..=0x24F, 0x1E00..=0x1EFF, 0x370..=0x3FF, 0x400..=0x525];

/// Code points of those ranges that Unicode (up to 16.0) assigns to no graphic character: controls U+007F–009F, and
/// the holes of the Greek block.
fn unassigned(code: u32) -> bool {
    matches!(code, 0x7F..=0x9F | 0x378 | 0x379 | 0x380..=0x383 | 0x38B | 0x38D | 0x3A2)
}

#[test]
fn the_fonts_cover_what_is_promised() {
    let mut missing = Vec::new();
    with_fonts(|fonts| {
        for weight in [Weight::Regular, Weight::Bold] {
            for code in COVERED.into_iter().flatten().filter(|code| !unassigned(*code)) {
                let ch = char::from_u32(code).unwrap();
                match fonts.glyph(weight, 20, ch) {
                    Ok(glyph) => {
                        let blank = matches!(ch, ' ' | '\u{A0}' | '\u{AD}');
                        assert!(blank || glyph.ink.is_some(), "U+{code:04X} shows nothing");
                    }
                    Err(_) => missing.push(format!("{weight:?} U+{code:04X}")),
                }
            }
        }
    });
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(COVERED.into_iter().flatten().filter(|code| !unassigned(*code)).count(), 1_212);
}

#[test]
fn a_missing_glyph_names_the_character() {
    let error = with_fonts(|fonts| shape(fonts, Run { weight: Weight::Bold, size: 12 }, "日")).unwrap_err();
    assert_eq!(error.to_string(), "no embedded font has the character 日 (U+65E5)");
}

#[test]
fn texts_are_normalised_and_hostile_characters_refused() {
    assert_eq!(clean("Cafe\u{301}", false).unwrap(), "Café");
    assert_eq!(clean("soft\u{AD}hyphen\u{200B}", false).unwrap(), "softhyphen");
    for bad in ["a\u{202E}b", "tab\t", "line\n", "nul\0", "\u{9f}", "שלום", "\u{2066}", "\u{2028}"] {
        assert!(matches!(clean(bad, false), Err(Cause::Forbidden { .. })), "{bad:?}");
    }
    assert_eq!(clean("two\nlines", true).unwrap(), "two\nlines");
    assert!(matches!(clean(&"x".repeat(1_001), false), Err(Cause::TooLong { .. })));
}

#[test]
fn a_mark_without_precomposed_form_stands_clear_above_its_base() {
    let run = Run { weight: Weight::Regular, size: 40 };
    with_fonts(|fonts| {
        let plain = shape(fonts, run, "Б").unwrap();
        let marked = shape(fonts, run, "Б\u{301}").unwrap();
        assert_eq!(plain.advance, marked.advance);
        assert!(marked.ink.unwrap().top < plain.ink.unwrap().top - 3);
        assert_eq!(marked.ink.unwrap().bottom, plain.ink.unwrap().bottom);
    });
}

fn request(text: &str, width: i32, height: i32) -> Request<'_> {
    Request {
        text,
        weight: Weight::Regular,
        size: 24,
        size_min: 12,
        line_height: 115,
        lines_max: 2,
        ellipsis: false,
        width,
        height,
    }
}

#[test]
fn fitting_wraps_then_shrinks_then_breaks_then_refuses() {
    with_fonts(|fonts| {
        let full = fit(fonts, &request("Bio Vollmilch", 300, 60)).unwrap().unwrap();
        assert_eq!((full.lines.len(), full.size), (1, 24));
        let wrapped = fit(fonts, &request("Bio Vollmilch", 110, 60)).unwrap().unwrap();
        assert_eq!((wrapped.lines.len(), wrapped.size), (2, 24));
        let shrunk = fit(fonts, &request("Bio Vollmilch", 80, 60)).unwrap().unwrap();
        assert!(shrunk.lines.len() == 2 && (12..24).contains(&shrunk.size), "{}", shrunk.size);
        let broken = fit(fonts, &request("Vollmilchschokolade", 80, 60)).unwrap().unwrap();
        assert_eq!((broken.lines.len(), broken.size), (2, 12));
        assert!(fit(fonts, &request("Vollmilchschokolade", 30, 60)).unwrap().is_none());
        let cut = Request { ellipsis: true, ..request("Vollmilchschokolade", 30, 60) };
        assert_eq!(fit(fonts, &cut).unwrap().unwrap().lines.len(), 2);
    });
}

#[test]
fn everything_that_fits_lies_in_its_box() {
    with_fonts(|fonts| {
        for width in (20..200).step_by(7) {
            let request = Request { ellipsis: true, ..request("Ấm Größe Ψωμί Щука jgqy", width, 40) };
            if let Some(fit) = fit(fonts, &request).unwrap() {
                assert!(fit.ink_bottom - fit.ink_top <= 40);
                assert!(fit.lines.iter().filter_map(|line| line.ink).all(|ink| ink.width() <= width), "{width}");
            }
        }
    });
}
