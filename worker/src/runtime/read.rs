//! Bulk reads: every record once, typed on the way out, versions kept for the writes.

use std::collections::BTreeMap;

use domain::{DtoType, ErrorCode, Urn, limits::RECORDS_PER_CALL_MAX};
use proto::{
    dtoflow::v1::{Dto, GetKey},
    records::v1 as records,
};

use super::{CallError, Input, Platform};

/// A record message and the DTO type whose payload it is.
pub(crate) trait RecordType: prost::Message + Default {
    /// The type.
    const DTO_TYPE: DtoType;
}

macro_rules! record_types {
    ($($message:ident = $dto_type:ident),+ $(,)?) => {
        $(impl RecordType for records::$message { const DTO_TYPE: DtoType = DtoType::$dto_type; })+
    };
}
// `SourceEslImage` serves two types and is read by `Records::record_as`.
record_types!(
    StoreItemValues = StoreItemValues,
    EslType = EslType,
    AccessPoint = AccessPoint,
    StoreEsl = StoreEsl,
    EccModel = EccModel,
    EccLink = EccLink,
    Design = Design,
    StudioLink = StudioLink,
    EslImage = EslImage,
    StoreEslStatus = StoreEslStatus,
    AccessPointStatus = AccessPointStatus,
);

/// What to read: each record once, with the version known already.
#[derive(Debug, Default)]
pub(crate) struct Reads(BTreeMap<(DtoType, Urn), i64>);

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Records(BTreeMap<(DtoType, Urn), Dto>);

/// One record as read.
#[derive(Debug)]
pub(crate) struct Found<M> {
    /// The record as an input of a write: its version, 0 when absent.
    pub(crate) input: Input,
    /// The record; none when absent.
    pub(crate) record: Option<M>,
}

impl Reads {
    /// Wants a record whole.
    pub(crate) fn want(&mut self, dto_type: DtoType, urn: Urn) {
        self.0.entry((dto_type, urn)).or_insert(0);
    }

    /// Wants a record whose version `known` the caller holds: its payload comes only where newer.
    pub(crate) fn want_newer(&mut self, dto_type: DtoType, urn: Urn, known: i64) {
        self.0.insert((dto_type, urn), known);
    }

    /// Reads everything. Calls that would answer more than a message holds are halved.
    pub(crate) async fn fetch(self, platform: &Platform) -> Result<Records, CallError> {
        let wanted: Vec<((DtoType, Urn), i64)> = self.0.into_iter().collect();
        let mut found = BTreeMap::new();
        let mut ahead: Vec<&[((DtoType, Urn), i64)]> = wanted.chunks(RECORDS_PER_CALL_MAX).rev().collect();
        while let Some(chunk) = ahead.pop() {
            let keys = chunk
                .iter()
                .map(|((dto_type, urn), known)| GetKey {
                    dto_type: dto_type.to_string(),
                    dto_id: urn.to_string(),
                    known_version: *known,
                })
                .collect();
            match platform.get_many(keys).await {
                Ok(dtos) if dtos.len() == chunk.len() => {
                    found.extend(chunk.iter().map(|(key, _)| key.clone()).zip(dtos));
                }
                Ok(_) => return Err(CallError::answer("a read call answered another number of records than asked")),
                Err(CallError::NotNow(refusal)) if refusal.code == ErrorCode::ResourceExhausted && chunk.len() > 1 => {
                    let (first, second) = chunk.split_at(chunk.len() / 2);
                    ahead.push(second);
                    ahead.push(first);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Records(found))
    }
}

impl Records {
    /// A record of the message's own type. An error is a cause for people.
    pub(crate) fn record<M: RecordType>(&self, urn: &Urn) -> Result<Found<M>, String> {
        self.record_as(M::DTO_TYPE, urn)
    }

    /// A record of `dto_type`, as `M`.
    pub(crate) fn record_as<M: prost::Message + Default>(
        &self,
        dto_type: DtoType,
        urn: &Urn,
    ) -> Result<Found<M>, String> {
        let (input, dto) = self.raw(dto_type, urn)?;
        let record = match dto {
            Some(dto) => Some(M::decode(dto.payload.clone()).map_err(|error| format!("{dto_type} {urn}: {error}"))?),
            None => None,
        };
        Ok(Found { input, record })
    }

    /// A record undecoded; none when absent. Its payload is empty when the known version is current.
    pub(crate) fn raw(&self, dto_type: DtoType, urn: &Urn) -> Result<(Input, Option<&Dto>), String> {
        let dto = self.0.get(&(dto_type, urn.clone())).ok_or_else(|| format!("{dto_type} {urn} was not read"))?;
        let version = if dto.exists { dto.version } else { 0 };
        Ok((Input { dto_type, urn: urn.clone(), version }, dto.exists.then_some(dto)))
    }

    /// Every record of a type that was asked for, by URN; none where absent.
    pub(crate) fn of_type(&self, dto_type: DtoType) -> impl Iterator<Item = (&Urn, Option<&Dto>)> {
        self.0
            .iter()
            .filter(move |((of, _), _)| *of == dto_type)
            .map(|((_, urn), dto)| (urn, dto.exists.then_some(dto)))
    }

    /// Records as a test says: version and payload, or absent.
    #[cfg(test)]
    pub(crate) fn of(records: impl IntoIterator<Item = (DtoType, Urn, Option<(i64, Vec<u8>)>)>) -> Self {
        let dto = |found: Option<(i64, Vec<u8>)>| match found {
            Some((version, payload)) => Dto { exists: true, version, payload: payload.into(), ..Dto::default() },
            None => Dto::default(),
        };
        Self(records.into_iter().map(|(dto_type, urn, found)| ((dto_type, urn), dto(found))).collect())
    }
}
