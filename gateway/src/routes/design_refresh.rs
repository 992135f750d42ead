//! `/v1/triggers/design-refresh`

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use domain::{Refusal, Trigger};
use proto::studio_renderer::v1::TriggerDesignRefreshRequest;

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
    /// Renders every label linked to one Studio design again, in all stores of its tenant.
    pub(crate) struct DesignRefreshRequest {
        /// The design.
        #[schema(example = "poster")]
        design_id: String,
        ..
        /// `next_page_token` of the dry run before, for the stores after its last; dry runs only. Left out: the first 200.
        page_token: Option<String>,
    }
}

/// Render every label of a design again, in all stores.
#[utoipa::path(
    post, path = "/v1/triggers/design-refresh", operation_id = "trigger_design_refresh", tag = "triggers",
    security(("operator" = ["trigger:design-refresh"])),
    request_body(
        content = DesignRefreshRequest,
        description = "At most 64 KiB.",
        example = json!({
            "tenant_id": "demo", "design_id": "poster",
            "reason": "CHG-121: the logo was renewed", "tracking_id": "CHG-121", "dry_run": true
        })
    ),
    responses(TriggerResponses, TriggerProblems)
)]
pub(crate) async fn trigger_design_refresh(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
    request: Request,
) -> Result<Response, Problem> {
    trigger_call::answer::<DesignRefreshRequest>(gateway, operator, request).await
}

impl TriggerBody for DesignRefreshRequest {
    const TRIGGER: Trigger = Trigger::DesignRefresh;
    const NAMED: &'static str = "design_id";

    fn place(&self) -> Result<Place, Refusal> {
        Ok(Place { store: None, record: Some(proto::parse_field("design_id", &self.design_id)?) })
    }

    fn page_token(&self) -> Option<&str> {
        self.page_token.as_deref()
    }

    async fn call(gateway: &Gateway, asked: &Asked) -> Result<Answer, CallError> {
        let mut client = gateway.studio_triggers().ok_or_else(|| not_configured(Self::TRIGGER))?;
        let request = request_to_wire!(TriggerDesignRefreshRequest, asked, {
            design_id: asked.record_id(),
            page_size: 0,
            page_token: asked.page_token.clone(),
        });
        let answer = call(Peer::Trigger(Self::TRIGGER.service()), client.trigger_design_refresh(request)).await?;
        let stores = answer.stores.into_iter().map(|store| (store.store_id, store.labels)).collect();
        Ok(answer_from_wire!(answer, stores, answer.next_page_token, answer.store_count))
    }
}
