//! `/v1/triggers/ecc-store-rerender`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::ecc_image_render::v1::TriggerEccStoreRerenderRequest;

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
    /// Renders every label of a store that is linked to an ECC model again.
    pub(crate) struct EccStoreRerenderRequest {
        /// The store.
        #[schema(example = "berlin")]
        store_id: String,
        ..
    }
}

/// Render every label of a store that is linked to an ECC model again.
#[utoipa::path(
    post, path = "/v1/triggers/ecc-store-rerender", operation_id = "trigger_ecc_store_rerender", tag = "triggers",
    security(("operator" = ["trigger:ecc-store-rerender"])),
    request_body(
        content = EccStoreRerenderRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin",
            "reason": "CHG-130: the renderer was upgraded", "tracking_id": "CHG-130-ecc", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_ecc_store_rerender(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<EccStoreRerenderRequest>(gateway, operator, request).await
}

impl TriggerBody for EccStoreRerenderRequest {
    const TRIGGER: Trigger = Trigger::EccStoreRerender;
    const NAMED: &'static str = "store_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place { store: Some(proto::parse_field("store_id", &self.store_id)?), record: None })
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.ecc_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerEccStoreRerenderRequest, asked, {
            store_id: asked.store_id(),
        });
        let answer = call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_ecc_store_rerender(request)).await?;
        Ok(answer_from_wire!(answer))
    }
}
