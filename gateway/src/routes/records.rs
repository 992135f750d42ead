//! Reading records for the routes.

use domain::{AliasName, DtoType, StoreId, TenantId, Urn};
use prost::Message;
use proto::dtoflow::v1::{CountByAliasRequest, Dto, GetKey, GetManyRequest, ListByAliasRequest};

use crate::{
    backend::{CallError, Peer, call},
    problem::Problem,
    query::Page,
    state::Gateway,
};

pub(super) fn key(dto_type: DtoType, urn: &Urn) -> GetKey {
    key_known(dto_type, urn, 0)
}

pub(super) fn key_known(dto_type: DtoType, urn: &Urn, known_version: i64) -> GetKey {
    GetKey { dto_type: dto_type.to_string(), dto_id: urn.to_string(), known_version }
}

/// One record per key, in order.
pub(super) async fn get_many(gateway: &Gateway, keys: Vec<GetKey>) -> Result<Vec<Dto>, CallError> {
    let asked = keys.len();
    let answer = call(Peer::DtoFlow, gateway.dtoflow().get_many(GetManyRequest { keys })).await?;
    same_length(asked, answer.dtos)
}

/// How many records lie under each parent, in order.
pub(super) async fn count(
    gateway: &Gateway,
    dto_type: DtoType,
    alias: AliasName,
    parents: &[Urn],
) -> Result<Vec<i64>, CallError> {
    let request = CountByAliasRequest {
        dto_type: dto_type.to_string(),
        alias_name: alias.to_string(),
        parent_ids: parents.iter().map(ToString::to_string).collect(),
    };
    let answer = call(Peer::DtoFlow, gateway.dtoflow().count_by_alias(request)).await?;
    same_length(parents.len(), answer.counts)
}

/// The contract promises one entry per entry asked for.
fn same_length<T>(asked: usize, answered: Vec<T>) -> Result<Vec<T>, CallError> {
    if asked == answered.len() {
        Ok(answered)
    } else {
        tracing::error!(asked, answered = answered.len(), "dtoflow answered another number of entries");
        Err(CallError::Fault)
    }
}

/// One page of the records of `dto_type` in a store, with the next page's token.
pub(super) async fn list_in_store(
    gateway: &Gateway,
    dto_type: DtoType,
    store: &Urn,
    page: &Page,
) -> Result<(Vec<Urn>, String), Problem> {
    list(gateway, (dto_type, AliasName::ByStore), store, page).await
}

/// One page of the records found under a parent by an alias, with the next page's token.
pub(super) async fn list(
    gateway: &Gateway,
    (dto_type, alias): (DtoType, AliasName),
    parent: &Urn,
    page: &Page,
) -> Result<(Vec<Urn>, String), Problem> {
    let request = ListByAliasRequest {
        dto_type: dto_type.to_string(),
        alias_name: alias.to_string(),
        parent_ids: vec![parent.to_string()],
        page_size: page.wire_size(),
        page_token: page.token.clone(),
    };
    let answer = call(Peer::DtoFlow, gateway.dtoflow().list_by_alias(request)).await?;
    let urns = answer.entries.iter().map(|entry| Urn::record(dto_type, &entry.dto_id)).collect::<Result<Vec<_>, _>>();
    let urns = urns.map_err(|error| {
        tracing::error!(%error, "dtoflow listed something that is no record of the type");
        CallError::Fault
    })?;
    Ok((urns, answer.next_page_token))
}

/// The record as its message; none when absent.
pub(super) fn decode<M: Message + Default>(dto: Option<&Dto>, what: DtoType) -> Result<Option<M>, Problem> {
    let Some(dto) = dto.filter(|dto| dto.exists) else { return Ok(None) };
    match M::decode(dto.payload.clone()) {
        Ok(message) => Ok(Some(message)),
        Err(error) => {
            tracing::error!(dto_type = %what, %error, "a stored record does not decode as its type");
            Err(CallError::Fault.into())
        }
    }
}

/// Refuses a store that has neither labels nor models: nothing says that it exists.
pub(super) async fn require_store(gateway: &Gateway, tenant: &TenantId, store: &StoreId) -> Result<(), Problem> {
    let parent = [Urn::Store(tenant.clone(), store.clone())];
    for dto_type in [DtoType::StoreEsl, DtoType::EccModel] {
        if count(gateway, dto_type, AliasName::ByStore, &parent).await?.iter().any(|count| *count > 0) {
            return Ok(());
        }
    }
    Err(Problem::not_found())
}

/// The last part of a generated enum value's name: `PALETTE_BW` → `BW`; none for "unspecified".
pub(super) fn enum_text(prefix: &str, name: &str) -> Option<String> {
    name.strip_prefix(prefix).filter(|rest| *rest != "UNSPECIFIED").map(str::to_owned)
}
