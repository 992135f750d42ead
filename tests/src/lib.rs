//! End-to-end tests: the harness. The scenarios are one integration binary, `tests/it/`.
//!
//! In reading order: [`topology`] starts the product in its three shapes; [`data`] writes a small retailer; [`rest`],
//! [`grpc`], [`browser`] and [`cli`] are the ways in; [`tables`] and the checker behind it, and [`pictures`] and [`versions`], say whether what came of
//! it is right; [`process`] and [`wait`] carry them; [`source`] reads the workspace's own sources; [`fuzz`] is what hostile bytes are tried on.
//!
//! Invariants
//! - What judges the product shares no code with it: the checker knows the table definitions only, and the pictures'
//!   comparison only the renderer, which has its own golden pictures.
//! - Tests wait for conditions, each with a limit, in one place ([`wait`]).
//! - Each test has a product of its own, with a data directory and ports of its own; none depends on another.
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
pub mod cli;
mod copy;
pub mod data;
pub mod fuzz;
pub mod grpc;
pub mod pictures;
pub mod process;
pub mod rest;
pub mod source;
pub mod tables;
pub mod topology;
pub mod versions;
pub mod wait;
