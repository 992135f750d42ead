//! What is kept of a label's past: which picture it was to show, and how each came to an end at the label.
//!
//! Invariants
//! - An entry is written in the transaction of the write that it tells of, and only by what changed: a picture, or the end
//!   of a delivery. Steps in between stand in the status and are not kept.
//! - A label keeps its last `KEPT_MAX` entries, and none for longer than upkeep allows ([`crate::HistoryKeeper`]).
//!
//! Deliberately not here: why and on whose behalf (the operation of that tracking id says it, while it is kept).

use domain::{DtoType, RecordId, ServiceIdentity, StoreId, TenantId, Timestamp, TrackingId};
use prost::Message;
use proto::records::v1::{DeliveryState, EslImage, Evidence, StoreEslStatus};

use crate::model::{Change, Version, WriteBatch};

/// SHA-256 of a picture.
pub type Digest = [u8; 32];

/// Entries a label keeps: a quarter of changes once a week with what became of each, a month of daily ones. At up to 250
/// bytes an entry, some 16 KiB a label.
pub(crate) const KEPT_MAX: usize = 64;
/// Versions of one of its records between two cuts of a label's history to `KEPT_MAX`: a version adds one entry at most,
/// so a label never has more than `KEPT_MAX` and twice this. Cutting at every write would cost more than the entries.
const CUT_EVERY: Version = 32;

/// Types whose changes are kept; each record belongs to the label of its id.
pub(crate) const TOLD: [DtoType; 2] = [DtoType::EslImage, DtoType::StoreEslStatus];

/// What happened to a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryEvent {
    /// It shall show another picture.
    Picture,
    /// No picture is meant for it any more.
    Removed,
    /// A picture was confirmed.
    Confirmed,
    /// A picture will not arrive, as things are.
    Failed,
    /// What it showed, or what was on its way, was lost or withdrawn.
    Lost,
}

impl HistoryEvent {
    /// Every event.
    pub const ALL: [Self; 5] = [Self::Picture, Self::Removed, Self::Confirmed, Self::Failed, Self::Lost];

    /// As it is stored.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Picture => "picture",
            Self::Removed => "removed",
            Self::Confirmed => "confirmed",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }

    /// From as it is stored.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }
}

/// Under what the write happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryCause {
    /// An ordinary change, or what one fanned out to.
    #[default]
    Change,
    /// A lease on an operation's notifications: the tracking id is the operation's.
    Operation,
}

/// One entry, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Only grows; orders a label's entries.
    pub position: i64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: HistoryEvent,
    /// Under what.
    pub cause: HistoryCause,
    /// Who wrote it.
    pub written_by: ServiceIdentity,
    /// Tracking id of that write.
    pub tracking_id: Option<TrackingId>,
    /// The picture before: of a change, the one that was meant; of a delivery, the one last confirmed.
    pub old_digest: Option<Digest>,
    /// The picture it is about; none when there is none any more. Of a loss: the one lost on its way, where one was.
    pub new_digest: Option<Digest>,
    /// Proof behind a confirmation.
    pub evidence: Evidence,
}

/// A page of a label's history.
#[derive(Debug, Clone)]
pub struct HistoryAsk {
    /// The label's tenant.
    pub tenant: TenantId,
    /// Its store.
    pub store: StoreId,
    /// The label.
    pub label: RecordId,
    /// Only entries before this position; none: from the newest.
    pub before: Option<i64>,
    /// At least 1.
    pub limit: usize,
}

/// What a change says of its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) event: HistoryEvent,
    pub(crate) old_digest: Option<Digest>,
    pub(crate) new_digest: Option<Digest>,
    pub(crate) evidence: Evidence,
}

/// An entry to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// Index of the change that tells it.
    pub(crate) change: usize,
    pub(crate) told: Told,
}

impl Note {
    /// The entry as it will be read.
    pub(crate) fn entry(
        &self,
        position: i64,
        (batch, change, cause): (&WriteBatch, &Change, HistoryCause),
        now: Timestamp,
    ) -> HistoryEntry {
        HistoryEntry {
            position,
            at: now,
            event: self.told.event,
            cause,
            written_by: batch.writer,
            tracking_id: change.tracking_id.clone(),
            old_digest: self.told.old_digest,
            new_digest: self.told.new_digest,
            evidence: self.told.evidence,
        }
    }
}

/// What a batch adds to histories, and whose histories are cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    pub(crate) cause: HistoryCause,
    pub(crate) entries: Vec<Note>,
    pub(crate) cut: Vec<(StoreId, RecordId)>,
}

/// Whether a label's history is to be cut at that version of one of its records.
pub(crate) fn cuts(dto_type: DtoType, version: Version) -> bool {
    TOLD.contains(&dto_type) && version % CUT_EVERY == 0
}

/// What is told by a record of that type that had the one payload and gets the other; none stands for absent.
pub(crate) fn told(dto_type: DtoType, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<Told> {
    match dto_type {
        DtoType::EslImage => picture(&record(before), &record(after), after.is_some()),
        DtoType::StoreEslStatus => delivery(&record(before), &record(after)),
        _ => None,
    }
}

/// Stored records decode, as they were checked when they were written.
fn record<M: Message + Default>(payload: Option<&[u8]>) -> M {
    payload.and_then(|payload| M::decode(payload).ok()).unwrap_or_default()
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok()
}

fn picture(before: &EslImage, after: &EslImage, is_there: bool) -> Option<Told> {
    let (old_digest, new_digest) = (digest(&before.digest), digest(&after.digest));
    if old_digest == new_digest {
        return None;
    }
    let event = if is_there { HistoryEvent::Picture } else { HistoryEvent::Removed };
    Some(Told { event, old_digest, new_digest, evidence: Evidence::Unspecified })
}

/// The ends of deliveries; said again is nothing new.
fn delivery(before: &StoreEslStatus, after: &StoreEslStatus) -> Option<Told> {
    let is_new = before.state() != after.state();
    let old_digest = digest(&before.confirmed_digest);
    let (event, new_digest, evidence) = match after.state() {
        DeliveryState::Confirmed if is_new || before.confirmed_at != after.confirmed_at => {
            (HistoryEvent::Confirmed, digest(&after.confirmed_digest), after.evidence())
        }
        DeliveryState::Failed if is_new => (HistoryEvent::Failed, digest(&after.sent_digest), Evidence::Unspecified),
        DeliveryState::Lost if is_new => (HistoryEvent::Lost, digest(&after.sent_digest), Evidence::Unspecified),
        _ => return None,
    };
    Some(Told { event, old_digest, new_digest, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(byte: u8) -> Vec<u8> {
        EslImage { source: 1, digest: vec![byte; 32].into(), width: 8, height: 4, palette: 1 }.encode_to_vec()
    }

    fn status(state: DeliveryState, confirmed: Option<u8>, sent: Option<u8>) -> Vec<u8> {
        let digest = |byte: Option<u8>| byte.map(|byte| vec![byte; 32]).unwrap_or_default().into();
        let confirmed_at = confirmed.map(|byte| prost_types::Timestamp { seconds: i64::from(byte), nanos: 0 });
        StoreEslStatus {
            state: state.into(),
            confirmed_digest: digest(confirmed),
            sent_digest: digest(sent),
            confirmed_at,
            evidence: Evidence::Transferred.into(),
            ..StoreEslStatus::default()
        }
        .encode_to_vec()
    }

    #[test]
    fn only_another_picture_is_told() {
        let pictures = |before: Option<&[u8]>, after: Option<&[u8]>| {
            told(DtoType::EslImage, before, after).map(|told| (told.event, told.old_digest, told.new_digest))
        };
        let (one, two) = (image(1), image(2));
        assert_eq!(pictures(None, Some(&one)), Some((HistoryEvent::Picture, None, Some([1; 32]))));
        assert_eq!(pictures(Some(&one), Some(&two)), Some((HistoryEvent::Picture, Some([1; 32]), Some([2; 32]))));
        assert_eq!(pictures(Some(&one), None), Some((HistoryEvent::Removed, Some([1; 32]), None)));
        assert_eq!(pictures(Some(&one), Some(&one)), None);
        assert_eq!(told(DtoType::EccEslImage, Some(&one), Some(&two)), None, "what the label shows is the merged one");
    }

    #[test]
    fn only_ends_of_deliveries_are_told_and_once() {
        use DeliveryState::{Confirmed, Failed, Lost, Queued, Sent, Unreachable};
        let steps = [
            (status(Sent, None, Some(1)), None),
            (status(Queued, None, Some(1)), None),
            (status(Confirmed, Some(1), None), Some((HistoryEvent::Confirmed, None, Some([1; 32])))),
            (status(Lost, None, None), Some((HistoryEvent::Lost, Some([1; 32]), None))),
            (status(Unreachable, None, None), None),
            (status(Confirmed, Some(1), None), Some((HistoryEvent::Confirmed, None, Some([1; 32])))),
            (status(Sent, Some(1), Some(2)), None),
            (status(Failed, Some(1), Some(2)), Some((HistoryEvent::Failed, Some([1; 32]), Some([2; 32])))),
            (status(Failed, Some(1), Some(2)), None),
            (status(Confirmed, Some(2), None), Some((HistoryEvent::Confirmed, Some([1; 32]), Some([2; 32])))),
            (status(Confirmed, Some(3), None), Some((HistoryEvent::Confirmed, Some([2; 32]), Some([3; 32])))),
        ];
        let mut before: Option<Vec<u8>> = None;
        for (after, expected) in steps {
            let seen = told(DtoType::StoreEslStatus, before.as_deref(), Some(&after));
            assert_eq!(seen.map(|told| (told.event, told.old_digest, told.new_digest)), expected);
            before = Some(after);
        }
        assert_eq!(told(DtoType::StoreEslStatus, before.as_deref(), None), None);
    }
}
