//! Golden pictures: exact pixels. After a wanted change run with `GOLDEN=write`, look at every picture that changed,
//! and raise `render::BUILD`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{read, read_dir, read_to_string, write};
use std::path::{Path, PathBuf};

use picture::Picture;
use render::StudioDesign;
use sha2::{Digest as _, Sha256};

use crate::golden_cases::{Case, cases};
use crate::support::render;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/studio/golden")
}

fn writing() -> bool {
    std::env::var("GOLDEN").is_ok_and(|value| value == "write")
}

fn picture(case: &Case) -> Picture {
    let design = StudioDesign::parse(&case.svg, &case.mappings).unwrap_or_else(|why| panic!("{}: {why}", case.name));
    render(&design, case.panel, &case.item).unwrap_or_else(|why| panic!("{}: {why}", case.name))
}

/// The indices a golden PNG holds.
fn indices(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.color_type, frame.bit_depth), (png::ColorType::Indexed, png::BitDepth::Eight));
    (frame.width, frame.height, pixels)
}

#[test]
fn every_picture_equals_its_golden_one() {
    let mut wrong = Vec::new();
    for case in cases() {
        let drawn = picture(&case);
        let file = folder().join(format!("{}.png", case.name));
        if writing() {
            write(&file, drawn.to_png().unwrap()).unwrap();
        }
        let (width, height, pixels) = indices(&read(&file).unwrap());
        if (width, height, pixels.as_slice()) != (drawn.width(), drawn.height(), drawn.indices()) {
            wrong.push(case.name);
        }
    }
    assert!(wrong.is_empty(), "these differ from tests/studio/golden: {wrong:?}");
}

#[test]
fn the_build_names_these_pictures() {
    let mut all = Sha256::new();
    for case in cases() {
        all.update(case.name);
        all.update(picture(&case).digest().as_bytes());
    }
    let hash = all.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    let file = folder().join("BUILD");
    let now = format!("{} {hash}\n", render::BUILD);
    if writing() {
        write(&file, &now).unwrap();
    }
    assert_eq!(read_to_string(&file).unwrap(), now, "pictures changed: raise render::BUILD and write the goldens anew");
}

#[test]
fn there_are_enough_and_none_left_over() {
    let designs: BTreeSet<_> = cases().into_iter().map(|case| (case.svg, case.mappings)).collect();
    assert!(designs.len() >= 15, "{}", designs.len());
    let names: BTreeSet<String> = cases().iter().map(|case| format!("{}.png", case.name)).collect();
    assert_eq!(names.len(), cases().len());
    let files: BTreeSet<String> = read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "BUILD")
        .collect();
    assert_eq!(names, files);
}

#[test]
fn the_same_input_gives_the_same_pixels_whatever_was_drawn_before() {
    let cases = cases();
    let first: Vec<_> = cases.iter().map(|case| picture(case).digest()).collect();
    let again = || cases.iter().rev().map(|case| picture(case).digest()).collect::<Vec<_>>();
    // A fresh thread has a cold glyph cache.
    let cold = std::thread::scope(|scope| scope.spawn(again).join().unwrap());
    assert!(first.iter().eq(cold.iter().rev()));
}
