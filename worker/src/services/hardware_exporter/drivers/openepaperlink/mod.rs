//! The `openepaperlink` driver: access points of that protocol, over their HTTP interface.
//!
//! Reading order: `client` (the routes), `upload` (the body and the JPEG), `content` (what proves a picture), `receipt`,
//! `send`, `look`, `take_back`, `health`.
//!
//! Invariants
//! - The HTTP status proves nothing: depending on how a firmware was built, a refusal comes as 200. What was taken is read
//!   back from the tag's record, and a picture is confirmed only by its hash: the tag holds these bytes.
//! - A picture of another size than the panel, or with an ink that it lacks, is never sent: the access point would take it
//!   and the tag show garbage.
//! - What waits for a tag is dropped before another picture is sent. Two in the queue would both be shown, old one first.
//! - "Transferred" is the most that can be proven. Whether the panel refreshed is not observable.
//!
//! Deliberately not here: pace, retries, resets of a whole access point (the exporter's core; [`health`] gives it the
//! evidence); access points with a password (they have none).

mod client;
mod content;
mod health;
mod look;
mod mac;
mod receipt;
mod send;
mod take_back;
mod upload;

use std::time::Duration;

use bytes::Bytes;
use daemon::outbound::{Outbound, OutboundError, Peer};
use futures::{FutureExt as _, future::BoxFuture};
use picture::Picture;

use super::{Delivered, Driver, Fence, Looks, Manner, Place, Probe, Shipment, Survey, TakenBack};

use client::Client;

/// The port they listen on.
const PORT: u16 = 80;
/// A send is a read, perhaps a command, the upload, a read: each at most 30 s and a connection of 5 s.
const CALL_LIMIT: Duration = Duration::from_secs(150);
/// Tags check in every 40 s.
pub(super) const FIRST_LOOK: Duration = Duration::from_secs(45);
/// Tags that sleep check in every hour at the latest.
const LONGEST_LOOK: Duration = Duration::from_mins(10);

/// The driver.
pub(crate) struct OpenEpaperLinkDriver {
    outbound: Outbound,
    pace: Pace,
}

/// How its access points are treated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Rest between two uploads to the same one. They have one processor and 32 KiB for an upload; a second is what others
    /// leave them.
    pub(super) pause: Duration,
    /// How long after an upload it is first looked after, about.
    pub(super) first_look: Duration,
}

impl OpenEpaperLinkDriver {
    /// Reaches access points through `outbound`.
    pub(super) const fn new(outbound: Outbound, pace: Pace) -> Self {
        Self { outbound, pace }
    }

    fn peer(place: &Place) -> Result<Peer, OutboundError> {
        Peer::parse(&place.address, PORT)
    }
}

impl Driver for OpenEpaperLinkDriver {
    fn name(&self) -> &'static str {
        "openepaperlink"
    }

    fn manner(&self) -> Manner {
        Manner {
            per_call: 1,
            at_once: 1,
            pause: self.pace.pause,
            call_limit: CALL_LIMIT,
            looks: Some(Looks { first: self.pace.first_look, longest: LONGEST_LOOK }),
            fence: Fence::Exporter,
        }
    }

    fn encode(&self, picture: &Picture) -> Result<Bytes, String> {
        upload::jpeg(picture).map(Bytes::from)
    }

    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            let peer = match Self::peer(&shipment.place) {
                Ok(peer) => peer,
                Err(error) => return vec![Delivered::without_answer(&error); shipment.deliveries.len()],
            };
            let client = Client { outbound: &self.outbound, peer: &peer };
            let mut answers = Vec::with_capacity(shipment.deliveries.len());
            for delivery in &shipment.deliveries {
                answers.push(send::send(client, delivery).await);
            }
            answers
        }
        .boxed()
    }

    fn look(&self, survey: Survey) -> BoxFuture<'_, Vec<Delivered>> {
        async move {
            match Self::peer(&survey.place) {
                Ok(peer) => look::look(Client { outbound: &self.outbound, peer: &peer }, &survey.pending).await,
                Err(error) => vec![Delivered::without_answer(&error); survey.pending.len()],
            }
        }
        .boxed()
    }

    fn take_back(&self, survey: Survey) -> BoxFuture<'_, Vec<TakenBack>> {
        async move {
            match Self::peer(&survey.place) {
                Ok(peer) => {
                    take_back::take_back(Client { outbound: &self.outbound, peer: &peer }, &survey.pending).await
                }
                Err(error) => vec![take_back::failed(&error); survey.pending.len()],
            }
        }
        .boxed()
    }

    fn probe<'a>(&'a self, place: &'a Place) -> BoxFuture<'a, Probe> {
        async move {
            let health = match Self::peer(place) {
                Ok(peer) => health::health(&self.outbound, &peer).await,
                Err(error) => Err(error),
            };
            match health {
                Ok(health) if health.is_running() => Probe::Up { uptime: Some(Duration::from_secs(health.uptime_s)) },
                Ok(_) => Probe::Away { cause: "the access point has just booted and takes nothing yet".to_owned() },
                Err(error) => Probe::Away { cause: error.to_string() },
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
