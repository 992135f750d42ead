//! The dead letter, retries of what lies in it, and where a record is.

use db::row::ResultRow;
use domain::Timestamp;

use super::{Columns, read_rows};
use crate::{
    StoreError,
    model::{DeadRow, FailureGroup, FateState, RecordFate, RetryRule, Row},
};

/// Rows of `cqs_dead` of one queue: the columns of a waiting row, then `position`, `at` and `retried_by`.
pub(crate) fn read_dead<R: ResultRow>(queue: i64, rows: &[R]) -> Result<Vec<DeadRow>, StoreError> {
    let dead = |(row, mut failed): (&R, Row)| {
        let columns = Columns { table: "cqs_dead", row, key: "id" };
        Ok(DeadRow {
            position: columns.get("position")?,
            queue,
            cause: std::mem::take(&mut failed.cause),
            row: failed,
            at: columns.time("at")?,
            retried_by: columns.get("retried_by")?,
        })
    };
    rows.iter().zip(read_rows("cqs_dead", rows)?).map(dead).collect()
}

/// A row of `cqs_dead_group`, with the name of its queue.
pub(crate) fn read_group<R: ResultRow>(row: &R) -> Result<FailureGroup, StoreError> {
    let columns = Columns { table: "cqs_dead_group", row, key: "cause" };
    Ok(FailureGroup {
        queue: columns.parse("name")?,
        cause: columns.get("cause")?,
        count: columns.get("failed")?,
        retried: columns.get("retried")?,
        handed_over: columns.get("handed_over")?,
        sample_urn: columns.get("sample_urn")?,
    })
}

/// A row of `cqs_retry`.
pub(crate) fn read_rule<R: ResultRow>(row: &R) -> Result<RetryRule, StoreError> {
    let columns = Columns { table: "cqs_retry", row, key: "lane" };
    Ok(RetryRule {
        lane: columns.get("lane")?,
        queue: columns.queue("queue")?,
        parent_lane: columns.get("parent_lane")?,
        tracking_id: columns.parse("tracking_id")?,
        parent_tracking_id: columns.parse("parent_tracking_id")?,
        cause: columns.get("cause")?,
        up_to: columns.get("up_to")?,
        position: columns.get("position")?,
        labels: columns.get("labels")?,
        parents: columns.get("parents")?,
        handed_over: columns.get("handed_over")?,
        labels_given_back: columns.get("labels_given_back")?,
        parents_given_back: columns.get("parents_given_back")?,
        done: columns.get("done")?,
    })
}

/// A record that waits, is leased or failed, with the name of the queue.
pub(crate) fn read_fate<R: ResultRow>(row: &R) -> Result<RecordFate, StoreError> {
    let columns = Columns { table: "cqs_dead", row, key: "urn" };
    let state = match columns.get("state")? {
        "waiting" => FateState::Waiting { due_at: columns.time_if("due_at")?, cause: columns.get("cause")? },
        "leased" => FateState::Leased,
        _ => FateState::Dead { cause: columns.get("cause")?, at: Timestamp::from_ms(columns.get("at")?) },
    };
    Ok(RecordFate {
        queue: columns.parse("queue")?,
        dto_type: columns.parse("dto_type")?,
        urn: columns.parse("urn")?,
        state,
        attempts: columns.get("attempts")?,
        sla: columns.time("sla")?,
        tracking_id: columns.parse_if("tracking_id")?,
    })
}
