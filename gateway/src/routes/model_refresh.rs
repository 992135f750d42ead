//! `/v1/triggers/model-refresh`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::ecc_image_render::v1::TriggerModelRefreshRequest;

use super::{
    trigger_body::{Place, TriggerBody, trigger_body},
    trigger_call::{self, Answer, Asked, answer_from_wire, not_configured, request_to_wire},
    triggers::TriggerResponses,
};
use crate::{
    auth::Operator,
    backend::{CallError, Peer, call},
    problem::{Problem, TriggerProblems},
    state::Gateway,
};

trigger_body! {
    /// Renders every label linked to one ECC model of a store again.
    pub(crate) struct ModelRefreshRequest {
        /// The store.
        #[schema(example = "berlin")]
        store_id: String,
        /// The model.
        #[schema(example = "standard")]
        model_id: String,
        ..
    }
}

/// Render every label of a model again.
#[utoipa::path(
    post, path = "/v1/triggers/model-refresh", operation_id = "trigger_model_refresh", tag = "triggers",
    security(("operator" = ["trigger:model-refresh"])),
    request_body(
        content = ModelRefreshRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin", "model_id": "standard",
            "reason": "CHG-118: the price font was fixed", "tracking_id": "CHG-118", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_model_refresh(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<ModelRefreshRequest>(gateway, operator, request).await
}

impl TriggerBody for ModelRefreshRequest {
    const TRIGGER: Trigger = Trigger::ModelRefresh;
    const NAMED: &'static str = "model_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place {
            store: Some(proto::parse_field("store_id", &self.store_id)?),
            record: Some(proto::parse_field("model_id", &self.model_id)?),
        })
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.ecc_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerModelRefreshRequest, asked, {
            store_id: asked.store_id(),
            model_id: asked.record_id(),
        });
        let answer = call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_model_refresh(request)).await?;
        Ok(answer_from_wire!(answer))
    }
}
