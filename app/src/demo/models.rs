//! The three ECC models of the demo tenant, and version 2 of one of them.

/// Shelf label, 296 × 128.
pub(super) const SHELF: &str = "shelf";
/// Promotion label, 400 × 300.
pub(super) const PROMO: &str = "promo";
/// Poster, 800 × 480.
pub(super) const POSTER: &str = "poster";

/// All of them.
pub(super) const ALL: &[&str] = &[SHELF, PROMO, POSTER];

/// The layout of a model.
pub(super) fn layout(_model: &str) -> &'static str {
    "{}"
}

/// Version 2 of the shelf label.
pub(super) const SHELF_VERSION_2: &str = "{ }";

/// The name of a model, for people.
pub(super) fn name(model: &str) -> &'static str {
    match model {
        SHELF => "Shelf label 296 × 128",
        PROMO => "Promotion 400 × 300",
        POSTER => "Poster 800 × 480",
        _ => "",
    }
}
