//! A tag, and what its access point's record says of it.

use std::collections::VecDeque;

use domain::Timestamp;
use picture::{Digest, Panel, Picture};

use super::{Mac, TagSettings, TransferFault, buffer};

/// Refreshes remembered per tag.
const SHOWN_MAX: usize = 1_024;
/// Seconds since 1970 that stand for "never" in a record.
pub(super) const NEVER_S: i64 = 3_216_153_600;
/// Content of a record: nothing, a picture from outside, owned by another access point.
pub(super) const MODE_NONE: u8 = 0;
pub(super) const MODE_EXTERNAL: u8 = 24;
pub(super) const MODE_ELSEWHERE: u8 = 12;

/// A refresh of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// When.
    pub at: Timestamp,
    /// With what; `None` where the bytes made no picture.
    pub digest: Option<Digest>,
}

/// A picture waiting for the tag's check-in.
#[derive(Debug, Clone)]
pub(super) struct Queued {
    pub(super) bytes: Vec<u8>,
    pub(super) hash: [u8; 16],
}

/// The source of a picture, as an upload left it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) dither: String,
    pub(super) ttl_minutes: i64,
    pub(super) stores_only: bool,
}

pub(super) struct Tag {
    pub(super) mac: Mac,
    pub(super) panel: &'static Panel,
    pub(super) check_in_ms: i64,
    pub(super) next_check_in: Timestamp,
    /// What the access point's database says; gone when it loses it, until the next check-in.
    pub(super) record: Option<Record>,
    pub(super) faults: VecDeque<TransferFault>,
    screen: Option<Picture>,
    shown: Vec<Shown>,
}

/// What an access point keeps of a tag.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) hash: [u8; 16],
    pub(super) last_seen_s: i64,
    pub(super) next_update_s: i64,
    pub(super) pending: u32,
    pub(super) mode: u8,
    pub(super) source: Option<Source>,
    pub(super) rotate: u8,
    pub(super) lut: u8,
    pub(super) invert: u8,
    pub(super) alias: String,
    pub(super) wakeup: u8,
    pub(super) updates: u32,
    pub(super) updated_s: i64,
    pub(super) queue: VecDeque<Queued>,
}

impl Record {
    pub(super) const fn new() -> Self {
        Self {
            hash: [0; 16],
            last_seen_s: 0,
            next_update_s: NEVER_S,
            pending: 0,
            mode: MODE_NONE,
            source: None,
            rotate: 0,
            lut: 0,
            invert: 0,
            alias: String::new(),
            wakeup: 0,
            updates: 0,
            updated_s: 0,
            queue: VecDeque::new(),
        }
    }
}

impl Tag {
    pub(super) fn new(settings: &TagSettings, now: Timestamp) -> Self {
        let check_in_ms = settings.check_in_ms.max(1_000);
        Self {
            mac: settings.mac,
            panel: settings.panel,
            check_in_ms,
            next_check_in: now.plus_ms(check_in_ms),
            record: Some(Record::new()),
            faults: VecDeque::new(),
            screen: None,
            shown: Vec::new(),
        }
    }

    pub(super) const fn screen(&self) -> Option<&Picture> {
        self.screen.as_ref()
    }

    pub(super) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// Bytes reach the panel.
    pub(super) fn refresh(&mut self, bytes: &[u8], at: Timestamp) {
        self.screen = buffer::decode(bytes, self.panel);
        if self.shown.len() == SHOWN_MAX {
            self.shown.remove(0);
        }
        self.shown.push(Shown { at, digest: self.screen.as_ref().map(Picture::digest) });
    }

    /// It boots and shows nothing of ours.
    pub(super) fn reboot(&mut self) {
        self.screen = None;
    }
}
