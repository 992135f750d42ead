//! The vocabulary of the platform: names of records, services, queues and lanes, SLA time, reasons, error codes.
//!
//! Invariants
//! - Every id is a newtype parsed once at the edge; a value of such a type is valid wherever it is.
//! - Kinds and states are closed enums; their text on the wire and in the database is their `as_str`.
//! - Time, randomness and ids come in through [`Clock`] and [`IdSource`].
//!
//! Deliberately not here: I/O, the wire format (`proto`), SQL (`db`, `cqs`, `dtoflow`), pictures (`picture`).

mod clock;
mod dto_type;
mod error;
mod hex;
mod ids;
mod notification;
mod operator;
mod parents;
mod reason;
mod service;
mod timestamp;
mod trigger;
mod urn;

pub use clock::{Clock, IdSource, ManualClock, SeededIds};
pub use dto_type::{AliasName, Collection, DtoType, RecordScope, UnknownName};
pub use error::{ErrorCode, Refusal};
pub use hex::hex;
pub use ids::{IdError, QueueName, RecordId, StoreId, TenantId, TrackingId};
pub use notification::{Evidence, LaneKind, LeaseRef, Notification, Outcome, ParentShape, SplitItem, Target, limits};
pub use operator::{OperatorScope, OperatorSubject, SubjectError};
pub use parents::Parent;
pub use reason::{Reason, ReasonError};
pub use service::{ServiceIdentity, ServiceName};
pub use timestamp::{SLA_MAX_AHEAD_MS, Timestamp, sla_clamp};
pub use trigger::{RENDER_ALLOWANCE_MS, Trigger};
pub use urn::{Urn, UrnError};
