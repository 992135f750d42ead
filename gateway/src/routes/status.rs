//! `/v1/status`: how the platform stands, for people on call.

use std::sync::Arc;

use axum::{Json, extract::State};
use domain::{OperatorScope, Timestamp};
use proto::cqs::v1::{GetOverviewRequest, OperationTally as WireTally, Overview, QueueLoad as WireLoad, QueueOverview};
use serde::Serialize;
use utoipa::ToSchema;

use super::brake::Brake;
use crate::{
    auth::Operator,
    backend::{Peer, call},
    problem::{Problem, ReadProblems},
    state::Gateway,
    wire::{self, WireTime as _},
};

/// How the platform stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    /// When, RFC 3339.
    at: String,
    /// The brake.
    brake: Brake,
    /// Operations that are not over.
    operations: OperationTally,
    /// Every service with what it has to do, in the order in which they first came.
    services: Vec<ServiceStatus>,
}

/// Operations that are not over, each counted once, under the first of these that applies.
#[derive(Serialize, ToSchema)]
pub(crate) struct OperationTally {
    /// Cancelled, with something still in workers' hands.
    cancelling: i64,
    /// Waiting for a second operator.
    awaiting_approval: i64,
    /// Stopped by the platform.
    held: i64,
    /// Stopped by a person.
    paused: i64,
    /// Nothing of these.
    running: i64,
}

/// What a service has to do.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServiceStatus {
    /// The service.
    service: String,
    /// When a worker of it asked for work last, give or take a few seconds, RFC 3339; null: never.
    asked_at: Option<String>,
    /// What changes of records gave it to do.
    changes: Load,
    /// What changed models, designs and the like fan out to.
    fan_out: Load,
    /// What operations gave it to do.
    operations: Load,
    /// Items that failed and that no retry took over, as far as failures are kept; at most 100,000 over all services.
    failed: i64,
}

/// Labels, and scopes yet to be split into labels, of one kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct Load {
    /// Wait and may be begun; counted to 100,000 at least.
    ready: i64,
    /// Wait for a time of their own: for a confirmation, or after a failed attempt; counted to 100,000 at least.
    delayed: i64,
    /// In workers' hands.
    leased: i64,
    /// How long the one that was due first has been due, in seconds; 0 when none is due yet, when nothing is ready, and
    /// for what a person, a hold or the brake stops.
    late_s: i64,
}

impl Status {
    pub(crate) fn of(overview: &Overview, now: Timestamp) -> Self {
        Self {
            at: now.to_string(),
            brake: Brake::of(&overview.brake.clone().unwrap_or_default()),
            operations: OperationTally::of(&overview.operations.unwrap_or_default()),
            services: overview.queues.iter().map(|queue| ServiceStatus::of(queue, now)).collect(),
        }
    }
}

impl OperationTally {
    fn of(wire: &WireTally) -> Self {
        Self {
            cancelling: wire.cancelling,
            awaiting_approval: wire.awaiting_approval,
            held: wire.held,
            paused: wire.paused,
            running: wire.running,
        }
    }
}

impl ServiceStatus {
    fn of(wire: &QueueOverview, now: Timestamp) -> Self {
        let load = |load: Option<WireLoad>| Load::of(&load.unwrap_or_default(), now);
        Self {
            service: wire.queue_name.clone(),
            asked_at: wire::time(wire.polled_at.as_ref()),
            changes: load(wire.ordinary),
            fan_out: load(wire.fan_out),
            operations: load(wire.operations),
            failed: wire.failed,
        }
    }
}

impl Load {
    fn of(wire: &WireLoad, now: Timestamp) -> Self {
        let late_ms = wire.first_sla.and_then(|sla| sla.timestamp()).map_or(0, |sla| now.ms_since(sla).max(0));
        Self { ready: wire.ready, delayed: wire.delayed, leased: wire.leased, late_s: late_ms / 1_000 }
    }
}

/// How the platform stands: the brake, operations that are not over, and what each service has to do and how late it is.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "get_status", tag = "operations",
    description = "Of all tenants together, whatever the token's: workers and the brake are everybody's. Names no tenant, \
    label or operation.",
    security(("operator" = ["operations:read"])),
    responses((status = 200, description = "How it stands.", body = Status), ReadProblems)
)]
pub(crate) async fn get_status(
    State(gateway): State<Arc<Gateway>>,
    operator: Operator,
) -> Result<Json<Status>, Problem> {
    operator.require(OperatorScope::OperationsRead)?;
    let overview = call(Peer::Cqs, gateway.cqs().get_overview(GetOverviewRequest {})).await?;
    Ok(Json(Status::of(&overview, gateway.clock.now())))
}
