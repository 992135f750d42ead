//! `/v1/tenants/{tenant}/stores`

use std::{collections::BTreeSet, sync::Arc};

use axum::{Json, extract::State};
use domain::{AliasName, DtoType, OperatorScope, StoreId, TenantId, Urn};
use proto::dtoflow::v1::ListStoresByAliasRequest;
use serde::Serialize;
use utoipa::ToSchema;

use super::{records, triggers::StoreLabels};
use crate::{
    auth::{Operator, StoreAccess},
    backend::{Peer, call},
    problem::{Problem, ReadProblems},
    query::{NextPage, Page, PageParams, Parameters, Segments, segment},
    state::Gateway,
};

/// A page of stores that have labels, by id.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreList {
    /// The stores with their label counts.
    stores: Vec<StoreLabels>,
    #[serde(flatten)]
    next: NextPage,
}

/// The stores of a tenant that have labels, with their counts.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores", operation_id = "list_stores", tag = "labels",
    security(("operator" = ["labels:read"])),
    params(("tenant" = String, Path, description = "The tenant."), PageParams),
    responses((status = 200, description = "One page.", body = StoreList), ReadProblems)
)]
pub(crate) async fn list_stores(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(tenant): Segments<String>,
    parameters: Parameters,
) -> Result<Json<StoreList>, Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let page = parameters.page(&[])?;
    let (stores, next) = match reach.tenant(&tenant)? {
        StoreAccess::All => all(&gateway, &tenant, page).await?,
        StoreAccess::Only(stores) => only(&gateway, &tenant, stores, &page).await?,
    };
    Ok(Json(StoreList { stores, next: next.into() }))
}

async fn all(gateway: &Gateway, tenant: &TenantId, page: Page) -> Result<(Vec<StoreLabels>, String), Problem> {
    let request = ListStoresByAliasRequest {
        dto_type: DtoType::StoreEsl.to_string(),
        alias_name: AliasName::ByStore.to_string(),
        parent_id: Urn::Tenant(tenant.clone()).to_string(),
        page_size: page.wire_size(),
        page_token: page.token,
    };
    let answer = call(Peer::DtoFlow, gateway.dtoflow().list_stores_by_alias(request)).await?;
    let stores = answer.stores.into_iter().map(|store| StoreLabels { store_id: store.store_id, labels: store.count });
    Ok((stores.collect(), answer.next_page_token))
}

async fn only(
    gateway: &Gateway,
    tenant: &TenantId,
    stores: &BTreeSet<StoreId>,
    page: &Page,
) -> Result<(Vec<StoreLabels>, String), Problem> {
    let (page, next) = page.over(stores.iter())?;
    let parents: Vec<Urn> = page.iter().map(|store| Urn::Store(tenant.clone(), (*store).clone())).collect();
    let counts = records::count(gateway, DtoType::StoreEsl, AliasName::ByStore, &parents).await?;
    let stores = page
        .into_iter()
        .zip(counts)
        .filter(|(_, labels)| *labels > 0)
        .map(|(store, labels)| StoreLabels { store_id: store.to_string(), labels })
        .collect();
    Ok((stores, next))
}
