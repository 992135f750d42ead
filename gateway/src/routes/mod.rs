//! One file per resource; each handler extracts, calls, maps, with its documented types right above it.
//!
//! Deliberately not here: anything that names a queue.

pub(crate) mod access_point_reexport;
pub(crate) mod access_points;
mod admission;
pub(crate) mod audit;
pub(crate) mod brake;
pub(crate) mod control;
mod control_view;
pub(crate) mod design_refresh;
pub(crate) mod designs;
pub(crate) mod ecc_store_rerender;
mod estimate;
pub(crate) mod events;
pub(crate) mod failures;
mod family;
mod funnel;
pub(crate) mod health;
pub(crate) mod label;
pub(crate) mod label_history;
pub(crate) mod label_image;
pub(crate) mod label_reexport;
mod label_stages;
pub(crate) mod labels;
pub(crate) mod me;
pub(crate) mod model_refresh;
pub(crate) mod models;
mod operation_view;
pub(crate) mod operations;
pub(crate) mod preview;
mod records;
pub(crate) mod status;
pub(crate) mod store_reexport;
pub(crate) mod stores;
pub(crate) mod studio_store_rerender;
pub(crate) mod tenants;
pub(crate) mod touch;
mod trigger_body;
mod trigger_call;
pub(crate) mod triggers;

pub(crate) use triggers::operation_path;
