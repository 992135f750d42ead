//! What of a label is under way, and where it failed: its records as the queues know them, whatever caused it.

use domain::{DtoType, RecordId, StoreId, TenantId, Urn};
use proto::cqs::v1::{GetRecordFatesRequest, RecordFate, RecordFateState};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    backend::{Peer, call},
    problem::Problem,
    state::Gateway,
    wire,
};

/// Records of a label that something may wait for: its links and hardware, its pictures on their way.
const OF_LABEL: [DtoType; 6] = [
    DtoType::EccLink,
    DtoType::StudioLink,
    DtoType::StoreEsl,
    DtoType::EccEslImage,
    DtoType::StudioEslImage,
    DtoType::EslImage,
];

/// Something about the label that is still to be handled.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pending {
    /// What the label is once it is handled: `rendered`, `merged` or `exported`.
    #[schema(example = "rendered")]
    stage: &'static str,
    /// The service that does it.
    #[schema(example = "ecc-image-render-service")]
    service: String,
    /// The record it is about.
    record: String,
    /// `WAITING`, or `LEASED`: in a worker's hands.
    state: &'static str,
    /// Why it waits until `due_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// Not before, RFC 3339; absent: as soon as it is its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    /// Attempts that ended in retry so far.
    attempts: i32,
    /// When it should be done, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    sla_timestamp: Option<String>,
    /// Tracking id of the operation or the write that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_id: Option<String>,
}

/// A stage that gave the label up. It is shown until something about the same record was handled there.
#[derive(Serialize, ToSchema)]
pub(crate) struct LabelFailure {
    /// What the label did not become: `rendered`, `merged` or `exported`.
    #[schema(example = "rendered")]
    stage: &'static str,
    /// The service that gave up.
    #[schema(example = "ecc-image-render-service")]
    service: String,
    /// The record it was about.
    record: String,
    /// Why, as the service says it.
    cause: String,
    /// Attempts that ended in retry before.
    attempts: i32,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_at: Option<String>,
    /// Tracking id of the operation or the write that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_id: Option<String>,
}

/// What is under way and what failed.
#[derive(Default)]
pub(super) struct Stages {
    pub(super) pending: Vec<Pending>,
    pub(super) failures: Vec<LabelFailure>,
}

/// Looks for a label's records, and for the items its links name, in every queue.
pub(super) async fn stages(
    gateway: &Gateway,
    (tenant, store, label): (&TenantId, &StoreId, &RecordId),
    items: &[Option<&String>],
) -> Result<Stages, Problem> {
    let records = OF_LABEL.iter().map(|dto_type| Urn::in_store(tenant, store, *dto_type, label));
    // An id that cannot be one names nothing.
    let items = items.iter().flatten().filter_map(|id| id.parse::<RecordId>().ok());
    let items = items.map(|id| Urn::in_store(tenant, store, DtoType::StoreItemValues, &id));
    let request = GetRecordFatesRequest { dto_ids: records.chain(items).map(|urn| urn.to_string()).collect() };
    let answer = call(Peer::Cqs, gateway.cqs().get_record_fates(request)).await?;
    let mut stages = Stages::default();
    for fate in answer.fates {
        match fate.state() {
            RecordFateState::Waiting => stages.pending.push(pending(fate, "WAITING")),
            RecordFateState::Leased => stages.pending.push(pending(fate, "LEASED")),
            RecordFateState::Failed => stages.failures.push(failure(fate)),
            RecordFateState::Unspecified => {}
        }
    }
    Ok(stages)
}

fn text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn pending(fate: RecordFate, state: &'static str) -> Pending {
    Pending {
        stage: wire::stage_of(&fate.queue_name),
        service: fate.queue_name,
        record: fate.dto_id,
        state,
        cause: text(fate.cause),
        due_at: wire::time(fate.due_at.as_ref()),
        attempts: fate.attempts,
        sla_timestamp: wire::time(fate.sla_timestamp.as_ref()),
        tracking_id: text(fate.tracking_id),
    }
}

fn failure(fate: RecordFate) -> LabelFailure {
    LabelFailure {
        stage: wire::stage_of(&fate.queue_name),
        service: fate.queue_name,
        record: fate.dto_id,
        cause: fate.cause,
        attempts: fate.attempts,
        failed_at: wire::time(fate.failed_at.as_ref()),
        tracking_id: text(fate.tracking_id),
    }
}
