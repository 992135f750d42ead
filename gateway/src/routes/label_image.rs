//! `/v1/tenants/{tenant}/stores/{store}/labels/{label}/image.png`

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use domain::{DtoType, OperatorScope, RecordId, Refusal, StoreId, TenantId, Urn};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use picture::Picture;
use proto::records::v1::{EslImage, ImageSource, SourceEslImage};

use super::records::{self, decode, key};
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{Segments, segment},
    state::Gateway,
};

/// The picture the label shall show, as its panel would show it.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores/{store}/labels/{label}/image.png", operation_id = "get_label_image",
    tag = "labels",
    security(("operator" = ["labels:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("store" = String, Path, description = "The store."),
        ("label" = String, Path, description = "The label."),
        ("If-None-Match" = Option<String>, Header, description = "ETag of the picture one has.")
    ),
    responses(
        (status = 200, description = "The picture.", body = inline(Vec<u8>), content_type = "image/png",
            headers(("ETag" = String, description = "The picture's digest."))),
        (status = 304, description = "The picture is the one of `If-None-Match`."),
        ReadProblems
    )
)]
pub(crate) async fn get_label_image(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, store, label)): Segments<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let store: StoreId = segment("store", &store)?;
    let label: RecordId = segment("label", &label)?;
    reach.store(&tenant, &store)?;
    let urn = |dto_type| Urn::in_store(&tenant, &store, dto_type, &label);
    let dtos = records::get_many(&gateway, vec![key(DtoType::EslImage, &urn(DtoType::EslImage))]).await?;
    let chosen: EslImage = decode(dtos.first(), DtoType::EslImage)?.ok_or_else(Problem::not_found)?;
    let source = match chosen.source() {
        ImageSource::Ecc => DtoType::EccEslImage,
        ImageSource::Studio => DtoType::StudioEslImage,
        ImageSource::Unspecified => return Err(Problem::not_found()),
    };
    let dtos = records::get_many(&gateway, vec![key(source, &urn(source))]).await?;
    let image: SourceEslImage = decode(dtos.first(), source)?.ok_or_else(Problem::not_found)?;
    // The tag is that of the bytes sent, not of the merger's choice, which may be a moment behind.
    let tag = format!("\"{}\"", domain::hex(&image.digest));
    let tag_value = HeaderValue::try_from(&tag).map_err(|_| Refusal::internal())?;
    if has(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag_value)]).into_response());
    }
    let png = png(image).await?;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static("image/png")), (ETAG, tag_value)], png).into_response())
}

fn has(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// Four million pixels take tens of milliseconds, so not on the threads that answer requests.
async fn png(image: SourceEslImage) -> Result<Vec<u8>, Problem> {
    let made = tokio::task::spawn_blocking(move || {
        Picture::unpack(&image.picture)
            .map_err(|error| error.to_string())
            .and_then(|picture| picture.to_png().map_err(|error| error.to_string()))
    });
    match made.await {
        Ok(Ok(png)) => Ok(png),
        Ok(Err(error)) => {
            tracing::error!(error, "a stored picture cannot be shown");
            Err(Refusal::internal().into())
        }
        Err(error) => {
            tracing::error!(%error, "showing a picture was cut short");
            Err(Refusal::internal().into())
        }
    }
}
