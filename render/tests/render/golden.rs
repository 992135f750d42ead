//! The golden pictures of ECC models.

use picture::Picture;

use crate::golden_cases::{Case, cases};
use crate::goldens::Goldens;
use crate::support::draw;

const GOLDENS: Goldens<Case> = Goldens { folder: "tests/golden", cases, name: |case| case.name, draw: picture };

fn picture(case: &Case) -> Picture {
    draw(&case.model, case.panel, &case.item).unwrap_or_else(|cause| panic!("{}: {cause}", case.name))
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
    assert!(cases().len() >= 30);
    GOLDENS.assert_none_left_over();
}

#[test]
fn the_same_input_gives_the_same_pixels_whatever_was_drawn_before() {
    GOLDENS.assert_same_whatever_was_drawn_before();
}
