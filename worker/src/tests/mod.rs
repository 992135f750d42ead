//! The real services over the platform's memory twins, in one process, with a clock that stands still.

mod away;
mod exporter;
mod flow;
mod hostile;
mod studio;
mod triggers;
mod world;
