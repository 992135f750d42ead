//! `/v1/triggers/store-reexport`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::hardware_exporter::v1::TriggerStoreReexportRequest;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    control_view::{Limits, StopWhen},
    trigger_call::{
        self, Answer, Asked, Common, Place, TriggerBody, answer_from_wire, not_configured, request_to_wire,
    },
    triggers::{Accepted, TriggerAnswer},
};
use crate::{
    auth::Operator,
    backend::{CallError, Peer, call},
    body::Object,
    problem::{Problem, TriggerProblems},
    state::Gateway,
};

/// Sends the picture of every label of a store again. Nothing is rendered.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreReexportRequest {
    /// The tenant.
    #[schema(example = "demo")]
    tenant_id: String,
    /// The store.
    #[schema(example = "berlin")]
    store_id: String,
    /// Why, 1 to 500 characters without control characters. Stands in the audit log.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// Names the operation within its tenant. Repeating a request with the same id repeats its answer.
    #[schema(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    tracking_id: String,
    /// True: validate and count, enqueue nothing. Never assumed.
    dry_run: bool,
    /// When it should be done, RFC 3339. Left out: now plus the trigger's bulk allowance, so that ordinary changes go
    /// first.
    sla_timestamp: Option<String>,
    /// `plan_id` of a dry run's answer: the run is held to what that counted.
    plan_id: Option<String>,
    /// Labels that may have come or gone since the plan, summed over stores. Left out: none. With `plan_id` only.
    #[schema(minimum = 0)]
    max_drift: Option<i64>,
    /// How fast it may go; left out: as fast as there are workers.
    #[schema(value_type = Option<Limits>)]
    limits: Option<Object<Limits>>,
    /// When it stops itself; left out: never.
    #[schema(value_type = Option<StopWhen>)]
    stop_when: Option<Object<StopWhen>>,
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
    responses(
        (status = 200, description = "A dry run's counts, or the answer of before with `replayed: true`.", body = TriggerAnswer),
        (status = 202, description = "Accepted; follow `Location`.", body = Accepted,
            headers(("Location" = String, description = "The operation."), ("Retry-After" = u32, description = "Seconds until a first look makes sense."))),
        TriggerProblems
    )
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

    fn common(&self) -> Common<'_> {
        Common {
            tenant_id: &self.tenant_id,
            reason: &self.reason,
            tracking_id: &self.tracking_id,
            dry_run: self.dry_run,
            sla_timestamp: self.sla_timestamp.as_deref(),
            page_token: None,
            plan: (self.plan_id.as_deref(), self.max_drift),
            terms: (self.limits.as_ref().map(|limits| limits.0), self.stop_when.as_ref().map(|stop| stop.0)),
        }
    }

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
