//! `/v1/tenants`

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{AliasName, DtoType, OperatorScope, TenantId, Urn};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use utoipa::ToSchema;

use super::records;
use crate::{
    auth::{Operator, Reach, StoreAccess},
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters},
    state::Gateway,
};

/// Counts asked for at once: a page is 200 tenants at most, each a cheap call.
const COUNTS_AT_ONCE: usize = 8;

/// A tenant the token may act on.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tenant {
    /// The tenant.
    tenant_id: String,
    /// Its labels, as far as the token reaches.
    labels: i64,
}

/// A page of tenants, by id.
#[derive(Serialize, ToSchema)]
pub(crate) struct TenantList {
    /// The tenants.
    tenants: Vec<Tenant>,
    #[serde(flatten)]
    next: NextPage,
}

/// The tenants of the token, with their label counts.
#[utoipa::path(
    get, path = "/v1/tenants", operation_id = "list_tenants", tag = "labels",
    security(("operator" = ["labels:read"])),
    params(PageParams),
    responses((status = 200, description = "One page.", body = TenantList), ReadProblems)
)]
pub(crate) async fn list_tenants(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    parameters: Parameters,
) -> Result<Json<TenantList>, Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let (page, next) = parameters.page(&[])?.over(reach.tenants())?;
    let counts: Vec<_> = page.into_iter().map(|tenant| counted(&gateway, reach, tenant.clone())).collect();
    let tenants = stream::iter(counts).buffered(COUNTS_AT_ONCE).try_collect().await?;
    Ok(Json(TenantList { tenants, next: next.into() }))
}

async fn counted(gateway: &Gateway, reach: Reach<'_>, tenant: TenantId) -> Result<Tenant, Problem> {
    let parents = match reach.tenant(&tenant)? {
        StoreAccess::All => vec![Urn::Tenant(tenant.clone())],
        StoreAccess::Only(stores) => stores.iter().map(|store| Urn::Store(tenant.clone(), store.clone())).collect(),
    };
    let counts = records::count(gateway, DtoType::StoreEsl, AliasName::ByStore, &parents).await?;
    Ok(Tenant { tenant_id: tenant.to_string(), labels: counts.iter().sum() })
}
