//! `/v1/tenants/{tenant}/stores/{store}/labels/{label}`

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use domain::{DtoType, OperatorScope, RecordId, StoreId, TenantId, Urn};
use proto::{
    dtoflow::v1::Dto,
    records::v1::{EccLink, EslImage, EslType, StoreEsl, StoreEslStatus, StoreItemValues, StudioLink, Transition},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    label_stages::{LabelFailure, Pending, stages},
    labels::{item_shown, source},
    records::{self, decode, enum_text, key},
};
use crate::{
    auth::Operator,
    problem::{Problem, ReadProblems},
    query::{Segments, segment},
    state::Gateway,
    wire,
};

/// The label as hardware.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Hardware {
    /// Kind of panel.
    esl_type_id: String,
    /// The access point it hangs on.
    access_point_id: String,
    /// The address printed on it.
    hardware_address: String,
}

/// The label's panel.
#[derive(Serialize, ToSchema)]
pub(crate) struct Panel {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Pixels, before rotation.
    width: u32,
    /// Pixels, before rotation.
    height: u32,
    /// E.g. `BWR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    palette: Option<String>,
    /// How far the layout is turned clockwise onto the panel, degrees.
    rotation: u32,
}

/// The item a label shows.
#[derive(Serialize, ToSchema)]
pub(crate) struct Item {
    /// The item.
    item_id: String,
    /// Its values; absent when the item is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<BTreeMap<String, String>>,
}

/// The picture the label shall show.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelPicture {
    /// `ECC` or `STUDIO`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// SHA-256 of the picture, hex.
    digest: String,
    /// Pixels.
    width: u32,
    /// Pixels.
    height: u32,
    /// Path of the picture as PNG.
    image: String,
}

/// What is known of the delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct Delivery {
    /// E.g. `CONFIRMED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// What the driver could prove: `WRITTEN`, `TRANSFERRED` or `DISPLAYED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
    /// Digest last confirmed, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_digest: Option<String>,
    /// Hardware address that confirmed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_hardware_address: Option<String>,
    /// Digest on its way, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_digest: Option<String>,
    /// Access point that the picture on its way was sent through.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_access_point_id: Option<String>,
    /// When it was sent last, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<String>,
    /// When the digest last confirmed was confirmed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_at: Option<String>,
    /// Attempts for the picture on its way.
    attempts: u32,
    /// Times in a row that hardware lost it.
    losses: u32,
    /// Last error since the last confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// The last steps, oldest first.
    steps: Vec<DeliveryStep>,
    /// When this was written, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    /// Tracking id of what caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_id: Option<String>,
}

/// One step of a delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryStep {
    /// The state reached, e.g. `QUEUED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// When that was seen, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// Why, or how it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The proof behind it: `WRITTEN`, `TRANSFERRED` or `DISPLAYED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
}

/// One label.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Label {
    /// The tenant.
    tenant_id: String,
    /// The store.
    store_id: String,
    /// The label.
    label_id: String,
    hardware: Hardware,
    /// Absent when the kind of panel is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    panel: Option<Panel>,
    /// The ECC model it is linked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_id: Option<String>,
    /// The Studio design it is linked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    design_id: Option<String>,
    /// Absent while the label is not linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Item>,
    /// Absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<LabelPicture>,
    /// Absent before the first export.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<Delivery>,
    /// What of it is under way, in whichever stage.
    pending: Vec<Pending>,
    /// Stages that gave it up, and why; shown until something about the same record was handled there.
    failures: Vec<LabelFailure>,
}

/// One label: hardware, panel, item, picture, delivery, what is under way and what failed.
#[utoipa::path(
    get, path = "/v1/tenants/{tenant}/stores/{store}/labels/{label}", operation_id = "get_label", tag = "labels",
    security(("operator" = ["labels:read"])),
    params(
        ("tenant" = String, Path, description = "The tenant."),
        ("store" = String, Path, description = "The store."),
        ("label" = String, Path, description = "The label.")
    ),
    responses((status = 200, description = "What is known of the label.", body = Label), ReadProblems)
)]
pub(crate) async fn get_label(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    Segments((tenant, store, label)): Segments<(String, String, String)>,
) -> Result<Json<Label>, Problem> {
    let reach = operator.require(OperatorScope::LabelsRead)?;
    let tenant: TenantId = segment("tenant", &tenant)?;
    let store: StoreId = segment("store", &store)?;
    let label: RecordId = segment("label", &label)?;
    reach.store(&tenant, &store)?;
    let of_label = |dto_type| key(dto_type, &Urn::in_store(&tenant, &store, dto_type, &label));
    let types = [DtoType::StoreEsl, DtoType::EccLink, DtoType::StudioLink, DtoType::EslImage, DtoType::StoreEslStatus];
    let dtos = records::get_many(&gateway, types.into_iter().map(of_label).collect()).await?;
    let hardware: StoreEsl = decode(dtos.first(), DtoType::StoreEsl)?.ok_or_else(Problem::not_found)?;
    let ecc: Option<EccLink> = decode(dtos.get(1), DtoType::EccLink)?;
    let studio: Option<StudioLink> = decode(dtos.get(2), DtoType::StudioLink)?;
    let image: Option<EslImage> = decode(dtos.get(3), DtoType::EslImage)?;
    let item_id = item_shown(ecc.as_ref(), studio.as_ref(), image.as_ref());
    let place = Place { tenant, store, label };
    let items = [ecc.as_ref().map(|link| &link.item_id), studio.as_ref().map(|link| &link.item_id)];
    let stages = stages(&gateway, (&place.tenant, &place.store, &place.label), &items).await?;
    let (panel, item) = place.panel_and_item(&gateway, &hardware.esltype_id, item_id).await?;
    Ok(Json(Label {
        tenant_id: place.tenant.to_string(),
        store_id: place.store.to_string(),
        label_id: place.label.to_string(),
        hardware: Hardware {
            esl_type_id: hardware.esltype_id,
            access_point_id: hardware.accesspoint_id,
            hardware_address: hardware.hardware_address,
        },
        panel,
        model_id: ecc.map(|link| link.model_id),
        design_id: studio.map(|link| link.design_id),
        item,
        picture: image.map(|image| place.picture(&image)),
        delivery: dtos.get(4).map(delivery).transpose()?.flatten(),
        pending: stages.pending,
        failures: stages.failures,
    }))
}

struct Place {
    tenant: TenantId,
    store: StoreId,
    label: RecordId,
}

impl Place {
    /// What the label's other records name; an id that cannot be one names nothing.
    async fn panel_and_item(
        &self,
        gateway: &Gateway,
        esl_type: &str,
        item_id: Option<String>,
    ) -> Result<(Option<Panel>, Option<Item>), Problem> {
        let panel_key = esl_type
            .parse()
            .ok()
            .map(|id: RecordId| key(DtoType::EslType, &Urn::in_tenant(&self.tenant, DtoType::EslType, &id)));
        let item_key = item_id.as_deref().and_then(|id| id.parse().ok()).map(|id: RecordId| {
            key(DtoType::StoreItemValues, &Urn::in_store(&self.tenant, &self.store, DtoType::StoreItemValues, &id))
        });
        let (has_panel, keys) = (panel_key.is_some(), panel_key.into_iter().chain(item_key).collect::<Vec<_>>());
        let dtos = if keys.is_empty() { Vec::new() } else { records::get_many(gateway, keys).await? };
        let (panel_dto, item_dto) = if has_panel { (dtos.first(), dtos.get(1)) } else { (None, dtos.first()) };
        let panel = decode::<EslType>(panel_dto, DtoType::EslType)?.map(|panel| Panel {
            palette: enum_text("PALETTE_", panel.palette().as_str_name()),
            name: Some(panel.name).filter(|name| !name.is_empty()),
            width: panel.width,
            height: panel.height,
            rotation: panel.rotation,
        });
        let values = decode::<StoreItemValues>(item_dto, DtoType::StoreItemValues)?.map(|item| item.values);
        Ok((panel, item_id.map(|item_id| Item { item_id, values })))
    }

    fn picture(&self, image: &EslImage) -> LabelPicture {
        LabelPicture {
            source: source(image),
            digest: domain::hex(&image.digest),
            width: image.width,
            height: image.height,
            image: format!("/v1/tenants/{}/stores/{}/labels/{}/image.png", self.tenant, self.store, self.label),
        }
    }
}

fn delivery(dto: &Dto) -> Result<Option<Delivery>, Problem> {
    let Some(status) = decode::<StoreEslStatus>(Some(dto), DtoType::StoreEslStatus)? else { return Ok(None) };
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Ok(Some(Delivery {
        state: enum_text("DELIVERY_STATE_", status.state().as_str_name()),
        evidence: enum_text("EVIDENCE_", status.evidence().as_str_name()),
        confirmed_digest: text(&domain::hex(&status.confirmed_digest)),
        confirmed_hardware_address: text(&status.confirmed_hardware_address),
        sent_digest: text(&domain::hex(&status.sent_digest)),
        sent_access_point_id: text(&status.sent_accesspoint_id),
        sent_at: wire::time(status.sent_at.as_ref()),
        confirmed_at: wire::time(status.confirmed_at.as_ref()),
        attempts: status.attempts,
        losses: status.losses,
        steps: status.transitions.iter().map(step).collect(),
        last_error: text(&status.last_error),
        updated_at: wire::time(dto.updated_at.as_ref()),
        tracking_id: text(&dto.tracking_id),
    }))
}

fn step(step: &Transition) -> DeliveryStep {
    DeliveryStep {
        state: enum_text("DELIVERY_STATE_", step.state().as_str_name()),
        at: wire::time(step.at.as_ref()),
        cause: Some(step.cause.clone()).filter(|cause| !cause.is_empty()),
        evidence: enum_text("EVIDENCE_", step.evidence().as_str_name()),
    }
}
