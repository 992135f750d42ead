//! Before a parent's labels are exported again, what is known of them is withdrawn: their statuses say `lost`.
//!
//! Then the one rule sends them, as after any loss. What was withdrawn before a split that is repeated stays withdrawn.

use domain::{DtoType, ErrorCode, Notification, Refusal, SplitItem};
use proto::records::v1::StoreEslStatus;

use super::status;
use crate::runtime::{CallError, Context, Label, LabelRef, Reads, RecordWrite, WriteState, write_many};

/// Labels read and written together: some hundred bytes each, one transaction stays short.
const CHUNK: usize = 1_024;
/// Rounds while statuses change meanwhile. Nobody else writes them while the store is held, so one is enough.
const ROUNDS_MAX: usize = 3;

/// Withdraws what is known of the children's labels.
pub(super) async fn withdraw(
    context: Context<'_>,
    parent: &Notification,
    children: &[SplitItem],
) -> Result<(), CallError> {
    let labels: Vec<LabelRef> = children.iter().filter_map(|child| LabelRef::of(child.target.urn())).collect();
    for chunk in labels.chunks(CHUNK) {
        let mut left = chunk.to_vec();
        for _ in 0..ROUNDS_MAX {
            left = once(context, parent, left).await?;
            if left.is_empty() {
                break;
            }
        }
        if !left.is_empty() {
            return Err(CallError::Fault(Refusal::new(ErrorCode::Unavailable, "the statuses kept changing")));
        }
    }
    Ok(())
}

/// One round; the labels whose status changed meanwhile.
async fn once(context: Context<'_>, parent: &Notification, labels: Vec<LabelRef>) -> Result<Vec<LabelRef>, CallError> {
    let mut reads = Reads::default();
    for label in &labels {
        reads.want(DtoType::StoreEslStatus, label.record(DtoType::StoreEslStatus));
    }
    let read = reads.fetch(context.platform).await?;
    let why = format!("exported again with {}", parent.item.target.urn());
    let (mut writes, mut written) = (Vec::new(), Vec::new());
    for name in labels {
        // A status that cannot be read is written anew when its label is handled.
        let Ok(found) = read.record::<StoreEslStatus>(&name.record(DtoType::StoreEslStatus)) else { continue };
        let Some(before) = found.record else { continue };
        if before.confirmed_digest.is_empty() && before.sent_digest.is_empty() {
            continue;
        }
        let status = status::withdrawn(before, &why, context.clock.now());
        let label =
            Label { name, sla: parent.sla, tracking_id: parent.tracking_id.clone(), notifications: vec![parent.id] };
        writes.push(RecordWrite::put(&label, DtoType::StoreEslStatus, &status, vec![found.input]));
        written.push(label.name);
    }
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let states = write_many(context.platform, context.lease, writes).await?;
    let changed = written.into_iter().zip(states).filter(|(_, state)| *state == WriteState::InputChanged);
    Ok(changed.map(|(label, _)| label).collect())
}
