//! The program `reshelf` and the composition of its processes, so that tests start the very same topologies.
//!
//! In reading order: [`platform`] puts DTOflow and CQS together over one database, [`dev`] puts everything into one
//! process, [`demo`] is the tenant it loads, [`upkeep`] is what a platform does beside, [`records`] writes records,
//! [`data_dir`] says what lies where, [`cli`] speaks to a gateway as an operator, [`commands`] are the program's,
//! [`mod@bench`] measures.
//!
//! Invariants
//! - Only this room and the other programs' `main.rs` name concrete backends, transports and files.
//! - One process is a topology: the same servers, clients, credentials and checks as over the network.
//!
//! Deliberately not here: any rule of queues, records, rendering or the REST API.

pub mod bench;
pub mod cli;
pub mod commands;
pub mod data_dir;
pub mod demo;
pub mod dev;
pub mod platform;
pub mod records;
mod room;
pub mod upkeep;
