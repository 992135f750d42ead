//! How long a run would take, from what the last one of the same service did; never guessed.

use domain::{TenantId, Trigger};
use proto::cqs::v1::{ListOperationsRequest, Operation, OperationState};
use serde::Serialize;
use utoipa::ToSchema;

use super::operations::reached;
use crate::{
    auth::Operator,
    backend::{Peer, call},
    state::Gateway,
    wire::{self, WireTime as _},
};

/// Operations looked through: the newest of the tenant.
const LOOKED_THROUGH: i32 = 50;
/// Labels an operation must have handled to say anything about speed: below, starting and finishing are most of its time.
const MEASURED_LABELS_MIN: i64 = 100;

/// How long it would take.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Estimate {
    /// Seconds from acceptance to the end, waiting behind ordinary work included; null when nothing was measured.
    seconds: Option<i64>,
    /// Labels a second, as measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels_per_second: Option<f64>,
    /// The operation it was measured on: the last finished one of the same service that the token may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_on: Option<String>,
    /// Why there is no estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

impl Estimate {
    fn none(reason: &'static str) -> Self {
        Self { seconds: None, labels_per_second: None, measured_on: None, reason: Some(reason) }
    }
}

/// How long `labels` labels would take. Never fails: an estimate is no reason to refuse a dry run.
pub(super) async fn estimate(
    gateway: &Gateway,
    operator: &Operator,
    (tenant, trigger): (&TenantId, Trigger),
    labels: i64,
) -> Estimate {
    let request = ListOperationsRequest {
        tenant_ids: vec![tenant.to_string()],
        page_size: LOOKED_THROUGH,
        ..ListOperationsRequest::default()
    };
    let Ok(list) = call(Peer::Cqs, gateway.cqs().list_operations(request)).await else {
        return Estimate::none("cqs did not say how long earlier operations took");
    };
    let reach = operator.require(trigger.scope());
    let seen = |operation: &Operation| reach.as_ref().is_ok_and(|reach| reached(*reach, operation).is_ok());
    let measured = list
        .operations
        .iter()
        .filter(|operation| operation.queue_name == trigger.service().as_str() && seen(operation))
        .find_map(|operation| Some((operation, rate(operation)?)));
    let Some((operation, rate)) = measured else {
        return Estimate::none("no finished operation of this service among the last 50 handled at least 100 labels");
    };
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "labels stay far below 2^52")]
    let seconds = (labels as f64 / rate).ceil() as i64;
    Estimate {
        seconds: Some(seconds),
        labels_per_second: Some(rate),
        measured_on: Some(operation.tracking_id.clone()),
        reason: None,
    }
}

/// Labels a second that a finished operation handled; none of one that says nothing.
fn rate(operation: &Operation) -> Option<f64> {
    let over = matches!(operation.state(), OperationState::Succeeded | OperationState::FinishedWithFailures);
    let accepted = operation.accepted_at.as_ref().and_then(wire::WireTimestamp::timestamp)?;
    let finished = operation.finished_at.as_ref().and_then(wire::WireTimestamp::timestamp)?;
    let first = operation.queues.iter().find(|queue| queue.queue_name == operation.queue_name)?;
    let took_ms = finished.as_ms() - accepted.as_ms();
    if !over || first.done < MEASURED_LABELS_MIN || took_ms <= 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "labels and milliseconds stay far below 2^52")]
    let rate = first.done as f64 * 1000.0 / took_ms as f64;
    Some((rate * 10.0).round() / 10.0).filter(|rate| *rate > 0.0)
}
