//! The change queue service.

pub mod announce;
mod error;
mod wakeups;

pub use error::StoreError;
pub use wakeups::Wakeups;
