//! The scenarios: one module per guarantee or flow.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this binary is tests throughout; helpers beside the tests fail as tests do"
)]

mod architecture;
mod contracts;
