//! `/v1/triggers/label-reexport`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::hardware_exporter::v1::TriggerLabelReexportRequest;

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
    /// Sends the picture of one label again. Nothing is rendered.
    pub(crate) struct LabelReexportRequest {
        /// The store.
        #[schema(example = "berlin")]
        store_id: String,
        /// The label.
        #[schema(example = "L0001")]
        label_id: String,
        ..
    }
}

/// Send the picture of one label again.
#[utoipa::path(
    post, path = "/v1/triggers/label-reexport", operation_id = "trigger_label_reexport", tag = "triggers",
    security(("operator" = ["trigger:label-reexport"])),
    request_body(
        content = LabelReexportRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin", "label_id": "L0001",
            "reason": "INC-4713: blank after a battery change", "tracking_id": "INC-4713-label", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_label_reexport(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<LabelReexportRequest>(gateway, operator, request).await
}

impl TriggerBody for LabelReexportRequest {
    const TRIGGER: Trigger = Trigger::LabelReexport;
    const NAMED: &'static str = "label_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place {
            store: Some(proto::parse_field("store_id", &self.store_id)?),
            record: Some(proto::parse_field("label_id", &self.label_id)?),
        })
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.exporter_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerLabelReexportRequest, asked, {
            store_id: asked.store_id(),
            label_id: asked.record_id(),
        });
        let answer = call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_label_reexport(request)).await?;
        Ok(answer_from_wire!(answer))
    }
}
