//! The worker: the services that turn changed records into pictures on labels, and the runtime they share.
//!
//! Reading order: [`Worker`] (composition), `runtime` (dequeue, split, handle, complete), `services` (a folder each),
//! `triggers` (the named trigger RPCs), [`config`] (the program's file).
//!
//! Invariants
//! - One code path: nothing knows whether a notification came from a write, a split or a trigger.
//! - Every write names its lease and the versions of all inputs, so no stale worker and no stale picture wins.
//! - CPU work runs on rayon's one pool, blocking I/O on tokio's blocking threads, nothing of either on async threads.
//!
//! Deliberately not here: storage and queues (`dtoflow`, `cqs`; reached through `proto` clients only), layout and pixels
//! (`render`, `picture`), operators and their tokens (`gateway`).

pub mod config;

mod runtime;
mod services;
mod triggers;
mod worker;

pub use runtime::PipelineSettings;
pub use services::hardware_exporter::drivers::webhook::{CallbackSettings, WebhookSecret, WebhookSettings};
pub use services::rendering::engine::RenderEngine;
pub use triggers::{add_trigger_routes, trigger_routes};
pub use worker::{ExporterSettings, Worker, WorkerError, WorkerHandle, WorkerParts};

#[cfg(test)]
mod tests;
