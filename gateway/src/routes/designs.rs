//! `/v1/tenants/{tenant}/designs`

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{AliasName, DtoType, OperatorScope, TenantId, Urn};
use proto::{dtoflow::v1::Dto, records::v1::Design as Record};
use serde::Serialize;
use utoipa::ToSchema;

use super::records::{self, Counted};
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments, segment},
    state::Gateway,
    wire,
};

/// Their documents come along, each up to 320 KiB.
const DESIGNS: Counted =
    Counted { dto_type: DtoType::Design, labels: (DtoType::StudioLink, AliasName::ByDesign), per_read: 50 };

/// A Studio design.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Design {
    /// The design.
    design_id: String,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Its version, from 1.
    version: i64,
    /// When this version was written or last touched, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    /// Labels linked to it in all stores, exact.
    labels: i64,
}

/// A page of designs, by id.
#[derive(Serialize, ToSchema)]
pub(crate) struct DesignList {
    /// The designs.
    designs: Vec<Design>,
    #[serde(flatten)]
    next: NextPage,
}

/// The Studio designs of a tenant, with the number of labels linked to each.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/designs", operation_id = "list_designs", tag = "labels",
    security(("operator" = ["labels:read"])),
    params(("tenant" = String, Path, description = "The tenant."), PageParams),
    responses((status = 200, description = "One page.", body = DesignList), ReadProblems)
)]
pub(crate) async fn list_designs(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments(tenant): Segments<String>,
    parameters: Parameters,
) -> Result<Json<DesignList>, Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    // A design is the whole tenant's: for a token of single stores it does not exist.
    reach.whole(&tenant)?;
    let page = parameters.page(&[])?;
    let (urns, next) =
        records::list(&gateway, (DESIGNS.dto_type, AliasName::ByTenant), &Urn::Tenant(tenant), &page).await?;
    let designs = records::counted(&gateway, &DESIGNS, &urns, design).await?;
    Ok(Json(DesignList { designs, next: next.into() }))
}

/// None when the design was deleted since it was listed.
fn design(urn: &Urn, dto: &Dto, labels: i64) -> Result<Option<Design>, Problem> {
    let Some(record) = records::decode::<Record>(Some(dto), DtoType::Design)? else { return Ok(None) };
    Ok(Some(Design {
        design_id: urn.record_id().map(ToString::to_string).unwrap_or_default(),
        name: Some(record.name).filter(|name| !name.is_empty()),
        version: dto.version,
        updated_at: wire::time(dto.updated_at.as_ref()),
        labels,
    }))
}
