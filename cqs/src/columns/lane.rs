//! Lanes, what they have in a queue, and leases.

use db::row::ResultRow;

use super::Columns;
use crate::{
    StoreError,
    model::{Gate, Lane, Lease, Limits, PlaceReport},
};

/// A row of `cqs_lane`; `cancelled` says whether it is.
pub(crate) fn read_lane<R: ResultRow>(row: &R) -> Result<Lane, StoreError> {
    let columns = Columns { table: "cqs_lane", row, key: "lane" };
    Ok(Lane {
        id: columns.get("lane")?,
        tenant: columns.parse("tenant")?,
        kind: columns.parse("kind")?,
        tracking_id: columns.parse_if("tracking_id")?,
        gate: Gate {
            closed: columns.get("closed")?,
            cancelled: columns.get("cancelled")?,
            limits: Limits {
                throttle_per_s: columns.get("throttle_per_s")?,
                max_in_flight: columns.get("max_in_flight")?,
            },
            stops: columns.get("stops")?,
        },
    })
}

/// A lane in a queue, with what waits and is leased there.
pub(crate) fn read_place<R: ResultRow>(row: &R) -> Result<PlaceReport, StoreError> {
    let columns = Columns { table: "cqs_place", row, key: "queue" };
    Ok(PlaceReport {
        queue: columns.queue("queue")?,
        ready: columns.get("ready")?,
        delayed: columns.get("delayed")?,
        leased_labels: columns.get("leased_labels")?,
        closed_until: columns.time_if("closed_until")?,
        waiting_since: columns.time_if("waiting_since")?,
        next_due: columns.time_if("next_due")?,
        leased_until: columns.time_if("leased_until")?,
    })
}

/// A row of `cqs_lease`.
pub(crate) fn read_lease<R: ResultRow>(row: &R) -> Result<Lease, StoreError> {
    let columns = Columns { table: "cqs_lease", row, key: "generation" };
    Ok(Lease {
        generation: columns.get("generation")?,
        queue: columns.queue("queue")?,
        lane: columns.get("lane")?,
        store: columns.parse_if("store")?,
        owner: columns.parse("owner")?,
        worker_id: columns.get("worker_id")?,
        expires_at: columns.time("expires_at")?,
    })
}
