//! `/v1/tenants/{tenant}/stores/{store}/models`

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{AliasName, DtoType, Urn};
use proto::{dtoflow::v1::Dto, records::v1::EccModel};
use serde::Serialize;
use utoipa::ToSchema;

use super::records::{self, Counted};
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments},
    state::Gateway,
    wire,
};

/// Their layouts come along, each up to 320 KiB.
const MODELS: Counted =
    Counted { dto_type: DtoType::EccModel, labels: (DtoType::EccLink, AliasName::ByEccModel), per_read: 50 };

/// An ECC model.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Model {
    /// The model.
    model_id: String,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Its version, from 1.
    version: i64,
    /// When this version was written or last touched, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    /// Labels linked to it, exact.
    labels: i64,
}

/// A page of models, by id.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The models.
    models: Vec<Model>,
    #[serde(flatten)]
    next: NextPage,
}

/// The ECC models of a store, with the number of labels linked to each.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores/{store}/models", operation_id = "list_models", tag = "labels",
    security(("operator" = ["labels:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("store" = String, Path, description = "The store."),
        PageParams
    ),
    responses((status = 200, description = "One page.", body = ModelList), ReadProblems)
)]
pub(crate) async fn list_models(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, store)): Segments<(String, String)>,
    parameters: Parameters,
) -> Result<Json<ModelList>, Problem> {
    let store = records::readable_store(&operator, (&tenant, &store))?;
    let page = parameters.page(&[])?;
    let (urns, next) = records::list_in_store(&gateway, MODELS.dto_type, store, &page).await?;
    let models = records::counted(&gateway, &MODELS, &urns, model).await?;
    Ok(Json(ModelList { models, next: next.into() }))
}

/// None when the model was deleted since it was listed.
fn model(urn: &Urn, dto: &Dto, labels: i64) -> Result<Option<Model>, Problem> {
    let Some(record) = records::decode::<EccModel>(Some(dto), DtoType::EccModel)? else { return Ok(None) };
    Ok(Some(Model {
        model_id: urn.record_id().map(ToString::to_string).unwrap_or_default(),
        name: Some(record.name).filter(|name| !name.is_empty()),
        version: dto.version,
        updated_at: wire::time(dto.updated_at.as_ref()),
        labels,
    }))
}
