//! `/v1/tenants/{tenant}/stores/{store}/access-points`
//!
//! Deliberately not here: addresses, which may carry an in-house system's secrets.

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{AliasName, DtoType, OperatorScope, StoreId, TenantId, Urn};
use proto::{dtoflow::v1::Dto, records::v1 as records_v1};
use serde::Serialize;
use utoipa::ToSchema;

use super::records;
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments, segment},
    state::Gateway,
    wire,
};

/// An access point.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct AccessPoint {
    /// The access point.
    access_point_id: String,
    /// The driver that reaches its labels.
    driver: String,
    /// Its version, from 1.
    version: i64,
    /// When this version was written or last touched, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    /// Labels that hang on it, exact.
    labels: i64,
}

/// A page of access points, by id.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccessPointList {
    /// The access points.
    access_points: Vec<AccessPoint>,
    #[serde(flatten)]
    next: NextPage,
}

/// The access points of a store, with the number of labels that hang on each.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores/{store}/access-points", operation_id = "list_access_points",
    tag = "labels",
    security(("operator" = ["labels:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("store" = String, Path, description = "The store."),
        PageParams
    ),
    responses((status = 200, description = "One page.", body = AccessPointList), ReadProblems)
)]
pub(crate) async fn list_access_points(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, store)): Segments<(String, String)>,
    parameters: Parameters,
) -> Result<Json<AccessPointList>, Problem> {
    operator.require(OperatorScope::LabelsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let store: StoreId = segment("store", &store)?;
    operator.store(&tenant, &store)?;
    let page = parameters.page(&[])?;
    let parent = Urn::Store(tenant.clone(), store.clone());
    let (urns, next) = records::list_in_store(&gateway, DtoType::AccessPoint, &parent, &page).await?;
    if urns.is_empty() {
        records::require_store(&gateway, &tenant, &store).await?;
        return Ok(Json(AccessPointList { access_points: Vec::new(), next: next.into() }));
    }
    let counts = records::count(&gateway, DtoType::StoreEsl, AliasName::ByAccessPoint, &urns).await?;
    let keys = urns.iter().map(|urn| records::key(DtoType::AccessPoint, urn)).collect();
    let dtos = records::get_many(&gateway, keys).await?;
    let mut access_points = Vec::with_capacity(urns.len());
    for ((urn, dto), labels) in urns.iter().zip(&dtos).zip(counts) {
        access_points.extend(access_point(urn, dto, labels)?);
    }
    Ok(Json(AccessPointList { access_points, next: next.into() }))
}

/// None when the access point was deleted since it was listed.
fn access_point(urn: &Urn, dto: &Dto, labels: i64) -> Result<Option<AccessPoint>, Problem> {
    let record: Option<records_v1::AccessPoint> = records::decode(Some(dto), DtoType::AccessPoint)?;
    Ok(record.map(|record| AccessPoint {
        access_point_id: urn.record_id().map(ToString::to_string).unwrap_or_default(),
        driver: record.driver,
        version: dto.version,
        updated_at: wire::time(dto.updated_at.as_ref()),
        labels,
    }))
}
