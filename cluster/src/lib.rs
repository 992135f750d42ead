//! A private PostgreSQL for tests: nobody has to install, start or clean up anything but Debian's package `postgresql`.
//!
//! In reading order: [`Database`] (what a test asks for), [`Cluster`] (the server behind it), `shared` (one server for all
//! tests of a build), `watch` (who stops it).
//!
//! Invariants
//! - A server listens on a Unix socket in a folder of its own, on no port, and runs as an unprivileged user.
//! - It goes when nobody uses it any more, also when its users were killed: a small process beside it holds no state but
//!   waits for a file lock that the users hold and the operating system takes back.
//! - fsync stays on, so that the product's self-check passes; in memory (`/dev/shm`) that costs nothing.
//!
//! Deliberately not here: schemas and statements (`db`, `cqs`, `dtoflow`). Only tests depend on this room.

mod server;
mod shared;
mod watch;

pub use server::Cluster;
pub use shared::Database;
