//! Drivers: how a picture gets from an access point to its labels. One file per driver.
//!
//! A driver answers for every picture how far it came ([`Delivered`]), each time with what it saw. Targets that answer
//! later (radio) say [`Delivered::Underway`]; the exporter then asks again with [`Driver::look`], one call an access
//! point for all pictures on their way there, until each is confirmed or lost.
//!
//! What a driver may rely on
//! - [`Manner`] holds for every access point by itself: never more calls at once, never more pictures a call, never
//!   less pause between them. Other access points go on meanwhile.
//! - A call that outlasts [`Manner::call_limit`] is dropped where it stands; its outcome counts as unknown, and the next
//!   look finds out.
//! - A picture that may still be on its way when a newer one is sent is named in [`Delivery::replaces`].
//!
//! What a driver must hold
//! - It never confirms what it has no proof of, and says the proof.
//! - It says [`Delivered::Lost`] only when it saw that the picture is neither on its way nor on the label.
//! - Where the target can refuse late writes, it says so ([`Manner::fence`]) and refuses with [`Delivered::Superseded`]
//!   what comes under an older generation than its store has seen.
//!
//! Deliberately not here: retries, waits between looks, circuit breakers, status records (`plan`, `lanes`, `send`).

pub(crate) mod folder;
mod opendisplay;
mod openepaperlink;
pub(crate) mod webhook;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use daemon::outbound::{Outbound, OutboundError};
use domain::{Clock, Timestamp, Urn};
use futures::{FutureExt as _, future::BoxFuture};
use picture::{Digest, Picture};
use proto::records::v1::{DeliveryState, Evidence};

use crate::{ExporterSettings, runtime::LabelRef};

/// Rest between two uploads to one access point: it has one processor, 32 KiB for an upload, and a radio to serve.
const ACCESS_POINT_PAUSE: Duration = Duration::from_secs(1);

/// Every driver of this build, set up.
pub(crate) fn all(settings: &ExporterSettings, clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Driver>> {
    let outbound = Outbound::new(settings.reach.clone());
    let or = |ms: Option<u32>, usual| ms.map_or(usual, |ms| Duration::from_millis(ms.into()));
    let pause = or(settings.access_point_pause_ms, ACCESS_POINT_PAUSE);
    let first_look = or(settings.access_point_first_look_ms, openepaperlink::FIRST_LOOK);
    let mut drivers: Vec<Arc<dyn Driver>> = vec![
        Arc::new(folder::FolderDriver::new(settings)),
        Arc::new(openepaperlink::OpenEpaperLinkDriver::new(
            outbound.clone(),
            openepaperlink::Pace { pause, first_look },
        )),
        Arc::new(opendisplay::OpenDisplayDriver::new(outbound.clone())),
    ];
    if let Some(webhook) = &settings.webhook {
        drivers.push(Arc::new(webhook::WebhookDriver::new(outbound, webhook, Arc::clone(clock))));
    }
    drivers
}

/// One way to reach labels.
pub(crate) trait Driver: Send + Sync + 'static {
    /// Its name, as access points name it.
    fn name(&self) -> &'static str;
    /// How its access points want to be called.
    fn manner(&self) -> Manner;
    /// What is sent of a picture, made ahead and beside other work, so that no access point waits for it; given back in
    /// [`Delivery::encoded`]. An error: the picture cannot be sent.
    fn encode(&self, _picture: &Picture) -> Result<Bytes, String> {
        Ok(Bytes::new())
    }
    /// Sends pictures to labels of one access point; an answer for each, in order.
    fn send(&self, shipment: Shipment) -> BoxFuture<'_, Vec<Delivered>>;
    /// Looks what became of pictures sent before through one access point; an answer for each, in order. Only for drivers
    /// with [`Manner::looks`].
    fn look(&self, survey: Survey) -> BoxFuture<'_, Vec<Delivered>> {
        let cause = "nothing says that it arrived".to_owned();
        let answers = vec![Delivered::Lost { cause }; survey.pending.len()];
        std::future::ready(answers).boxed()
    }
    /// Takes back pictures sent before through one access point for labels that hang there no more; an answer for each, in
    /// order. What was sent for somebody since stays.
    fn take_back(&self, survey: Survey) -> BoxFuture<'_, Vec<TakenBack>> {
        let answer = match self.manner().looks {
            None => TakenBack::Gone { proof: "this driver leaves nothing waiting".to_owned() },
            Some(_) => TakenBack::Never { cause: "this driver cannot take a picture back".to_owned() },
        };
        std::future::ready(vec![answer; survey.pending.len()]).boxed()
    }
    /// Whether the access point answers, and since when it is up. Cheap; asked before a look and to end a pause after
    /// failures.
    fn probe<'a>(&'a self, _place: &'a Place) -> BoxFuture<'a, Probe> {
        std::future::ready(Probe::Up { uptime: None }).boxed()
    }
}

/// How access points of a driver want to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Most pictures of one call to [`Driver::send`].
    pub(crate) per_call: usize,
    /// Most calls to one access point at once.
    pub(crate) at_once: usize,
    /// Rest between the end of a call and the start of the next to the same access point.
    pub(crate) pause: Duration,
    /// Longest a call may take, with everything it does.
    pub(crate) call_limit: Duration,
    /// When a picture on its way is looked after; none for a driver that answers for good when it sends.
    pub(crate) looks: Option<Looks>,
    /// Who keeps a late worker from sending.
    pub(crate) fence: Fence,
}

/// When pictures on their way are looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looks {
    /// How long after sending, about.
    pub(crate) first: Duration,
    /// Longest time between two looks; it grows with the age of what is on its way.
    pub(crate) longest: Duration,
}

/// Who keeps a worker that lost its store from sending an older picture after a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// The target: it refuses an older lease generation, in one step with the write.
    Target,
    /// The exporter: every picture is announced under the lease before it goes out, and its successor waits until the
    /// calls announced before are over for sure.
    Exporter,
}

/// The access point a call goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its record.
    pub(crate) access_point: Urn,
    /// Its address, as the driver understands it.
    pub(crate) address: String,
}

/// Pictures to send under one lease, all through one access point.
#[derive(Debug)]
pub(crate) struct Shipment {
    /// The access point.
    pub(crate) place: Place,
    /// Generation of the lease: only grows from holder to holder of a store.
    pub(crate) generation: i64,
    /// At most [`Manner::per_call`] of them.
    pub(crate) deliveries: Vec<Delivery>,
}

/// One picture for one label.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) label: LabelRef,
    /// As the label's record names it.
    pub(crate) hardware_address: String,
    pub(crate) digest: Digest,
    /// As the panel shows it.
    pub(crate) picture: Picture,
    /// As [`Driver::encode`] made it.
    pub(crate) encoded: Bytes,
    /// A picture that was sent before and may still be on its way: the access point must drop it, so that it neither
    /// costs a redraw nor arrives after this one.
    pub(crate) replaces: Option<Pending>,
}

/// Pictures to look after, all sent through one access point.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The access point.
    pub(crate) place: Place,
    /// What may be on its way there.
    pub(crate) pending: Vec<Pending>,
}

/// A picture that was sent and is not known to have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) label: LabelRef,
    /// As it was when the picture was sent.
    pub(crate) hardware_address: String,
    pub(crate) digest: Digest,
    /// What the driver said when it took the picture; empty when that is not known (the worker ended in between).
    pub(crate) receipt: String,
    /// How far it was known to be.
    pub(crate) state: DeliveryState,
    /// When it was sent.
    pub(crate) sent_at: Timestamp,
}

/// How far a picture came. Texts are for people, kept with the transition; at most some hundred bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Arrived.
    Confirmed {
        /// What kind of proof there is.
        evidence: Evidence,
        /// The proof, e.g. "the tag reports hash 1a2b".
        proof: String,
    },
    /// On its way, in this state: accepted, queued, transferring, delivered or displayed.
    Underway {
        /// The state seen.
        state: DeliveryState,
        /// How the driver finds the picture again, at most 200 bytes; kept in the status and given back in [`Pending`].
        receipt: String,
        /// How the state was seen.
        proof: String,
    },
    /// Not now; the same picture may go through later (busy, full, timed out).
    Retryable {
        /// Why.
        cause: String,
    },
    /// Never, as things are (wrong size, unsupported palette, unknown label).
    Permanent {
        /// Why.
        cause: String,
    },
    /// The access point does not answer. Costs the label no attempt.
    Unreachable {
        /// Why.
        cause: String,
    },
    /// Was on its way or there, but hardware lost it: it is sent again.
    Lost {
        /// How that was seen.
        cause: String,
    },
    /// A later holder of the store has sent meanwhile: nothing was done.
    Superseded {
        /// How that was seen.
        cause: String,
    },
}

impl Delivered {
    /// What a call came to that had no answer, or that may not be made at all.
    fn without_answer(error: &OutboundError) -> Self {
        let cause = error.to_string();
        if error.is_permanent() { Self::Permanent { cause } } else { Self::Unreachable { cause } }
    }
}

/// What became of a picture that is to be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TakenBack {
    /// It does not wait there any more.
    Gone {
        /// How that was seen.
        proof: String,
    },
    /// It waits there and can be dropped only later.
    NotYet {
        /// Why.
        cause: String,
    },
    /// The access point does not answer.
    Unreachable {
        /// Why.
        cause: String,
    },
    /// It cannot be taken back, or whether it waits cannot be known.
    Never {
        /// Why.
        cause: String,
    },
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// It answers.
    Up {
        /// How long it has been up, where it says so. An access point that is up for less time than passed since a
        /// probe before was reset in between.
        uptime: Option<Duration>,
    },
    /// It does not answer.
    Away {
        /// Why.
        cause: String,
    },
}
