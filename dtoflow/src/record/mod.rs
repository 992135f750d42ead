//! Typed records: a payload decodes as its type, has its required fields, and keeps the type's bounds; or it is refused.
//!
//! The bounds are those that `proto/records/v1/records.proto` states. Bytes that pass are stored as they came; unknown
//! fields a newer writer added are kept that way.

mod check;
#[cfg(test)]
mod tests;

use domain::DtoType;
use prost::{Message, bytes::Bytes};
use proto::records::v1 as wire;

pub(crate) use check::RecordFault;

/// A record, decoded and checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    /// `storeitemvalues.v1`
    StoreItemValues(wire::StoreItemValues),
    /// `esltype.v1`
    EslType(wire::EslType),
    /// `accesspoint.v1`
    AccessPoint(wire::AccessPoint),
    /// `storeesl.v1`
    StoreEsl(wire::StoreEsl),
    /// `eccmodel.v1`
    EccModel(wire::EccModel),
    /// `ecclink.v1`
    EccLink(wire::EccLink),
    /// `design.v1`
    Design(wire::Design),
    /// `studiolink.v1`
    StudioLink(wire::StudioLink),
    /// `ecceslimage.v1` and `studioeslimage.v1`
    SourceEslImage(wire::SourceEslImage),
    /// `eslimage.v1`
    EslImage(wire::EslImage),
    /// `storeeslstatus.v1`
    StoreEslStatus(Box<wire::StoreEslStatus>),
    /// `accesspointstatus.v1`
    AccessPointStatus(wire::AccessPointStatus),
}

impl Record {
    /// The record of that type in `payload`, or what is wrong with it.
    pub(crate) fn decode(dto_type: DtoType, payload: &Bytes) -> Result<Self, RecordFault> {
        let record = match dto_type {
            DtoType::StoreItemValues => Self::StoreItemValues(message(payload)?),
            DtoType::EslType => Self::EslType(message(payload)?),
            DtoType::AccessPoint => Self::AccessPoint(message(payload)?),
            DtoType::StoreEsl => Self::StoreEsl(message(payload)?),
            DtoType::EccModel => Self::EccModel(message(payload)?),
            DtoType::EccLink => Self::EccLink(message(payload)?),
            DtoType::Design => Self::Design(message(payload)?),
            DtoType::StudioLink => Self::StudioLink(message(payload)?),
            DtoType::EccEslImage | DtoType::StudioEslImage => Self::SourceEslImage(message(payload)?),
            DtoType::EslImage => Self::EslImage(message(payload)?),
            DtoType::StoreEslStatus => Self::StoreEslStatus(Box::new(message(payload)?)),
            DtoType::AccessPointStatus => Self::AccessPointStatus(message(payload)?),
        };
        record.check()?;
        Ok(record)
    }
}

fn message<M: Message + Default>(payload: &Bytes) -> Result<M, RecordFault> {
    // The decoder shares the bytes, so pictures are not copied.
    M::decode(payload.clone()).map_err(|_| RecordFault::undecodable())
}
