//! One runtime for every service: dequeue a batch, split or handle it in bulk, complete it.
//!
//! Reading order: [`service`] (what a service says), [`platform`] (the calls), [`pipeline`] (the loop), [`hold`] and [`hand`]
//! (batch upon batch under one lease), [`split`], [`handle`], [`heartbeat`], [`read`] and [`write`](mod@write) (bulk records), [`backoff`], [`call`] (errors).
//!
//! Invariants
//! - Every write and report names the lease; once it is over the batch is dropped and nothing more is written.
//! - A poison item never harms its batch: whatever refuses or panics in bulk is tried again one by one.
//! - Nothing here knows why a notification came: an injected parent and a real one take the same way.
//! - Every batch, page, round and wait is bounded, and nothing loops without a wait.
//!
//! Deliberately not here: what any service computes (`services`), storage, SLA order (CQS's).

mod backoff;
mod call;
mod cpu;
mod hand;
mod handle;
mod heartbeat;
mod hold;
mod label;
mod pipeline;
mod platform;
mod read;
mod service;
mod split;
mod write;

pub(crate) use call::{CallError, cause};
pub(crate) use cpu::{contained, on_cpu};
pub(crate) use hand::Hand;
pub(crate) use label::{Label, LabelRef};
pub(crate) use pipeline::{Runtime, RuntimeParts};
pub(crate) use platform::Platform;
pub(crate) use read::{Found, Reads, RecordType, Records};
pub(crate) use service::{AliasQuery, Context, Expansion, Reported, Route, Service, Verdict};
pub(crate) use write::{Change, Input, RecordWrite, WriteState, write_many};

#[cfg(test)]
pub(crate) use {
    platform::{Ask, Leased},
    split::Splitter,
};

pub use pipeline::PipelineSettings;
