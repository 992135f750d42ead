//! Counts of operations, and samples of how far they were.

use db::row::ResultRow;

use super::Columns;
use crate::{
    StoreError,
    model::{ByEvidence, Counts, LedgerKey, Pace, RowKind},
};

/// Counts with their key, out of the columns of the ledger.
pub(crate) fn read_counts<R: ResultRow>(row: &R) -> Result<(LedgerKey, Counts), StoreError> {
    let columns = Columns { table: "cqs_ledger", row, key: "lane" };
    let kind = if columns.get("is_parent")? { RowKind::Parent } else { RowKind::Label };
    let key = LedgerKey { lane: columns.get("lane")?, queue: columns.queue("queue")?, kind };
    let counts = Counts {
        enqueued: columns.get("enqueued")?,
        done: columns.get("done")?,
        unchanged: columns.get("unchanged")?,
        failed: columns.get("failed")?,
        coalesced: columns.get("coalesced")?,
        cancelled: columns.get("cancelled")?,
        waiting: columns.get("waiting")?,
        leased: columns.get("leased")?,
        handed_over: columns.get("handed_over")?,
        confirmed_by: ByEvidence {
            written: columns.get("written")?,
            transferred: columns.get("transferred")?,
            displayed: columns.get("displayed")?,
        },
        failed_handed_over: columns.get("failed_handed_over")?,
    };
    Ok((key, counts))
}

/// A row of `cqs_pace`.
pub(crate) fn read_pace<R: ResultRow>(row: &R) -> Result<Pace, StoreError> {
    let columns = Columns { table: "cqs_pace", row, key: "lane" };
    Ok(Pace {
        lane: columns.get("lane")?,
        queue: columns.queue("queue")?,
        at: columns.time("at")?,
        gone: columns.get("gone")?,
    })
}
