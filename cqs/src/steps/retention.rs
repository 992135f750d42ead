//! What is over is forgotten after its time, in bounded rounds. Undelivered marks are not: they say what is still to be
//! announced, whatever is known of why.

use domain::Timestamp;

use crate::{RetentionSettings, StoreError, unit::Unit};

/// Failures forgotten by one unit of work: a few milliseconds.
const FORGET_ROWS: usize = 1_000;
/// Operations forgotten by one unit of work.
const FORGET_OPERATIONS: usize = 16;

/// One bounded round; true when more is to be forgotten.
pub(crate) async fn retain<U: Unit>(
    unit: &mut U,
    settings: RetentionSettings,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let before = now.plus_ms(-settings.operations_ms);
    let expired = unit.operation_expired(before, FORGET_OPERATIONS).await?;
    let mut more = expired.len() == FORGET_OPERATIONS;
    for lane in expired {
        if !unit.operation_forget(lane, FORGET_ROWS).await? {
            // The next round goes on with the same one.
            return Ok(true);
        }
    }
    let before = now.plus_ms(-settings.failures_ms);
    more |= unit.dead_prune(before, FORGET_ROWS).await? == FORGET_ROWS;
    Ok(more)
}
