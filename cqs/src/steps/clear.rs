//! What a cancelled operation left waiting is removed, in bounded chunks.
//!
//! It was counted as cancelled when the operation was; nothing of the ledger changes here. The records are marked
//! undelivered, so that a later write that changes nothing announces them again. Failures that a retry had taken over are
//! open again where they failed.

use domain::Timestamp;

use crate::{StoreError, unit::Unit};

use super::{
    arrive::records,
    changes::{Changes, Place},
    lease::lane_of,
    retry::give_back,
};

/// Rows removed in one chunk: some milliseconds of the writer, so that a claim of another lane waits no longer for it than
/// for its own sync.
const CLEAR_ROWS: usize = 512;

/// Removes some rows of one cancelled lane; false when no lane has any left.
pub(crate) async fn clear<U: Unit>(unit: &mut U, now: Timestamp) -> Result<bool, StoreError> {
    let Some(lane) = unit.lane_clearing().await? else { return Ok(false) };
    let lane = lane_of(unit, lane).await?;
    let mut left = CLEAR_ROWS;
    for queue in unit.queue_list().await? {
        if left == 0 {
            break;
        }
        let rows = unit.row_of_lane(queue.id, lane.id, left).await?;
        if rows.is_empty() {
            continue;
        }
        left -= rows.len().min(left);
        let place = Place { queue: &queue, lane: &lane };
        let mut changes = Changes::default();
        for row in &rows {
            changes.waited(place, row);
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        unit.row_remove(queue.id, lane.id, &ids).await?;
        give_back(unit, place, &rows).await?;
        unit.undelivered_put(queue.id, &records(rows.iter())).await?;
        changes.write(unit, now).await?;
    }
    if left == CLEAR_ROWS {
        unit.lane_cleared(lane.id).await?;
    }
    Ok(true)
}
