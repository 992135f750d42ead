//! The real services over the platform's memory twins, in one process, with a clock that stands still.

mod away;
mod convergence;
mod delivery;
mod exporter;
mod flow;
mod hold;
mod hostile;
mod moved;
mod radio;
mod reexport;
mod resets;
mod studio;
mod triggers;
mod world;
