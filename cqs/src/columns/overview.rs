//! How all of it stands.

use db::row::ResultRow;

use super::Columns;
use crate::{
    StoreError,
    model::{Load, OperationTally},
};

/// The columns `queue`, `kind`, `ready`, `delayed`, `cancelled`, `leased`, `first_sla`.
pub(crate) fn read_load<R: ResultRow>(row: &R) -> Result<Load, StoreError> {
    let columns = Columns { table: "cqs_head", row, key: "kind" };
    Ok(Load {
        queue: columns.queue("queue")?,
        kind: columns.parse("kind")?,
        ready: columns.get("ready")?,
        delayed: columns.get("delayed")?,
        cancelled: columns.get("cancelled")?,
        leased: columns.get("leased")?,
        first_sla: columns.time_if("first_sla")?,
    })
}

/// The columns `queue` and `failed`.
pub(crate) fn read_failed<R: ResultRow>(row: &R) -> Result<(i64, i64), StoreError> {
    let columns = Columns { table: "cqs_dead", row, key: "failed" };
    Ok((columns.queue("queue")?, columns.get("failed")?))
}

/// The columns `cancelling`, `awaiting`, `held`, `paused` and `unfinished`, which is all of them and the running ones.
pub(crate) fn read_tally<R: ResultRow>(row: &R) -> Result<OperationTally, StoreError> {
    let columns = Columns { table: "cqs_operation", row, key: "unfinished" };
    let mut tally = OperationTally {
        cancelling: columns.get("cancelling")?,
        awaiting_approval: columns.get("awaiting")?,
        held: columns.get("held")?,
        paused: columns.get("paused")?,
        running: 0,
    };
    let stopped = tally.cancelling + tally.awaiting_approval + tally.held + tally.paused;
    tally.running = columns.get::<i64>("unfinished")? - stopped;
    Ok(tally)
}
