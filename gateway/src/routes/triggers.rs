//! `/v1/triggers`, and the answers that all triggers share.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use domain::{OperatorScope, TenantId, TrackingId, Trigger};
use http::{
    HeaderValue, StatusCode,
    header::{LOCATION, RETRY_AFTER},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{admission::ApprovalNeed, estimate::Estimate};
use crate::{auth::Operator, plan::Drift, problem::ReadProblems, query::NextPage};

/// Seconds after which polling a running operation makes sense: counts move every second or so.
pub(crate) const POLL_AFTER_S: u32 = 2;

/// The path under which an operation is followed.
pub(crate) fn operation_path(tenant: &TenantId, tracking_id: &TrackingId) -> String {
    format!("/v1/tenants/{tenant}/operations/{tracking_id}")
}

/// One field of a trigger's body.
#[derive(Serialize, ToSchema)]
pub(crate) struct TriggerParameter {
    /// Its name.
    name: &'static str,
    /// Its kind, as JSON.
    kind: &'static str,
    /// Whether it must be given.
    required: bool,
    /// What it means.
    description: &'static str,
}

/// Something an operator can force.
#[derive(Serialize, ToSchema)]
pub(crate) struct TriggerInfo {
    /// Its name, the last segment of its path.
    name: &'static str,
    /// Where to POST.
    path: String,
    /// The service that carries it out.
    service: &'static str,
    /// What it does.
    description: &'static str,
    /// The scopes a token needs for it.
    scopes: Vec<&'static str>,
    /// The fields of its body.
    parameters: Vec<TriggerParameter>,
    /// Seconds added to now when the request names no `sla_timestamp`; 0: at once.
    bulk_allowance_seconds: i64,
    /// Whether it starts an operation that can be followed.
    starts_operation: bool,
}

/// All triggers.
#[derive(Serialize, ToSchema)]
pub(crate) struct TriggerList {
    /// In no particular order.
    triggers: Vec<TriggerInfo>,
}

/// What can be triggered, by which service, with which parameters.
#[utoipa::path(
    get, path = "/v1/triggers", operation_id = "list_triggers", tag = "triggers",
    security(("operator" = [])),
    responses((status = 200, description = "Every trigger of this gateway.", body = TriggerList), ReadProblems)
)]
pub(crate) async fn list_triggers(_operator: Operator) -> Json<TriggerList> {
    let mut triggers: Vec<TriggerInfo> = Trigger::ALL.iter().copied().map(info).collect();
    triggers.push(TriggerInfo {
        name: "touch",
        path: "/v1/triggers/touch".to_owned(),
        service: "dtoflow",
        description: "Announces up to 1,000 records again without changing them, for one hop.",
        scopes: vec![OperatorScope::TriggerTouch.as_str()],
        parameters: [
            vec![parameter("records", "array", true, "The records: dto_type and dto_id each, all of one tenant.")],
            common(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        bulk_allowance_seconds: 0,
        starts_operation: false,
    });
    Json(TriggerList { triggers })
}

fn info(trigger: Trigger) -> TriggerInfo {
    let string = |name, description| Some(parameter(name, "string", true, description));
    let (description, named) = match trigger {
        Trigger::ModelRefresh => (
            "Renders every label linked to one ECC model of a store again.",
            string("model_id", "The model; its labels and no others are rendered."),
        ),
        Trigger::DesignRefresh => (
            "Renders every label linked to one Studio design again, in all stores of its tenant.",
            string("design_id", "The design; its labels and no others are rendered."),
        ),
        Trigger::EccStoreRerender => ("Renders every label of a store that is linked to an ECC model again.", None),
        Trigger::StudioStoreRerender => {
            ("Renders every label of a store that is linked to a Studio design again.", None)
        }
        Trigger::StoreReexport => ("Sends the picture of every label of a store again; nothing is rendered.", None),
        Trigger::AccessPointReexport => (
            "Sends the picture of every label of an access point again; nothing is rendered.",
            string("access_point_id", "The access point; its labels and no others are sent."),
        ),
        Trigger::LabelReexport => {
            ("Sends the picture of one label again; nothing is rendered.", string("label_id", "The label."))
        }
    };
    // A design is its tenant's: its dry run answers stores, in pages.
    let (store, page_token) = if trigger == Trigger::DesignRefresh {
        let of_page = "Of a dry run: the stores after those of the answer before.";
        (None, Some(parameter("page_token", "string", false, of_page)))
    } else {
        (string("store_id", "The store."), None)
    };
    let scope = [string("tenant_id", "The tenant."), store, named, page_token];
    let own = [
        parameter("sla_timestamp", "string", false, "RFC 3339; left out: now plus the bulk allowance."),
        parameter("plan_id", "string", false, "Of a dry run's answer: the run is held to what that counted."),
        parameter(
            "limits",
            "object",
            false,
            "throttle_per_s and max_in_flight, in each stage; 0 or left out: no limit.",
        ),
        parameter("stop_when", "object", false, "failure_ratio_percent and min_sample: when it stops itself."),
        parameter("max_drift", "integer", false, "Labels that may have come or gone since the plan; left out: 0."),
    ];
    TriggerInfo {
        name: trigger.as_str(),
        path: format!("/v1/triggers/{trigger}"),
        service: trigger.service().as_str(),
        description,
        scopes: vec![trigger.scope().as_str()],
        parameters: scope.into_iter().flatten().chain(common()).chain(own).collect(),
        bulk_allowance_seconds: trigger.bulk_allowance_ms() / 1000,
        starts_operation: true,
    }
}

fn common() -> Vec<TriggerParameter> {
    vec![
        parameter("reason", "string", true, "Why, 1 to 500 characters; stands in the audit log."),
        parameter("tracking_id", "string", true, "Names the request within its tenant: [A-Za-z0-9._:-], 1 to 128."),
        parameter("dry_run", "boolean", true, "True: count only, enqueue nothing."),
    ]
}

fn parameter(name: &'static str, kind: &'static str, required: bool, description: &'static str) -> TriggerParameter {
    TriggerParameter { name, kind, required, description }
}

/// Labels of one store.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreLabels {
    /// The store.
    pub(crate) store_id: String,
    /// Labels concerned there, exact.
    pub(crate) labels: i64,
}

/// What a trigger would do. Nothing was done and nothing reserved.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct DryRun {
    /// Always true.
    pub(crate) dry_run: bool,
    /// Labels concerned now, exact.
    pub(crate) labels: i64,
    /// Stores they are in, exact. Of a first page only; absent beyond 65,536 stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store_count: Option<i64>,
    /// Up to 10 of them; of the first store listed, where there are several.
    pub(crate) sample_label_ids: Vec<String>,
    /// The same count by store, at most 200 stores.
    pub(crate) stores: Vec<StoreLabels>,
    #[serde(flatten)]
    pub(crate) next: NextPage,
    /// The service that would do it.
    pub(crate) would_run_on: &'static str,
    /// The SLA timestamp it would have if it were started now, RFC 3339.
    pub(crate) would_have_sla_timestamp: String,
    /// True: the same request has been accepted before, and would be answered like then.
    pub(crate) would_replay: bool,
    #[serde(flatten)]
    pub(crate) plan: Option<PlanMade>,
    /// What came and went since the plan that the request names; absent when it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drift: Option<Drift>,
    /// Whether a second operator would have to approve it.
    pub(crate) approval: ApprovalNeed,
    /// How long it would take.
    pub(crate) estimate: Estimate,
}

/// What the run can be held to.
#[derive(Serialize, ToSchema)]
pub(crate) struct PlanMade {
    /// Pass it with the run: it is refused when more than `max_drift` labels came or went meanwhile. Signed, opaque, good
    /// for 24 hours. Of a first page only.
    pub(crate) plan_id: String,
    /// When the plan ends, RFC 3339.
    pub(crate) plan_expires_at: String,
}

/// What a trigger answers when it is not refused.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "stands in the API's document only")]
pub(crate) enum TriggerResponses {
    /// A dry run's counts, or the answer of before with `replayed: true`.
    #[response(status = 200)]
    Answered(TriggerAnswer),
    /// Accepted; follow `Location`.
    #[response(
        status = 202,
        headers(
            ("Location" = String, description = "The operation."),
            ("Retry-After" = u32, description = "Seconds until a first look makes sense.")
        )
    )]
    Accepted(Accepted),
}

/// An accepted trigger.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Accepted {
    /// Where to follow it.
    pub(crate) operation: String,
    /// As the request named it.
    pub(crate) tracking_id: String,
    /// Labels concerned now, exact.
    pub(crate) labels: i64,
    /// Parents that were injected; they lead to the labels.
    pub(crate) items_enqueued: i32,
    /// When it was accepted, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accepted_at: Option<String>,
    /// When it should be done, RFC 3339, as it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sla_timestamp: Option<String>,
    /// True when the same request had been accepted before; then nothing was enqueued now.
    pub(crate) replayed: bool,
    /// What came and went since the plan that the request names; absent when it names none, and when it is replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drift: Option<Drift>,
    /// True: it is `AWAITING_APPROVAL`, and nothing happens before another operator approves it.
    pub(crate) awaits_approval: bool,
}

/// An answer of 200: either a dry run's, or the first answer again.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum TriggerAnswer {
    /// `dry_run` was true.
    DryRun(DryRun),
    /// The same request had been accepted before: `replayed` is true.
    Replayed(Accepted),
}

impl IntoResponse for Accepted {
    /// 202 with `Location` for a new operation, 200 for a replayed one.
    fn into_response(self) -> Response {
        if self.replayed {
            return Json(TriggerAnswer::Replayed(self)).into_response();
        }
        let location = HeaderValue::try_from(&self.operation);
        let mut response = (StatusCode::ACCEPTED, Json(self)).into_response();
        if let Ok(location) = location {
            response.headers_mut().insert(LOCATION, location);
        }
        response.headers_mut().insert(RETRY_AFTER, POLL_AFTER_S.into());
        response
    }
}
