//! Records as the retailer's side writes them: from friendly JSON or from the demo lists, into DTOflow.
//!
//! Deliberately not here: which records there are and their required fields (`proto`, enforced by `dtoflow`).

mod json;
mod lines;
mod unique;
mod writer;

pub use json::{RecordError, record_from_json};
pub use lines::{LineError, Lines};
pub use writer::{RecordWriter, WriteError, Written};

use domain::{DtoType, Urn};
use prost::bytes::Bytes;

/// A record ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its type.
    pub dto_type: DtoType,
    /// Its name.
    pub urn: Urn,
    /// The `records.v1` message of that type.
    pub payload: Bytes,
}
