//! The label, as every service handles it.

use std::fmt;

use domain::{DtoType, Notification, RecordId, StoreId, TenantId, Timestamp, TrackingId, Urn};

/// Names a label: link, images and status share its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LabelRef {
    pub(crate) tenant: TenantId,
    pub(crate) store: StoreId,
    pub(crate) id: RecordId,
}

impl LabelRef {
    /// The label that a store-scoped record belongs to by its id.
    pub(crate) fn of(urn: &Urn) -> Option<Self> {
        match urn {
            Urn::StoreRecord(tenant, store, _, id) => {
                Some(Self { tenant: tenant.clone(), store: store.clone(), id: id.clone() })
            }
            Urn::Tenant(_) | Urn::Store(_, _) | Urn::TenantRecord(_, _, _) => None,
        }
    }

    /// The label's record of a store-scoped type.
    pub(crate) fn record(&self, dto_type: DtoType) -> Urn {
        self.neighbour(dto_type, &self.id)
    }

    /// Another record of the label's store.
    pub(crate) fn neighbour(&self, dto_type: DtoType, id: &RecordId) -> Urn {
        Urn::in_store(&self.tenant, &self.store, dto_type, id)
    }
}

impl fmt::Display for LabelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.record(DtoType::StoreEsl).fmt(f)
    }
}

/// A label to handle, with what its writes pass on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) name: LabelRef,
    /// Earliest SLA of its notifications in this batch.
    pub(crate) sla: Timestamp,
    /// Newest tracking id of its notifications in this batch (all are of one lane).
    pub(crate) tracking_id: Option<TrackingId>,
    /// The notifications that asked for it.
    pub(crate) notifications: Vec<i64>,
}

impl Label {
    /// Groups notifications by label, so that each is handled once a batch.
    pub(crate) fn group(notifications: impl IntoIterator<Item = (LabelRef, Notification)>) -> Vec<Self> {
        let mut labels = std::collections::BTreeMap::<LabelRef, (i64, Self)>::new();
        for (label, notification) in notifications {
            let (newest, entry) = labels.entry(label.clone()).or_insert_with(|| {
                (i64::MIN, Self { name: label, sla: notification.sla, tracking_id: None, notifications: Vec::new() })
            });
            entry.sla = entry.sla.min(notification.sla);
            entry.notifications.push(notification.id);
            if notification.tracking_id.is_some() && notification.id >= *newest {
                *newest = notification.id;
                entry.tracking_id = notification.tracking_id;
            }
        }
        labels.into_values().map(|(_, label)| label).collect()
    }
}
