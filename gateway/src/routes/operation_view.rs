//! One operation as JSON: the ledger by service, and the same in the words of the domain.

use domain::{TenantId, TrackingId};
use proto::cqs::v1::{FailureGroup, Operation as WireOperation, OperationState, QueueCounts, Retry as WireRetry};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    control_view::{AllowedAction, Blocked, Controls, StopWhen},
    family::Totals,
    funnel::{self, Eta, FunnelStage},
    triggers::operation_path,
};
use crate::{backend::CallError, problem::Problem, wire};

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum OperationStateName {
    /// Another operator must approve it; nothing of it has begun.
    AwaitingApproval,
    /// Something of it waits or is being handled.
    Running,
    /// A person paused it.
    Paused,
    /// It stopped itself: more of it failed than `stop_when` allows. Someone must resume or cancel it.
    Held,
    /// Cancelled, and something of it is still in workers' hands.
    Cancelling,
    /// Cancelled, and nothing more happens.
    Cancelled,
    /// Nothing is left and nothing failed.
    Succeeded,
    /// Nothing is left; at least one item failed.
    FinishedWithFailures,
}

/// Counts of labels, or of parents, in one stage. `received` = `done` + `failed` + `coalesced` + `cancelled` +
/// `waiting` + `leased`, at every instant.
#[derive(Serialize, ToSchema)]
pub(crate) struct Counts {
    /// That ever came to the stage.
    received: i64,
    /// Handled, changed or not.
    done: i64,
    /// Given up; see `failures`.
    failed: i64,
    /// Merged into one that waited already.
    coalesced: i64,
    /// Called off.
    cancelled: i64,
    /// Waiting, deferred and backing-off ones included.
    waiting: i64,
    /// In a worker's hands.
    leased: i64,
}

/// One stage of the flow.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Stage {
    /// What a label is once the stage is done with it: `rendered`, `merged` or `exported`.
    #[schema(example = "rendered")]
    stage: &'static str,
    /// The service that does it.
    #[schema(example = "ecc-image-render-service")]
    service: String,
    /// Labels.
    labels: Counts,
    /// Of the labels done: nothing had to change.
    unchanged: i64,
    /// Of the labels waiting, leased and cancelled: taken by their access points, and neither confirmed nor given up.
    handed_over: i64,
    /// Parents: what leads to labels and is split.
    parents: Counts,
}

/// Failed items with the same cause.
#[derive(Serialize, ToSchema)]
pub(crate) struct Failure {
    /// Where they failed.
    stage: &'static str,
    /// The service that gave up.
    service: String,
    /// Why, as the service says it.
    cause: String,
    /// How many.
    count: i64,
    /// Of them: taken over by retries, which tell what became of them.
    retried: i64,
    /// Of them: their access points had taken the labels' pictures, as far as was known when they failed.
    handed_over: i64,
    /// The URN of one of them.
    sample: String,
}

/// A retry of an operation's failures.
#[derive(Serialize, ToSchema)]
pub(crate) struct RetryOf {
    /// Its path.
    operation: String,
    /// Its tracking id.
    tracking_id: String,
    /// Failures it has taken over so far.
    items: i64,
    /// Whether it has all it was accepted for.
    complete: bool,
}

/// The labels of an operation, counted over all stages. Final once `expansion_complete` is true and the state is not
/// `RUNNING`.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Summary {
    /// Labels it concerns, as far as they are known.
    labels: i64,
    /// Rendered to a new picture.
    rendered: i64,
    /// Handled by the first stage with nothing to change.
    unchanged: i64,
    /// Sent: taken by the label's access point, or confirmed at once.
    exported: i64,
    /// Of the exported ones: confirmed, as far as the driver can tell.
    confirmed: i64,
    /// Given up in some stage.
    failed: i64,
}

/// One accepted trigger, followed by its tracking id.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Operation {
    /// Its own path.
    operation: String,
    /// The tenant.
    tenant_id: String,
    /// Names it within its tenant.
    tracking_id: String,
    /// The trigger that started it.
    trigger: String,
    /// The service that carries it out.
    service: String,
    /// URN of what was asked for.
    scope: String,
    /// Why.
    reason: String,
    /// Who asked: the token's subject.
    operator: String,
    /// Where it stands. It never says `SUCCEEDED` with failures.
    pub(super) state: OperationStateName,
    /// Every cause for which something of it waits; empty while it moves, and when it is over.
    blocked_on: Vec<Blocked>,
    /// What may be done with it now; whether the token may do it is another question.
    allowed: Vec<AllowedAction>,
    /// Grows with every change; orders snapshots.
    revision: i64,
    /// Whether every parent is split; only then are the totals final.
    expansion_complete: bool,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<String>,
    /// When it should be done, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    sla_timestamp: Option<String>,
    /// When it was first seen finished, RFC 3339; absent while running.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    /// The labels, in one glance.
    summary: Summary,
    /// How far the labels are, in the order of the flow.
    funnel: Vec<FunnelStage>,
    /// Share of the labels that are through, in percent; null until `expansion_complete`, below 100 until the end, and what was
    /// cancelled is not through.
    percent: Option<f64>,
    /// When it will be finished.
    eta: Eta,
    /// What stops or slows it, and who did that.
    controls: Controls,
    /// When it stops itself; null: never.
    stop_when: Option<StopWhen>,
    /// Names the plan it was started with; null: none. An approval names it, too.
    plan: Option<String>,
    /// In the order of the flow; a stage appears once something of it came there.
    stages: Vec<Stage>,
    /// Failed items by cause, the most frequent first, at most 20 groups.
    failures: Vec<Failure>,
    /// Failed items that no retry took over yet.
    failures_open: i64,
    /// Of a retry: tracking id of the operation whose failures it handles again.
    parent_id: Option<String>,
    /// Retries of its failures, oldest first.
    retries: Vec<RetryOf>,
    /// It, its retries and theirs counted as one; null without retries. In a stream as they were at the snapshot: what its
    /// retries do later makes no event of its own.
    totals: Option<Totals>,
}

/// The operation as JSON.
pub(super) fn operation(wire: WireOperation) -> Result<Operation, Problem> {
    let broken = |what: &str| {
        tracing::error!(tracking_id = wire.tracking_id, what, "cqs described an operation that cannot be");
        Problem::from(CallError::Fault)
    };
    let tenant: TenantId = wire.tenant_id.parse().map_err(|_| broken("tenant_id"))?;
    let tracking_id: TrackingId = wire.tracking_id.parse().map_err(|_| broken("tracking_id"))?;
    let state = state(wire.state()).ok_or_else(|| broken("state"))?;
    let family = wire.family.clone();
    let totals =
        family.map(|family| Totals::of(&wire.queue_name, family).ok_or_else(|| broken("family.state"))).transpose()?;
    Ok(Operation {
        operation: operation_path(&tenant, &tracking_id),
        tenant_id: tenant.to_string(),
        tracking_id: tracking_id.to_string(),
        state,
        expansion_complete: wire.expansion_complete,
        accepted_at: wire::time(wire.accepted_at.as_ref()),
        sla_timestamp: wire::time(wire.sla_timestamp.as_ref()),
        finished_at: wire::time(wire.finished_at.as_ref()),
        failures_open: wire.queues.iter().map(open_failures).sum(),
        parent_id: Some(wire.parent_tracking_id.clone()).filter(|id| !id.is_empty()),
        retries: wire.retries.iter().map(|retry| retry_of(&tenant, retry)).collect(),
        totals,
        blocked_on: wire.blocked_on.iter().map(Blocked::of).collect(),
        allowed: wire.allowed().filter_map(AllowedAction::of).collect(),
        revision: wire.revision,
        funnel: funnel::funnel(&wire),
        percent: funnel::percent(&wire),
        eta: funnel::eta(&wire),
        controls: wire.controls.as_ref().map(Controls::of).unwrap_or_default(),
        stop_when: wire.stop_when.map(StopWhen::of),
        plan: Some(wire.plan_id.clone()).filter(|plan| !plan.is_empty()),
        summary: summary(&wire.queue_name, &wire.queues),
        stages: wire.queues.into_iter().map(stage).collect(),
        failures: wire.failures.into_iter().map(failure).collect(),
        trigger: wire.trigger,
        service: wire.queue_name,
        scope: wire.scope,
        reason: wire.reason,
        operator: wire.operator_subject,
    })
}

/// The state as operators read it; none for one that is none.
pub(super) fn state(wire: OperationState) -> Option<OperationStateName> {
    Some(match wire {
        OperationState::AwaitingApproval => OperationStateName::AwaitingApproval,
        OperationState::Running => OperationStateName::Running,
        OperationState::Paused => OperationStateName::Paused,
        OperationState::Held => OperationStateName::Held,
        OperationState::Cancelling => OperationStateName::Cancelling,
        OperationState::Cancelled => OperationStateName::Cancelled,
        OperationState::Succeeded => OperationStateName::Succeeded,
        OperationState::FinishedWithFailures => OperationStateName::FinishedWithFailures,
        OperationState::Unspecified => return None,
    })
}

/// What failed there and was not taken over by a retry.
fn open_failures(queue: &QueueCounts) -> i64 {
    queue.failed - queue.retried + queue.parents_failed - queue.parents_retried
}

fn retry_of(tenant: &TenantId, wire: &WireRetry) -> RetryOf {
    let tracking_id = wire.tracking_id.clone();
    RetryOf {
        operation: format!("/v1/tenants/{tenant}/operations/{tracking_id}"),
        tracking_id,
        items: wire.items,
        complete: wire.complete,
    }
}

/// The first stage says how many labels there are and how many needed nothing; each later one only sees what changed.
pub(super) fn summary(origin: &str, queues: &[QueueCounts]) -> Summary {
    let changed = |stage: &str| -> i64 {
        queues
            .iter()
            .filter(|queue| wire::stage_of(&queue.queue_name) == stage)
            .map(|queue| queue.done - queue.unchanged)
            .sum()
    };
    let first = queues.iter().find(|queue| queue.queue_name == origin);
    let exporter = queues.iter().find(|queue| wire::stage_of(&queue.queue_name) == "exported");
    let confirmed = changed("exported");
    Summary {
        labels: first.map_or(0, |queue| queue.enqueued - queue.coalesced),
        rendered: changed("rendered"),
        unchanged: first.map_or(0, |queue| queue.unchanged),
        exported: confirmed + exporter.map_or(0, |queue| queue.handed_over + queue.failed_handed_over),
        confirmed,
        failed: queues.iter().map(|queue| queue.failed).sum(),
    }
}

fn stage(wire: QueueCounts) -> Stage {
    Stage {
        stage: wire::stage_of(&wire.queue_name),
        service: wire.queue_name,
        labels: Counts {
            received: wire.enqueued,
            done: wire.done,
            failed: wire.failed,
            coalesced: wire.coalesced,
            cancelled: wire.cancelled,
            waiting: wire.waiting,
            leased: wire.leased,
        },
        unchanged: wire.unchanged,
        handed_over: wire.handed_over,
        parents: Counts {
            received: wire.parents_enqueued,
            done: wire.parents_done,
            failed: wire.parents_failed,
            coalesced: wire.parents_coalesced,
            cancelled: wire.parents_cancelled,
            waiting: wire.parents_waiting,
            leased: wire.parents_leased,
        },
    }
}

fn failure(wire: FailureGroup) -> Failure {
    Failure {
        stage: wire::stage_of(&wire.queue_name),
        service: wire.queue_name,
        cause: wire.cause,
        count: wire.count,
        retried: wire.retried,
        handed_over: wire.handed_over,
        sample: wire.sample_urn,
    }
}
