//! `/v1/triggers/access-point-reexport`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::hardware_exporter::v1::TriggerAccessPointReexportRequest;

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
    /// Sends the picture of every label of an access point again. Nothing is rendered.
    pub(crate) struct AccessPointReexportRequest {
        /// The store.
        #[schema(example = "berlin")]
        store_id: String,
        /// The access point.
        #[schema(example = "ap-1")]
        access_point_id: String,
        ..
    }
}

/// Send the picture of every label of an access point again.
#[utoipa::path(
    post, path = "/v1/triggers/access-point-reexport", operation_id = "trigger_access_point_reexport", tag = "triggers",
    security(("operator" = ["trigger:access-point-reexport"])),
    request_body(
        content = AccessPointReexportRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "store_id": "berlin", "access_point_id": "ap-1",
            "reason": "INC-4712: access point replaced", "tracking_id": "INC-4712-ap", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_access_point_reexport(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<AccessPointReexportRequest>(gateway, operator, request).await
}

impl TriggerBody for AccessPointReexportRequest {
    const TRIGGER: Trigger = Trigger::AccessPointReexport;
    const NAMED: &'static str = "access_point_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place {
            store: Some(proto::parse_field("store_id", &self.store_id)?),
            record: Some(proto::parse_field("access_point_id", &self.access_point_id)?),
        })
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.exporter_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerAccessPointReexportRequest, asked, {
            store_id: asked.store_id(),
            access_point_id: asked.record_id(),
        });
        let answer =
            call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_access_point_reexport(request)).await?;
        Ok(answer_from_wire!(answer))
    }
}
