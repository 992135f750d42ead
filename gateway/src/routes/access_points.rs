//! `/v1/tenants/{tenant}/stores/{store}/access-points`
//!
//! Deliberately not here: addresses, which may carry an in-house system's secrets.

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{AliasName, DtoType, Urn};
use proto::{dtoflow::v1::Dto, records::v1 as records_v1};
use serde::Serialize;
use utoipa::ToSchema;

use super::records::{self, Counted};
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{NextPage, PAGE_SIZE_MAX, PageParams, Parameters, Segments},
    state::Gateway,
    wire,
};

/// A page of them is one read: they are small.
const ACCESS_POINTS: Counted = Counted {
    dto_type: DtoType::AccessPoint,
    labels: (DtoType::StoreEsl, AliasName::ByAccessPoint),
    per_read: PAGE_SIZE_MAX,
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
    let store = records::readable_store(&operator, (&tenant, &store))?;
    let page = parameters.page(&[])?;
    let (urns, next) = records::list_in_store(&gateway, ACCESS_POINTS.dto_type, store, &page).await?;
    let access_points = records::counted(&gateway, &ACCESS_POINTS, &urns, access_point).await?;
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
