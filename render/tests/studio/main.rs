//! The Studio engine through its public surface.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod golden;
mod golden_cases;
mod support;
