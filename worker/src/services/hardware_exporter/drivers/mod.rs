//! Drivers: how a picture gets from an access point to its labels. One file per driver.
//!
//! A driver answers for every picture how far it came ([`Delivered`]) and declares what it can prove at best
//! ([`Driver::evidence`]). Targets that answer later (radio) say [`Delivered::Underway`] with the state they saw:
//! accepted, queued, transferring, delivered, displayed; the label is then looked after again.

pub(crate) mod folder;

use futures::future::BoxFuture;
use picture::{Digest, Picture};
use proto::records::v1::{DeliveryState, Evidence};

use crate::runtime::LabelRef;

/// One way to reach labels.
pub(crate) trait Driver: Send + Sync + 'static {
    /// Its name, as access points name it.
    fn name(&self) -> &'static str;
    /// What it can prove at best.
    fn evidence(&self) -> Evidence;
    /// Sends pictures; an answer for each, in order. Must refuse, with [`Delivered::Superseded`], what comes under an
    /// older generation than its store has seen: the sender may have lost the store without noticing yet.
    fn send_many(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>>;
}

/// Pictures to send under one lease.
#[derive(Debug)]
pub(crate) struct Shipment {
    /// Generation of the lease: only grows from holder to holder of a store.
    pub(crate) generation: i64,
    pub(crate) deliveries: Vec<Delivery>,
}

/// One picture for one label.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) label: LabelRef,
    #[expect(dead_code, reason = "radio drivers address the label by it; a folder names files by the label")]
    pub(crate) hardware_address: String,
    #[expect(dead_code, reason = "radio drivers call it; a folder has its place from the configuration")]
    pub(crate) access_point_address: String,
    #[expect(dead_code, reason = "radio drivers compare it with what the label reports")]
    pub(crate) digest: Digest,
    /// As the panel shows it.
    pub(crate) picture: Picture,
}

/// How far a picture came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Arrived, by the strongest evidence the driver can give.
    Confirmed,
    /// On its way, in this state.
    #[expect(dead_code, reason = "radio drivers answer later; a folder answers at once")]
    Underway(DeliveryState),
    /// Not now; the same picture may go through later (busy, full, timed out).
    Retryable {
        /// Why.
        cause: String,
    },
    /// Never, as things are (wrong size, unsupported palette).
    Permanent {
        /// Why.
        cause: String,
    },
    /// The access point does not answer.
    #[expect(dead_code, reason = "a folder is always there")]
    Unreachable {
        /// Why.
        cause: String,
    },
    /// A later holder of the store has sent meanwhile: nothing was done.
    Superseded {
        /// How that was seen.
        cause: String,
    },
}
