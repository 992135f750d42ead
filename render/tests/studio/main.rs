//! The Studio engine through its public surface.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod designs;
mod golden;
mod golden_cases;
mod hostile;
mod schema;
mod support;
