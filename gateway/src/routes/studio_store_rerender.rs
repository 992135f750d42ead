//! `/v1/triggers/studio-store-rerender`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::studio_renderer::v1::TriggerStudioStoreRerenderRequest;

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
    /// Renders every label of a store that is linked to a Studio design again.
    pub(crate) struct StudioStoreRerenderRequest {
        /// The store.
        #[schema(example = "berlin")]
        store_id: String,
        ..
    }
}

/// Render every label of a store that is linked to a Studio design again.
#[utoipa::path(
    post, path = "/v1/triggers/studio-store-rerender", operation_id = "trigger_studio_store_rerender", tag = "triggers",
    security(("operator" = ["trigger:studio-store-rerender"])),
    request_body(
        content = StudioStoreRerenderRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin",
            "reason": "CHG-130: the renderer was upgraded", "tracking_id": "CHG-130-studio", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_studio_store_rerender(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<StudioStoreRerenderRequest>(gateway, operator, request).await
}

impl TriggerBody for StudioStoreRerenderRequest {
    const TRIGGER: Trigger = Trigger::StudioStoreRerender;
    const NAMED: &'static str = "store_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place { store: Some(proto::parse_field("store_id", &self.store_id)?), record: None })
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.studio_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerStudioStoreRerenderRequest, asked, {
            store_id: asked.store_id(),
        });
        let answer =
            call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_studio_store_rerender(request)).await?;
        Ok(answer_from_wire!(answer))
    }
}
