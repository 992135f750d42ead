//! The scenarios: one module per guarantee or flow.
//!
//! In reading order: [`architecture`] and [`contracts`] are about the sources; [`first_hour`] is what a person meets;
//! [`docs`] holds the documents to the product; [`model_refresh`] is the main job and [`two_stage`] its tenant-scoped
//! half, in one process and in three; [`cli`], [`cli_wait`] and [`cli_control`] are the operator's commands; [`many`] and
//! [`kill_many`] are many processes over one PostgreSQL; the others each hold one guarantee.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this binary is tests throughout; helpers beside the tests fail as tests do"
)]

mod approval;
mod architecture;
mod audit_verify;
mod bad_input;
mod blocked;
mod citus;
mod cli;
mod cli_control;
mod cli_wait;
mod concurrent;
mod configuration;
mod contracts;
mod control;
mod corpus;
// One file for both: the allocator that counts is each test program's own.
#[path = "../../../gateway/tests/api/costs.rs"]
mod costs;
mod counts;
mod docs;
mod first_hour;
mod follow;
mod fuzz;
mod gates;
mod gateway_restart;
mod history;
mod hold;
mod identical;
mod identity_provider;
mod kill;
mod kill_many;
mod kill_two_stage;
mod label_failures;
mod live_changes;
mod many;
mod model_refresh;
mod plans;
mod preview;
mod random_history;
mod retention;
mod retries;
mod rpc_policy;
mod secrets;
mod simulated_hardware;
mod statements;
mod status;
mod supply_chain;
mod swagger;
mod touch;
mod trace;
mod two_stage;
mod webhooks;
mod wire;
