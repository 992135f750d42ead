//! What a batch of changes does to records, aliases, counts and queues. Pure: the twins read, ask here, and write.

use std::collections::{BTreeMap, HashMap};

use cqs::announce::{Announce, Announcement, LeaseLane};
use domain::{AliasName, DtoType, LaneKind, RecordId, StoreId, TrackingId, Urn};
use prost::bytes::Bytes;

use crate::{
    alias::AliasKey,
    history::{self, HistoryCause, Note, Notes},
    model::{Change, Content, Version, WriteBatch, WriteResult, WriteStatus},
    store::{Result, StoreError},
};

/// A record as a write finds it.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    /// Its version, deleted or not.
    pub(crate) version: Version,
    /// Whether it is there.
    pub(crate) presence: Presence,
    /// What the index holds for it (sorted); nothing when deleted.
    pub(crate) aliases: Vec<AliasKey>,
    /// Its bytes, where a history tells of its type and it is there.
    pub(crate) payload: Option<Bytes>,
}

/// Whether a record is there, and what its bytes are against a change's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Deleted.
    Deleted,
    /// There, with the very bytes of the change.
    Same,
    /// There, with other bytes (or the change is a delete).
    Other,
}

/// A record's row to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Put {
    /// Index of the change.
    pub(crate) change: usize,
    /// The version it gets.
    pub(crate) version: Version,
}

/// A parent in the index; the tenant is the batch's. Tenant-scoped records have no store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) dto_type: DtoType,
    pub(crate) alias: AliasName,
    pub(crate) base: String,
    pub(crate) store: Option<StoreId>,
}

/// Changes of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AliasChange {
    pub(crate) added: Vec<(Place, RecordId)>,
    pub(crate) removed: Vec<(Place, RecordId)>,
    /// Never zero.
    pub(crate) deltas: BTreeMap<Place, i64>,
}

impl AliasChange {
    /// Brings what the index holds for a record from `old` to `new`, both sorted.
    pub(crate) fn note(&mut self, dto_type: DtoType, urn: &Urn, old: &[AliasKey], new: &[AliasKey]) {
        let Some(id) = urn.record_id() else { return };
        let place =
            |key: &AliasKey| Place { dto_type, alias: key.alias, base: key.base.clone(), store: urn.store().cloned() };
        for key in new.iter().filter(|key| old.binary_search(key).is_err()) {
            let place = place(key);
            self.count(&place, 1);
            self.added.push((place, id.clone()));
        }
        for key in old.iter().filter(|key| new.binary_search(key).is_err()) {
            let place = place(key);
            self.count(&place, -1);
            self.removed.push((place, id.clone()));
        }
    }

    fn count(&mut self, place: &Place, by: i64) {
        let delta = self.deltas.entry(place.clone()).or_default();
        *delta += by;
        if *delta == 0 {
            self.deltas.remove(place);
        }
    }
}

/// What a batch does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) results: Vec<WriteResult>,
    pub(crate) puts: Vec<Put>,
    pub(crate) aliases: AliasChange,
    pub(crate) announcements: Vec<Announcement>,
    pub(crate) history: Notes,
}

/// Refuses a batch that its lease does not cover: another tenant's records, or, in an operation's lane, another tracking
/// id than the operation's. Returns the tracking ids that must not be an operation's.
pub(crate) fn authorize(batch: &WriteBatch, lane: Option<&LeaseLane>) -> Result<Vec<TrackingId>> {
    let operation = match lane {
        Some(lane) if lane.tenant != batch.tenant => {
            return Err(StoreError::denied("lease", "is a lease on another tenant's notifications"));
        }
        Some(LeaseLane { kind: LaneKind::Operation, tracking_id: Some(id), .. }) => Some(id),
        Some(_) | None => None,
    };
    let Some(operation) = operation else {
        let mut named: Vec<TrackingId> = batch.changes.iter().filter_map(|change| change.tracking_id.clone()).collect();
        named.sort_unstable();
        named.dedup();
        return Ok(named);
    };
    match batch.changes.iter().position(|change| change.tracking_id.as_ref() != Some(operation)) {
        Some(index) => Err(StoreError::denied(
            format!("items[{index}].tracking_id"),
            "must be that of the operation whose notification the lease holds",
        )),
        None => Ok(Vec::new()),
    }
}

/// The refusal of a write under an operation's tracking id without its lease.
pub(crate) fn operation_refused(batch: &WriteBatch, operation: &TrackingId) -> StoreError {
    let index = batch.changes.iter().position(|change| change.tracking_id.as_ref() == Some(operation));
    StoreError::denied(
        format!("items[{}].tracking_id", index.unwrap_or_default()),
        "is an operation's: only writes under a lease on its notifications may carry it",
    )
}

/// Decides each change. `current` is one per change; `versions` holds every input's version, 0 where absent.
pub(crate) fn plan(
    batch: &WriteBatch,
    current: &[Option<Current>],
    versions: &HashMap<Urn, Version>,
    lane: Option<&LeaseLane>,
) -> Plan {
    let is_operation = lane.is_some_and(|lane| lane.kind == LaneKind::Operation);
    let cause = if is_operation { HistoryCause::Operation } else { HistoryCause::Change };
    let mut plan = Plan { history: Notes { cause, ..Notes::default() }, ..Plan::default() };
    for (index, change) in batch.changes.iter().enumerate() {
        let current = current.get(index).and_then(Option::as_ref);
        let version = current.map_or(0, |current| current.version);
        let status = status(change, current, versions);
        let result = match status {
            WriteStatus::Written => {
                let (old, new): (&[AliasKey], &[AliasKey]) =
                    (current.map_or(&[], |current| &current.aliases), change.content.aliases());
                plan.aliases.note(change.dto_type, &change.urn, old, new);
                plan.puts.push(Put { change: index, version: version + 1 });
                note(&mut plan.history, (index, change), current, version + 1);
                plan.announcements.push(announcement(change, lane, Announce::Always));
                WriteResult { status, version: version + 1 }
            }
            WriteStatus::Unchanged => {
                plan.announcements.push(announcement(change, lane, Announce::OnlyIfUndelivered));
                WriteResult { status, version }
            }
            WriteStatus::InputChanged => WriteResult { status, version },
        };
        plan.results.push(result);
    }
    plan
}

/// Notes what the change says of its label.
fn note(notes: &mut Notes, (index, change): (usize, &Change), current: Option<&Current>, version: Version) {
    let before = current.and_then(|current| current.payload.as_deref());
    if let Some(told) = history::told(change.dto_type, before, change.content.payload()) {
        notes.entries.push(Note { change: index, told });
    }
    if let (true, Some(store), Some(label)) =
        (history::cuts(change.dto_type, version), change.urn.store(), change.urn.record_id())
    {
        notes.cut.push((store.clone(), label.clone()));
    }
}

fn status(change: &Change, current: Option<&Current>, versions: &HashMap<Urn, Version>) -> WriteStatus {
    // First the inputs: bytes made from stale inputs say nothing, also when they happen to equal what is there.
    let stale =
        change.inputs.iter().any(|input| versions.get(&input.urn).copied().unwrap_or_default() != input.version);
    if stale {
        return WriteStatus::InputChanged;
    }
    let presence = current.map_or(Presence::Deleted, |current| current.presence);
    match (&change.content, presence) {
        (Content::Put { .. }, Presence::Same) | (Content::Delete, Presence::Deleted) => WriteStatus::Unchanged,
        (Content::Put { .. }, Presence::Other | Presence::Deleted)
        | (Content::Delete, Presence::Same | Presence::Other) => WriteStatus::Written,
    }
}

fn announcement(change: &Change, lane: Option<&LeaseLane>, announce: Announce) -> Announcement {
    Announcement {
        dto_type: change.dto_type,
        urn: change.urn.clone(),
        sla: change.sla,
        tracking_id: change.tracking_id.clone(),
        lane: lane.map(|lane| lane.lane),
        announce,
    }
}

impl Content {
    /// The bytes it has from now on; none when it is deleted.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        match self {
            Self::Put { payload, .. } => Some(payload),
            Self::Delete => None,
        }
    }

    /// The aliases the record has from now on.
    pub(crate) fn aliases(&self) -> &[AliasKey] {
        match self {
            Self::Put { aliases, .. } => aliases,
            Self::Delete => &[],
        }
    }
}
