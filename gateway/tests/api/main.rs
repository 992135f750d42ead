//! The gateway's REST API over faithful fakes of its peers: they implement the generated server traits, stand behind the
//! same identity layer as the real ones, and are reached in process.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the tests' own helpers: a failure is the test's")]

mod bad_input;
mod corpus;
mod costs;
mod edge;
mod fakes;
mod floods;
mod harness;
mod matrix;
mod oidc;
mod outages;
mod plans;
mod provider;
mod reads;
mod status;
mod tokens;
mod triggers;
