//! `ListByAlias`, `CountByAlias`, `ListStoresByAlias`.

use daemon::identity::caller;
use domain::{AliasName, DtoType, Parent, Refusal, StoreId, TenantId, Urn};
use proto::{dtoflow::v1 as wire, parse_field};
use tonic::Request;

use super::DtoFlowServer;
use crate::{
    alias::{ParentFault, parent, parent_of_records, parent_of_stores},
    limits::{PAGE_DEFAULT, PAGE_MAX, PARENTS_MAX},
    model::{AliasCursor, AliasListAsk, AliasLook, StoreListAsk},
};

const LIST: &str = "dtoflow.v1.DtoFlowService/ListByAlias";
const COUNT: &str = "dtoflow.v1.DtoFlowService/CountByAlias";
const STORES: &str = "dtoflow.v1.DtoFlowService/ListStoresByAlias";

type Result<T> = std::result::Result<T, Refusal>;

/// Checks a parent against its alias and level.
type Check = fn(DtoType, AliasName, &Urn) -> std::result::Result<Parent, ParentFault>;

impl DtoFlowServer {
    pub(super) async fn list(&self, request: Request<wire::ListByAliasRequest>) -> Result<wire::ListByAliasResponse> {
        caller(&request)?.require_rpc(LIST)?;
        let request = request.into_inner();
        let relation = relation(&request.dto_type, &request.alias_name)?;
        let (urns, tenant) = parent_urns(&request.parent_ids)?;
        let parents = parents(relation, &urns, parent_of_records)?;
        let after = cursor_from_token(&request.page_token, parents.len())?;
        let limit = page_size(request.page_size)?;
        let look = look(relation, tenant);
        let page = self
            .store
            .alias_list(AliasListAsk { look, parents, after, limit })
            .await
            .map_err(|error| error.into_refusal(LIST))?;
        let last = page.entries.last().filter(|_| page.more);
        let next_page_token = last.map(|last| format!("{}:{}", last.parent, last.id)).unwrap_or_default();
        let entries = page
            .entries
            .into_iter()
            .filter_map(|found| {
                let urn = match urns.get(found.parent)? {
                    Urn::Tenant(tenant) | Urn::TenantRecord(tenant, _, _) => {
                        Urn::in_tenant(tenant, relation.0, &found.id)
                    }
                    Urn::Store(tenant, store) | Urn::StoreRecord(tenant, store, _, _) => {
                        Urn::in_store(tenant, store, relation.0, &found.id)
                    }
                };
                let parent_index = i32::try_from(found.parent).ok()?;
                Some(wire::AliasEntry { parent_index, dto_id: urn.to_string() })
            })
            .collect();
        Ok(wire::ListByAliasResponse { entries, next_page_token })
    }

    pub(super) async fn count(
        &self,
        request: Request<wire::CountByAliasRequest>,
    ) -> Result<wire::CountByAliasResponse> {
        caller(&request)?.require_rpc(COUNT)?;
        let request = request.into_inner();
        let relation = relation(&request.dto_type, &request.alias_name)?;
        let (urns, tenant) = parent_urns(&request.parent_ids)?;
        let parents = parents(relation, &urns, parent)?;
        let counts =
            self.store.alias_count(look(relation, tenant), parents).await.map_err(|error| error.into_refusal(COUNT))?;
        Ok(wire::CountByAliasResponse { counts })
    }

    pub(super) async fn stores(
        &self,
        request: Request<wire::ListStoresByAliasRequest>,
    ) -> Result<wire::ListStoresByAliasResponse> {
        caller(&request)?.require_rpc(STORES)?;
        let request = request.into_inner();
        let relation = relation(&request.dto_type, &request.alias_name)?;
        let urn: Urn = parse_field("parent_id", &request.parent_id)?;
        let parent = parent_of_stores(relation.0, relation.1, &urn).map_err(|fault| refused(fault, "parent_id"))?;
        let after: Option<StoreId> = match request.page_token.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|_| token_refused())?),
        };
        let limit = page_size(request.page_size)?;
        let ask = StoreListAsk { look: look(relation, parent.tenant), base: parent.base, after, limit };
        let page = self.store.alias_stores(ask).await.map_err(|error| error.into_refusal(STORES))?;
        let last = page.entries.last().filter(|_| page.more);
        let next_page_token = last.map(|last| last.store.to_string()).unwrap_or_default();
        let stores = page
            .entries
            .into_iter()
            .map(|entry| wire::StoreCount { store_id: entry.store.to_string(), count: entry.count })
            .collect();
        Ok(wire::ListStoresByAliasResponse { stores, next_page_token })
    }
}

type Relation = (DtoType, AliasName);

fn relation(dto_type: &str, alias_name: &str) -> Result<Relation> {
    Ok((parse_field("dto_type", dto_type)?, parse_field("alias_name", alias_name)?))
}

fn look((dto_type, alias): Relation, tenant: TenantId) -> AliasLook {
    AliasLook { tenant, dto_type, alias }
}

/// The parents of a call and the one tenant they lie under.
fn parent_urns(texts: &[String]) -> Result<(Vec<Urn>, TenantId)> {
    if texts.len() > PARENTS_MAX {
        return Err(Refusal::field("parent_ids", format!("must have 1 to {PARENTS_MAX} entries")));
    }
    let mut urns: Vec<Urn> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let field = format!("parent_ids[{index}]");
        let urn: Urn = parse_field(&field, text)?;
        if urns.first().is_some_and(|first| first.tenant() != urn.tenant()) {
            return Err(Refusal::field(field, "lies under another tenant than parent_ids[0]"));
        }
        urns.push(urn);
    }
    match urns.first().map(|first| first.tenant().clone()) {
        Some(tenant) => Ok((urns, tenant)),
        None => Err(Refusal::field("parent_ids", format!("must have 1 to {PARENTS_MAX} entries"))),
    }
}

fn parents((dto_type, alias): Relation, urns: &[Urn], check: Check) -> Result<Vec<Parent>> {
    urns.iter()
        .enumerate()
        .map(|(index, urn)| {
            check(dto_type, alias, urn).map_err(|fault| refused(fault, &format!("parent_ids[{index}]")))
        })
        .collect()
}

fn refused(fault: ParentFault, parent_field: &str) -> Refusal {
    match fault {
        ParentFault::NoAlias => Refusal::field("alias_name", fault),
        ParentFault::Kind | ParentFault::TenantLevel | ParentFault::StoreLevel => Refusal::field(parent_field, fault),
    }
}

fn page_size(asked: i32) -> Result<usize> {
    match usize::try_from(asked) {
        Ok(0) => Ok(PAGE_DEFAULT),
        Ok(size) if size <= PAGE_MAX => Ok(size),
        _ => Err(Refusal::field("page_size", format!("must be 0 to {PAGE_MAX}"))),
    }
}

/// `{index of the parent}:{last record}`: a key, not a position, so it holds while records come and go.
fn cursor_from_token(token: &str, parents: usize) -> Result<Option<AliasCursor>> {
    if token.is_empty() {
        return Ok(None);
    }
    let (parent, id) = token.split_once(':').ok_or_else(token_refused)?;
    let parent = parent.parse().ok().filter(|parent| *parent < parents).ok_or_else(token_refused)?;
    Ok(Some(AliasCursor { parent, id: id.parse().map_err(|_| token_refused())? }))
}

fn token_refused() -> Refusal {
    Refusal::field("page_token", "is not of an answer to this request")
}
