//! The golden pictures of Studio designs.

use std::collections::BTreeSet;

use picture::Picture;
use render::StudioDesign;

use crate::golden_cases::{Case, cases};
use crate::goldens::Goldens;
use crate::support::render;

const GOLDENS: Goldens<Case> = Goldens { folder: "tests/studio/golden", cases, name: |case| case.name, draw: picture };

fn picture(case: &Case) -> Picture {
    let design = StudioDesign::parse(&case.svg, &case.mappings).unwrap_or_else(|why| panic!("{}: {why}", case.name));
    render(&design, case.panel, &case.item).unwrap_or_else(|why| panic!("{}: {why}", case.name))
}

#[test]
fn every_picture_equals_its_golden_one() {
    GOLDENS.assert_equal();
}

#[test]
fn the_build_names_these_pictures() {
    GOLDENS.assert_named_by_build();
}

#[test]
fn there_are_enough_and_none_left_over() {
    let designs: BTreeSet<_> = cases().into_iter().map(|case| (case.svg, case.mappings)).collect();
    assert!(designs.len() >= 15, "{}", designs.len());
    GOLDENS.assert_none_left_over();
}

#[test]
fn the_same_input_gives_the_same_pixels_whatever_was_drawn_before() {
    GOLDENS.assert_same_whatever_was_drawn_before();
}
