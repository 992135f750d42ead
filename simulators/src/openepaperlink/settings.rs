//! What an access point is made of, and what can be done to it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use domain::Clock;
use picture::Panel;

use super::Mac;

/// An access point and its tags.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a configuration page, each named")]
pub struct AccessPointSettings {
    /// Now.
    pub clock: Arc<dyn Clock>,
    /// Where to listen; port 0 for a free one.
    pub listen: SocketAddr,
    /// Its tags.
    pub tags: Vec<TagSettings>,
    /// What its HTTP status means.
    pub status: StatusBehaviour,
    /// Whether it keeps what was last delivered for reading back.
    pub keeps_delivered: bool,
    /// Whether it reboots every night at 03:56 UTC, as they do unless told not to.
    pub reboots_nightly: bool,
    /// Hours of the day (UTC), from and to, in which it renders nothing.
    pub sleeps: Option<(u32, u32)>,
    /// Whether tags check in fast while someone listens on its WebSocket, as they do unless told not to.
    pub wakes_tags_for_listeners: bool,
    /// Firmware version of its tags; from a panel's own on, pictures are compressed if the access point has PSRAM.
    pub tag_version: u8,
    /// Without it, the access point has little memory and its colours pass through 8 bits.
    pub has_psram: bool,
}

impl AccessPointSettings {
    /// As one comes out of the box, but without the nightly reboot and keeping what was delivered.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tags: Vec::new(),
            status: StatusBehaviour::Replaced,
            keeps_delivered: true,
            reboots_nightly: false,
            sleeps: None,
            wakes_tags_for_listeners: true,
            tag_version: 0x20,
            has_psram: true,
        }
    }
}

/// A tag.
#[derive(Debug, Clone, Copy)]
pub struct TagSettings {
    /// Its address.
    pub mac: Mac,
    /// Its panel.
    pub panel: &'static Panel,
    /// Time between check-ins, in milliseconds, at least 1,000. Tags do about every 40 s.
    pub check_in_ms: i64,
}

/// What the HTTP status of an upload means. It depends on the library a firmware was built with; both are in the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusBehaviour {
    /// Always 200 with an empty body: the real answer is replaced.
    Replaced,
    /// The real answer.
    Real,
}

/// What may go wrong with a transfer to a tag. Each fault holds for one transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferFault {
    /// Breaks off: the access point drops all the tag's pictures but does not say so in its record.
    Lost,
    /// Comes that many check-ins late.
    Late(u32),
    /// Comes twice: the panel refreshes twice.
    Twice,
    /// The tag takes the bytes and does not refresh.
    NotShown,
}

/// An answer to an upload that has nothing to do with what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusFault {
    /// The status that is answered.
    pub status: u16,
    /// Whether the upload was taken all the same.
    pub is_taken: bool,
}

/// Something that happens to an access point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The network to it goes (`true`) or comes back; the radio goes on.
    Offline(bool),
    /// Power goes (`false`) or comes back: then it boots.
    Power(bool),
    /// It boots: what was not delivered is gone.
    Reboot,
    /// Its radio part resets: it tries to send again what it has no source of any more.
    RadioReset,
    /// It loses its tag database. A tag is known again from its next check-in on.
    ForgetTags,
    /// Free flash, in bytes. At 31,000 or less it prepares nothing.
    FlashFree(u64),
    /// A tag boots: it shows nothing and reports no picture.
    RebootTag(Mac),
    /// Another access point takes the tag over (`true`) or gives it back.
    TakenOver(Mac, bool),
    /// Something goes wrong with the tag's next transfer that has no fault yet.
    Transfer(Mac, TransferFault),
    /// The next upload that has no fault yet gets this answer.
    Status(StatusFault),
    /// Every answer takes that long.
    AnswerDelay(Duration),
    /// Every upload takes that long, besides.
    UploadDelay(Duration),
    /// Whether it keeps what was last delivered for reading back.
    KeepsDelivered(bool),
}

/// What was asked of an access point since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests of all kinds.
    pub requests: u64,
    /// Uploads, taken or not.
    pub uploads: u64,
    /// Uploads that were taken.
    pub taken: u64,
    /// Uploads that were to be dithered.
    pub dithered: u64,
    /// Uploads that were to be stored and not shown.
    pub stored_only: u64,
    /// Pictures that were not sent because the tag shows them already.
    pub same: u64,
    /// Pictures transferred to tags.
    pub transfers: u64,
    /// Commands to drop what is pending.
    pub clears: u64,
    /// Requests being served at once, at most.
    pub most_at_once: usize,
    /// Time in which at least one request was being served. Listening on its WebSocket is no request.
    pub busy: Duration,
    /// Time that uploads took, added up.
    pub uploading: Duration,
    /// From the begin of the first upload to the end of the last.
    pub uploads_span: Duration,
    /// For how much of that span at least one request was being served.
    pub busy_in_span: Duration,
    /// The longest time in it without a request.
    pub longest_gap: Duration,
}
