//! The Studio engine through its public surface.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod designs;
mod golden;
mod golden_cases;
#[path = "../goldens/mod.rs"]
mod goldens;
mod hostile;
mod schema;
mod support;
