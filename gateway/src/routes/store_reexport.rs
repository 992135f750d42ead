//! `/v1/triggers/store-reexport`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::hardware_exporter::v1::TriggerStoreReexportRequest;

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
    /// Sends the picture of every label of a store again. Nothing is rendered.
    pub(crate) struct StoreReexportRequest {
        /// The store.
        #[schema(example = "berlin")]
        store_id: String,
        ..
    }
}

/// Send the picture of every label of a store again.
#[utoipa::path(
    post, path = "/v1/triggers/store-reexport", operation_id = "trigger_store_reexport", tag = "triggers",
    security(("operator" = ["trigger:store-reexport"])),
    request_body(
        content = StoreReexportRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin",
            "reason": "INC-4711: power cut", "tracking_id": "INC-4711-store", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_store_reexport(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<StoreReexportRequest>(gateway, operator, request).await
}

impl TriggerBody for StoreReexportRequest {
    const TRIGGER: Trigger = Trigger::StoreReexport;
    const NAMED: &'static str = "store_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place { store: Some(proto::parse_field("store_id", &self.store_id)?), record: None })
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.exporter_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerStoreReexportRequest, asked, {
            store_id: asked.store_id(),
        });
        let answer = call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_store_reexport(request)).await?;
        Ok(answer_from_wire!(answer))
    }
}
