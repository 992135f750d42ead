//! Rows: what waits or is leased.

use domain::{AliasName, DtoType, Notification, SplitItem, StoreId, Target, TenantId, Timestamp, TrackingId, Urn};

/// Labels (records) and parents are counted, claimed and bounded apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// A record to handle.
    Label,
    /// A parent to split.
    Parent,
}

impl RowKind {
    /// Of an item.
    pub fn of(item: &SplitItem) -> Self {
        if item.target.is_parent() { Self::Parent } else { Self::Label }
    }
}

/// A row before it has an id, or with the one it keeps when it comes back from a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Unique in the platform, only grows; 0 for a row that is not stored yet.
    pub id: i64,
    /// The lane.
    pub lane: i64,
    /// The store of its head; none in a queue that is not exclusive by store.
    pub store: Option<StoreId>,
    /// What about.
    pub item: SplitItem,
    /// When it should be done.
    pub sla: Timestamp,
    /// Of what caused it.
    pub tracking_id: Option<TrackingId>,
    /// Attempts that ended in retry.
    pub attempts: i32,
    /// None: ready. Otherwise deferred or backing off until then.
    pub due_at: Option<Timestamp>,
    /// Whether it is leased in company.
    pub company: Company,
    /// Where an unfinished split goes on.
    pub cursor: String,
    /// Why it came back from its last lease; empty for a row that did not, or that a new change renewed.
    pub cause: String,
    /// Handed over to what lies behind the service, which waits for its confirmation. Labels only; a new change ends it.
    pub handed_over: bool,
}

/// Whether a row may be leased together with others. A row whose lease lapsed is not: if it brought its worker down, it
/// shall not bring down its neighbours again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    /// In a batch.
    Batch,
    /// In a batch, although a restart of the platform ended its last lease: restarts are common and most rows have no part
    /// in them. The next one that ends a lease of it makes it a suspect, leased alone.
    Returned,
    /// Alone, having lapsed so often while alone.
    Alone {
        /// Lapses while leased alone.
        lapses: i32,
    },
}

impl Company {
    /// Whether it is leased together with others.
    pub fn shares(self) -> bool {
        match self {
            Self::Batch | Self::Returned => true,
            Self::Alone { .. } => false,
        }
    }

    /// As if its last lapse had not been.
    #[must_use]
    pub fn pardoned(self) -> Self {
        match self {
            Self::Alone { lapses } if lapses > 0 => Self::Alone { lapses: lapses - 1 },
            Self::Alone { .. } => Self::Batch,
            Self::Batch | Self::Returned => self,
        }
    }
}

impl Row {
    /// The tenant, which is its URN's.
    pub fn tenant(&self) -> &TenantId {
        self.item.target.urn().tenant()
    }

    /// Label or parent.
    pub fn kind(&self) -> RowKind {
        RowKind::of(&self.item)
    }

    /// The order inside a lane.
    pub fn order(&self) -> (Timestamp, i64) {
        (self.sla, self.id)
    }

    /// As a worker sees it.
    pub fn notification(&self) -> Notification {
        Notification {
            id: self.id,
            lane: self.lane,
            item: self.item.clone(),
            sla: self.sla,
            tracking_id: self.tracking_id.clone(),
            attempts: self.attempts,
            cursor: self.cursor.clone(),
        }
    }
}

/// A record as a key: what undelivered marks and coalescing compare.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey {
    /// Its type.
    pub dto_type: DtoType,
    /// Its name.
    pub urn: Urn,
}

/// The key under which waiting rows of a lane coalesce.
pub type CoalesceKey = (DtoType, Urn, Option<AliasName>);

/// The coalescing key of an item, borrowed.
pub fn coalesce_key_ref(item: &SplitItem) -> (DtoType, &Urn, Option<AliasName>) {
    (item.dto_type, item.target.urn(), item.alias)
}

/// The coalescing key of an item.
pub fn coalesce_key(item: &SplitItem) -> CoalesceKey {
    (item.dto_type, item.target.urn().clone(), item.alias)
}

/// The record an item is about; none for a parent.
pub fn record_key(item: &SplitItem) -> Option<RecordKey> {
    match &item.target {
        Target::Record(urn) => Some(RecordKey { dto_type: item.dto_type, urn: urn.clone() }),
        Target::Parent(_) => None,
    }
}
