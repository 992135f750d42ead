//! `/v1/triggers/{model-refresh|design-refresh}/preview`: a sample, rendered now and thrown away.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use domain::{RecordId, Refusal, StoreId, TenantId, Trigger};
use picture::Picture;
use proto::{
    ecc_image_render::v1::PreviewModelRefreshRequest as WireModelRefresh,
    studio_renderer::v1::PreviewDesignRefreshRequest as WireDesignRefresh,
    triggers::v1::{LabelPreview as WirePreview, PreviewResponse},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::trigger_call::not_configured;
use crate::{
    auth::Operator,
    backend::{CallError, Peer, call},
    body,
    problem::{AskProblems, Problem},
    state::Gateway,
};

/// Labels of a preview at most.
const SAMPLE_MAX: i32 = 24;

/// A sample of what a model refresh would draw.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelRefreshPreviewRequest {
    /// The tenant.
    #[schema(example = "demo")]
    tenant_id: String,
    /// The store.
    #[schema(example = "berlin")]
    store_id: String,
    /// The model.
    #[schema(example = "standard")]
    model_id: String,
    /// Labels to render, 1 to 24. Left out: 24.
    #[schema(minimum = 1, maximum = 24)]
    #[serde(default, deserialize_with = "body::whole_or_none")]
    sample: Option<i32>,
}

/// A sample of what a design refresh would draw.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DesignRefreshPreviewRequest {
    /// The tenant.
    #[schema(example = "demo")]
    tenant_id: String,
    /// The design.
    #[schema(example = "poster")]
    design_id: String,
    /// Labels to render, 1 to 24. Left out: 24.
    #[schema(minimum = 1, maximum = 24)]
    #[serde(default, deserialize_with = "body::whole_or_none")]
    sample: Option<i32>,
}

/// What would become of a sampled label's picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum PreviewOutcome {
    /// It would be replaced by `new`.
    Changed,
    /// It would stay: the label is counted as unchanged and nothing goes to the hardware.
    Unchanged,
    /// It would be deleted: the item, the layout or the label's type is gone.
    Deleted,
    /// The label would fail, with `cause`, and keep its picture.
    Failed,
}

/// A picture, as the panel would show it.
#[derive(Serialize, ToSchema)]
pub(crate) struct PreviewPicture {
    /// Pixels.
    width: u32,
    /// Pixels.
    height: u32,
    /// The PNG file, base64.
    png_base64: String,
}

/// What would become of one label.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelPreview {
    /// Its store.
    store_id: String,
    /// The label.
    label_id: String,
    /// What would become of its picture.
    outcome: PreviewOutcome,
    /// Why it would fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The renderer's present picture; null when there is none.
    current: Option<PreviewPicture>,
    /// The picture it would draw now; null when it would draw none.
    new: Option<PreviewPicture>,
    /// What stays in black and white, what changes in red; null unless both pictures are there with one size and palette.
    difference: Option<PreviewPicture>,
    /// Pixels that change; null like `difference`.
    pixels_changed: Option<u64>,
}

/// A sample of what a refresh would do. Nothing was written.
#[derive(Serialize, ToSchema)]
pub(crate) struct Preview {
    /// Labels the refresh concerns now, exact.
    labels: i64,
    /// Labels of this sample; spread over the labels, the same ones each time while the links are the same.
    sampled: usize,
    /// Of the sample: pictures that would be replaced or deleted.
    changed: usize,
    /// Of the sample: pictures that would stay.
    unchanged: usize,
    /// Of the sample: labels that would fail.
    failed: usize,
    /// The sample, by store and label.
    previews: Vec<LabelPreview>,
}

/// Render a sample of a model's labels, and write nothing.
#[utoipa::path(
    post, path = "/v1/triggers/model-refresh/preview", operation_id = "preview_model_refresh", tag = "triggers",
    security(("operator" = ["trigger:model-refresh"])),
    request_body(
        content = ModelRefreshPreviewRequest,
        description = "At most 64 KiB.",
        example = json!({"tenant_id": "demo", "store_id": "berlin", "model_id": "standard", "sample": 6})
    ),
    responses((status = 200, description = "The sample.", body = Preview), AskProblems)
)]
pub(crate) async fn preview_model_refresh(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Json<Preview>, Problem> {
    let bytes = body::read(request).await?;
    let parsed = body::parse::<ModelRefreshPreviewRequest>(&bytes);
    let reach = operator.require(Trigger::ModelRefresh.scope())?;
    let asked = parsed?;
    let tenant: TenantId = proto::parse_field("tenant_id", &asked.tenant_id)?;
    let store: StoreId = proto::parse_field("store_id", &asked.store_id)?;
    let model: RecordId = proto::parse_field("model_id", &asked.model_id)?;
    let sample = sample(asked.sample)?;
    reach.store(&tenant, &store)?;
    let mut client = gateway.ecc_triggers().ok_or_else(|| Problem::from(not_configured(Trigger::ModelRefresh)))?;
    let request = WireModelRefresh {
        tenant_id: tenant.to_string(),
        store_id: store.to_string(),
        model_id: model.to_string(),
        sample,
        operator_subject: operator.subject().to_string(),
    };
    answer(call(Peer::Trigger(Trigger::ModelRefresh.service()), client.preview_model_refresh(request)).await).await
}

/// Render a sample of a design's labels, and write nothing.
#[utoipa::path(
    post, path = "/v1/triggers/design-refresh/preview", operation_id = "preview_design_refresh", tag = "triggers",
    security(("operator" = ["trigger:design-refresh"])),
    request_body(
        content = DesignRefreshPreviewRequest,
        description = "At most 64 KiB.",
        example = json!({"tenant_id": "demo", "design_id": "poster", "sample": 6})
    ),
    responses((status = 200, description = "The sample.", body = Preview), AskProblems)
)]
pub(crate) async fn preview_design_refresh(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Json<Preview>, Problem> {
    let bytes = body::read(request).await?;
    let parsed = body::parse::<DesignRefreshPreviewRequest>(&bytes);
    let reach = operator.require(Trigger::DesignRefresh.scope())?;
    let asked = parsed?;
    let tenant: TenantId = proto::parse_field("tenant_id", &asked.tenant_id)?;
    let design: RecordId = proto::parse_field("design_id", &asked.design_id)?;
    let sample = sample(asked.sample)?;
    // A design is its tenant's: for a token of single stores there is none.
    reach.whole(&tenant)?;
    let mut client = gateway.studio_triggers().ok_or_else(|| Problem::from(not_configured(Trigger::DesignRefresh)))?;
    let request = WireDesignRefresh {
        tenant_id: tenant.to_string(),
        design_id: design.to_string(),
        sample,
        operator_subject: operator.subject().to_string(),
    };
    answer(call(Peer::Trigger(Trigger::DesignRefresh.service()), client.preview_design_refresh(request)).await).await
}

fn sample(asked: Option<i32>) -> Result<i32, Refusal> {
    match asked.unwrap_or(SAMPLE_MAX) {
        sample @ 1..=SAMPLE_MAX => Ok(sample),
        _ => Err(Refusal::field("sample", format!("must be a whole number from 1 to {SAMPLE_MAX}"))),
    }
}

async fn answer(answered: Result<PreviewResponse, CallError>) -> Result<Json<Preview>, Problem> {
    let PreviewResponse { labels, previews } = answered?;
    // Some dozen pictures are unpacked, compared and packed as PNG: not on the threads that answer requests.
    let shown = tokio::task::spawn_blocking(move || previews.into_iter().map(shown).collect::<Result<Vec<_>, _>>());
    let previews = shown.await.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
    let count = |outcomes: &[PreviewOutcome]| previews.iter().filter(|shown| outcomes.contains(&shown.outcome)).count();
    Ok(Json(Preview {
        labels,
        sampled: previews.len(),
        changed: count(&[PreviewOutcome::Changed, PreviewOutcome::Deleted]),
        unchanged: count(&[PreviewOutcome::Unchanged]),
        failed: count(&[PreviewOutcome::Failed]),
        previews,
    }))
}

fn broken(error: &impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "a preview cannot be shown");
    Refusal::internal().into()
}

fn shown(wire: WirePreview) -> Result<LabelPreview, String> {
    // A stored picture that cannot be read is none: a refresh replaces it.
    let current = Picture::unpack(&wire.current).ok();
    let new = Some(&wire.new).filter(|new| !new.is_empty()).map(|new| Picture::unpack(new));
    let new = new.transpose().map_err(|error| error.to_string())?;
    let outcome = match (wire.changes, &new) {
        _ if !wire.cause.is_empty() => PreviewOutcome::Failed,
        (true, Some(_)) => PreviewOutcome::Changed,
        (true, None) => PreviewOutcome::Deleted,
        (false, _) => PreviewOutcome::Unchanged,
    };
    let difference = current.as_ref().zip(new.as_ref()).and_then(|(current, new)| current.difference(new));
    let png = |picture: Option<&Picture>| picture.map(png).transpose();
    Ok(LabelPreview {
        store_id: wire.store_id,
        label_id: wire.label_id,
        outcome,
        cause: Some(wire.cause).filter(|cause| !cause.is_empty()),
        current: png(current.as_ref())?,
        new: png(new.as_ref())?,
        difference: png(difference.as_ref().map(|difference| &difference.picture))?,
        pixels_changed: difference.map(|difference| difference.pixels),
    })
}

fn png(picture: &Picture) -> Result<PreviewPicture, String> {
    let png = picture.to_png().map_err(|error| error.to_string())?;
    Ok(PreviewPicture { width: picture.width(), height: picture.height(), png_base64: BASE64_STANDARD.encode(png) })
}
