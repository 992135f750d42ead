//! The layout engine through its public surface.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod barcodes;
mod golden;
mod golden_cases;
#[path = "../goldens/mod.rs"]
mod goldens;
mod hostile;
mod models;
mod prices;
mod schema;
mod support;
mod texts;
