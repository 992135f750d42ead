//! `/v1/tenants/{tenant}/stores/{store}/labels`

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{DtoType, Urn};
use proto::{
    dtoflow::v1::Dto,
    records::v1::{EccLink, EslImage, ImageSource, StoreEslStatus, StudioLink},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::records::{self, decode, enum_text, key};
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{NextPage, PageParams, Parameters, Segments},
    state::Gateway,
};

/// A label in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelSummary {
    /// The label.
    label_id: String,
    /// The item it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    item_id: Option<String>,
    /// The ECC model it is linked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_id: Option<String>,
    /// The Studio design it is linked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    design_id: Option<String>,
    /// Which of the two it shall show: `ECC` or `STUDIO`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// SHA-256 of the picture it shall show, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture_digest: Option<String>,
    /// Where that picture is on its way, e.g. `CONFIRMED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_state: Option<String>,
}

/// A page of labels, by id.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelList {
    /// The labels.
    labels: Vec<LabelSummary>,
    #[serde(flatten)]
    next: NextPage,
}

/// The labels of a store.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores/{store}/labels", operation_id = "list_labels", tag = "labels",
    security(("operator" = ["labels:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("store" = String, Path, description = "The store."),
        PageParams
    ),
    responses((status = 200, description = "One page.", body = LabelList), ReadProblems)
)]
pub(crate) async fn list_labels(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, store)): Segments<(String, String)>,
    parameters: Parameters,
) -> Result<Json<LabelList>, Problem> {
    let store = records::readable_store(&operator, (&tenant, &store))?;
    let page = parameters.page(&[])?;
    let (urns, next) = records::list_in_store(&gateway, DtoType::StoreEsl, store, &page).await?;
    if urns.is_empty() {
        return Ok(Json(LabelList { labels: Vec::new(), next: next.into() }));
    }
    let beside = [DtoType::EccLink, DtoType::StudioLink, DtoType::EslImage, DtoType::StoreEslStatus];
    let keys = urns
        .iter()
        .flat_map(|urn| beside.iter().filter_map(|dto_type| urn.sibling(*dto_type).map(|urn| key(*dto_type, &urn))))
        .collect();
    let dtos = records::get_many(&gateway, keys).await?;
    let labels = urns.iter().zip(dtos.chunks(beside.len())).map(|(urn, dtos)| summary(urn, dtos));
    Ok(Json(LabelList { labels: labels.collect::<Result<_, _>>()?, next: next.into() }))
}

fn summary(urn: &Urn, dtos: &[Dto]) -> Result<LabelSummary, Problem> {
    let ecc: Option<EccLink> = decode(dtos.first(), DtoType::EccLink)?;
    let studio: Option<StudioLink> = decode(dtos.get(1), DtoType::StudioLink)?;
    let image: Option<EslImage> = decode(dtos.get(2), DtoType::EslImage)?;
    let status: Option<StoreEslStatus> = decode(dtos.get(3), DtoType::StoreEslStatus)?;
    Ok(LabelSummary {
        label_id: urn.record_id().map(ToString::to_string).unwrap_or_default(),
        item_id: item_shown(ecc.as_ref(), studio.as_ref(), image.as_ref()),
        model_id: ecc.map(|link| link.model_id),
        design_id: studio.map(|link| link.design_id),
        source: image.as_ref().and_then(source),
        picture_digest: image.map(|image| domain::hex(&image.digest)),
        delivery_state: status.and_then(|status| enum_text("DELIVERY_STATE_", status.state().as_str_name())),
    })
}

/// The item of the link whose picture is shown; before there is a picture, that of the link that will win.
pub(super) fn item_shown(
    ecc: Option<&EccLink>,
    studio: Option<&StudioLink>,
    image: Option<&EslImage>,
) -> Option<String> {
    let of_ecc = ecc.map(|link| &link.item_id);
    let of_studio = studio.map(|link| &link.item_id);
    match image.map(EslImage::source) {
        Some(ImageSource::Ecc) => of_ecc.or(of_studio),
        Some(ImageSource::Studio | ImageSource::Unspecified) | None => of_studio.or(of_ecc),
    }
    .cloned()
}

/// `ECC` or `STUDIO`.
pub(super) fn source(image: &EslImage) -> Option<String> {
    enum_text("IMAGE_SOURCE_", image.source().as_str_name())
}
