//! The operator's side of `reshelf`: a client of the gateway's REST API and nothing else.
//!
//! In reading order: [`Exit`] and [`CliError`] are how a command ends, [`settings`] says which gateway with which token,
//! [`token`], `client` and [`Session`] speak to it, [`operation`], [`blocked`], [`follow`], [`events`] and [`progress`] follow what was
//! started, [`pending`] and [`stores`] carry triggers, [`output`] prints. The commands themselves are in `commands`.
//!
//! Invariants
//! - Whatever this does, `curl` could do: there is no second way to the platform.
//! - A token is never printed, is no flag, and goes only to the address it was configured with.
//! - Leaving (Ctrl-C, a time-out, a lost terminal) never changes an operation.
//! - What may have been accepted is repeated only under the same tracking id.
//! - Standard output is the answer; everything for people beside it goes to standard error.
//!
//! Deliberately not here: rules of triggers and operations; the gateway refuses, this program shows why.

mod client;
mod exit;
mod failure;
mod session;

pub mod blocked;
pub mod duration;
pub mod events;
pub mod follow;
pub mod operation;
pub mod output;
pub mod pending;
pub mod progress;
pub mod settings;
pub mod stores;
pub mod token;

pub use client::{Answer, Client, Patience};
pub use exit::Exit;
pub use failure::CliError;
pub use output::{Format, Output};
pub use progress::Progress;
pub use session::Session;
pub use settings::{ConnectionArgs, Settings};
pub use token::TokenSource;
