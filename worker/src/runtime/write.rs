//! Bulk writes under a lease, with the versions of every input.

use domain::{DtoType, LeaseRef, Timestamp, TrackingId, Urn};
use proto::{
    dtoflow::v1::{
        DeleteItem, DeleteManyRequest, InputVersion, PutItem, PutManyRequest, WriteLease, WriteResult, WriteStatus,
    },
    timestamp_to_wire,
};

use super::{CallError, Label, Platform};

/// Most payload bytes of one write call: well inside the message bound, and one transaction stays short.
const CALL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An input and the version it was read at; 0 when it was absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) dto_type: DtoType,
    pub(crate) urn: Urn,
    pub(crate) version: i64,
}

/// What happens to the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// It becomes these bytes.
    Put(Vec<u8>),
    /// It goes.
    Delete,
}

/// One write of a service's own record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordWrite {
    pub(crate) dto_type: DtoType,
    pub(crate) urn: Urn,
    pub(crate) change: Change,
    pub(crate) inputs: Vec<Input>,
    pub(crate) sla: Timestamp,
    pub(crate) tracking_id: Option<TrackingId>,
}

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteState {
    /// Written, at this version.
    Written(i64),
    /// The record was so already, at this version.
    Unchanged(i64),
    /// An input changed: nothing was written.
    InputChanged,
}

impl RecordWrite {
    /// Puts a label's record; SLA and tracking id of the label go on.
    pub(crate) fn put(label: &Label, dto_type: DtoType, record: &impl prost::Message, inputs: Vec<Input>) -> Self {
        Self::of(label, dto_type, Change::Put(record.encode_to_vec()), inputs)
    }

    /// Deletes a label's record.
    pub(crate) fn delete(label: &Label, dto_type: DtoType, inputs: Vec<Input>) -> Self {
        Self::of(label, dto_type, Change::Delete, inputs)
    }

    fn of(label: &Label, dto_type: DtoType, change: Change, inputs: Vec<Input>) -> Self {
        Self {
            dto_type,
            urn: label.name.record(dto_type),
            change,
            inputs,
            sla: label.sla,
            tracking_id: label.tracking_id.clone(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.change {
            Change::Put(payload) => payload.len(),
            Change::Delete => 0,
        }
    }
}

/// Writes everything, puts and deletes, in as few calls as the bounds allow; results in order.
pub(crate) async fn write_many(
    platform: &Platform,
    lease: &LeaseRef,
    writes: Vec<RecordWrite>,
) -> Result<Vec<WriteState>, CallError> {
    let mut states = vec![WriteState::InputChanged; writes.len()];
    let (mut puts, mut deletes) = (Calls::default(), Calls::default());
    for (index, write) in writes.into_iter().enumerate() {
        let bytes = write.bytes();
        let (dto_type, dto_id) = (write.dto_type.to_string(), write.urn.to_string());
        let inputs = write.inputs.iter().map(input_to_wire).collect();
        let sla_timestamp = Some(timestamp_to_wire(write.sla));
        let tracking_id = write.tracking_id.map(|id| id.to_string()).unwrap_or_default();
        match write.change {
            Change::Put(payload) => {
                puts.push(
                    index,
                    bytes,
                    PutItem { dto_type, dto_id, payload: payload.into(), inputs, sla_timestamp, tracking_id },
                );
            }
            Change::Delete => {
                deletes.push(index, bytes, DeleteItem { dto_type, dto_id, inputs, sla_timestamp, tracking_id });
            }
        }
    }
    let named = || Some(WriteLease { queue_name: lease.queue.to_string(), generation: lease.generation });
    for (indices, items) in puts.0 {
        let results = platform.put_many(PutManyRequest { items, lease: named() }).await?;
        place(&mut states, &indices, &results)?;
    }
    for (indices, items) in deletes.0 {
        let results = platform.delete_many(DeleteManyRequest { items, lease: named() }).await?;
        place(&mut states, &indices, &results)?;
    }
    Ok(states)
}

/// Items of one kind, cut into calls.
struct Calls<T>(Vec<(Vec<usize>, Vec<T>)>, usize);

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self(Vec::new(), 0)
    }
}

impl<T> Calls<T> {
    fn push(&mut self, index: usize, bytes: usize, item: T) {
        let full = self.0.last().is_none_or(|(indices, _)| {
            indices.len() >= domain::limits::RECORDS_PER_CALL_MAX || self.1 + bytes > CALL_BYTES_MAX
        });
        if full {
            self.0.push((Vec::new(), Vec::new()));
            self.1 = 0;
        }
        self.1 += bytes;
        if let Some((indices, items)) = self.0.last_mut() {
            indices.push(index);
            items.push(item);
        }
    }
}

fn input_to_wire(input: &Input) -> InputVersion {
    InputVersion { dto_type: input.dto_type.to_string(), dto_id: input.urn.to_string(), version: input.version }
}

fn place(states: &mut [WriteState], indices: &[usize], results: &[WriteResult]) -> Result<(), CallError> {
    if indices.len() != results.len() {
        return Err(CallError::answer("a write call answered another number of results than it had items"));
    }
    for (index, result) in indices.iter().zip(results) {
        let state = match result.status() {
            WriteStatus::Written => WriteState::Written(result.version),
            WriteStatus::Unchanged => WriteState::Unchanged(result.version),
            WriteStatus::InputChanged => WriteState::InputChanged,
            WriteStatus::Unspecified => return Err(CallError::answer("a write call answered no status")),
        };
        if let Some(slot) = states.get_mut(*index) {
            *slot = state;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_cut_by_bytes_and_count() {
        let mut calls = Calls::default();
        for index in 0..70 {
            calls.push(index, 320 * 1024, index);
        }
        assert!(calls.0.iter().all(|(_, items)| items.len() * 320 * 1024 <= CALL_BYTES_MAX));
        let order: Vec<usize> = calls.0.iter().flat_map(|(indices, _)| indices.clone()).collect();
        assert_eq!(order, (0..70).collect::<Vec<_>>());
        let mut calls = Calls::default();
        for index in 0..5_000 {
            calls.push(index, 0, ());
        }
        assert_eq!(calls.0.iter().map(|(_, items)| items.len()).collect::<Vec<_>>(), [4_096, 904]);
    }
}
