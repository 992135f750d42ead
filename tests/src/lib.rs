//! End-to-end tests: the harness. The scenarios are one integration binary, `tests/it/`.
//!
//! Invariants
//! - What checks the product ([`source`] and later the checkers) shares no code with it.
//!
//! Deliberately not here: tests of one room through its own surface; they lie in that room.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "this room is tests throughout; a broken premise ends the test that relied on it"
)]

pub mod browser;
mod checker;
pub mod data;
pub mod grpc;
pub mod pictures;
pub mod process;
pub mod rest;
pub mod source;
pub mod tables;
pub mod topology;
pub mod wait;
