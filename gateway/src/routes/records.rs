//! Reading records for the routes.

use domain::{AliasName, DtoType, OperatorScope, StoreId, TenantId, Urn};
use prost::Message;
use proto::dtoflow::v1::{CountByAliasRequest, Dto, GetKey, GetManyRequest, ListByAliasRequest};

use crate::{
    auth::Operator,
    backend::{CallError, Peer, call},
    problem::Problem,
    query::{Page, segment},
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

/// The store that a path names, for an operator who may read its labels.
pub(super) fn readable_store(
    operator: &Operator,
    (tenant, store): (&str, &str),
) -> Result<(TenantId, StoreId), Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let (tenant, store) = (segment("tenant", tenant)?, segment("store", store)?);
    reach.store(&tenant, &store)?;
    Ok((tenant, store))
}

/// One page of the records of `dto_type` in a store, with the next page's token. Refuses a store that nothing says exists.
pub(super) async fn list_in_store(
    gateway: &Gateway,
    dto_type: DtoType,
    (tenant, store): (TenantId, StoreId),
    page: &Page,
) -> Result<(Vec<Urn>, String), Problem> {
    let parent = Urn::Store(tenant, store);
    let (urns, next) = list(gateway, (dto_type, AliasName::ByStore), &parent, page).await?;
    if urns.is_empty() {
        require_store(gateway, parent).await?;
    }
    Ok((urns, next))
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
async fn require_store(gateway: &Gateway, store: Urn) -> Result<(), Problem> {
    let parent = [store];
    for dto_type in [DtoType::StoreEsl, DtoType::EccModel] {
        if count(gateway, dto_type, AliasName::ByStore, &parent).await?.iter().any(|count| *count > 0) {
            return Ok(());
        }
    }
    Err(Problem::not_found())
}

/// Records that are listed with the number of labels below each.
pub(super) struct Counted {
    /// What is listed.
    pub(super) dto_type: DtoType,
    /// What is counted below each, by which alias.
    pub(super) labels: (DtoType, AliasName),
    /// Records read in one call: what a message of 64 MiB holds of them.
    pub(super) per_read: usize,
}

/// Reads listed records, counts below them, and shows each with its number of labels, in order. `view` answers none for a
/// record that was deleted since it was listed.
pub(super) async fn counted<T>(
    gateway: &Gateway,
    of: &Counted,
    urns: &[Urn],
    view: impl Fn(&Urn, &Dto, i64) -> Result<Option<T>, Problem>,
) -> Result<Vec<T>, Problem> {
    let mut shown = Vec::with_capacity(urns.len());
    if urns.is_empty() {
        return Ok(shown);
    }
    let counts = count(gateway, of.labels.0, of.labels.1, urns).await?;
    for (urns, counts) in urns.chunks(of.per_read).zip(counts.chunks(of.per_read)) {
        let keys = urns.iter().map(|urn| key(of.dto_type, urn)).collect();
        let dtos = get_many(gateway, keys).await?;
        for ((urn, dto), labels) in urns.iter().zip(&dtos).zip(counts) {
            shown.extend(view(urn, dto, *labels)?);
        }
    }
    Ok(shown)
}

/// The last part of a generated enum value's name: `PALETTE_BW` → `BW`; none for "unspecified".
pub(super) fn enum_text(prefix: &str, name: &str) -> Option<String> {
    name.strip_prefix(prefix).filter(|rest| *rest != "UNSPECIFIED").map(str::to_owned)
}
