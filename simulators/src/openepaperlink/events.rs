//! What an access point and its tags do by themselves, in the order of time.

use domain::Timestamp;

use super::{
    Mac, TransferFault, buffer,
    sprite::{Dither, sprite},
    station::{INIT_MS, Station, md5},
    tag::{MODE_EXTERNAL, NEVER_S, Queued, Tag},
};

/// A picture is prepared only for tags that check in within this time, in milliseconds.
const PREPARE_AHEAD_MS: i64 = 300_000;
/// At this much free flash or less nothing is prepared, in bytes.
const FLASH_FREE_MIN: u64 = 31_000;
/// How fast tags check in while someone listens on the WebSocket, in milliseconds.
const LISTENED_CHECK_IN_MS: i64 = 40_000;
/// When it reboots every night: 03:56, in milliseconds of the day.
const NIGHT_MS: i64 = (3 * 60 + 56) * 60_000;
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Reboot,
    Prepare(Mac),
    CheckIn(Mac),
}

impl Station {
    /// Lets happen what is due until `now`.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            self.now = self.now.max(at);
            match event {
                Event::Reboot => {
                    self.night_from = at.plus_ms(1);
                    self.boot();
                }
                Event::Prepare(mac) => self.prepare(mac),
                Event::CheckIn(mac) => self.check_in(mac),
            }
        }
        self.now = self.now.max(now);
    }

    fn next_event(&self) -> Option<(Timestamp, Event)> {
        let reboot = (self.settings.reboots_nightly && self.power).then(|| (night(self.night_from), Event::Reboot));
        let tags = self.tags.values().flat_map(|tag| {
            let prepare = self.prepare_at(tag).map(|at| (at, Event::Prepare(tag.mac)));
            prepare.into_iter().chain([(tag.next_check_in, Event::CheckIn(tag.mac))])
        });
        reboot.into_iter().chain(tags).min()
    }

    /// When the tag's picture can be prepared, if there is one and nothing but time stands in the way.
    fn prepare_at(&self, tag: &Tag) -> Option<Timestamp> {
        let record = tag.record.as_ref()?;
        let waits = record.mode == MODE_EXTERNAL && record.source.is_some() && record.next_update_s < NEVER_S;
        if !waits || !self.power || self.flash_free <= FLASH_FREE_MIN {
            return None;
        }
        let mut at = Timestamp::from_ms(record.next_update_s * 1_000).max(self.booted.plus_ms(INIT_MS)).max(self.now);
        if !self.is_listened_to() {
            at = at.max(tag.next_check_in.plus_ms(-PREPARE_AHEAD_MS));
        }
        Some(self.awake_from(at))
    }

    /// The first moment from `at` on outside the hours of sleep.
    fn awake_from(&self, at: Timestamp) -> Timestamp {
        let Some((from, to)) = self.settings.sleeps.filter(|(from, to)| from != to) else { return at };
        let in_day = at.as_ms().rem_euclid(DAY_MS);
        let (from, to) = (i64::from(from % 24) * HOUR_MS, i64::from(to % 24) * HOUR_MS);
        let asleep = if from < to { (from..to).contains(&in_day) } else { in_day >= from || in_day < to };
        if asleep { at.plus_ms((to - in_day).rem_euclid(DAY_MS)) } else { at }
    }

    const fn is_listened_to(&self) -> bool {
        self.settings.wakes_tags_for_listeners && self.listeners > 0
    }

    fn prepare(&mut self, mac: Mac) {
        let Some(tag) = self.tags.get_mut(&mac) else { return };
        let (panel, has_psram) = (tag.panel, self.settings.has_psram);
        let Some(record) = &mut tag.record else { return };
        let Some(source) = record.source.clone() else { return };
        // Whatever comes out, it is not tried again by itself.
        record.next_update_s = NEVER_S;
        let Some(jpeg) = self.files.get(&source.path) else {
            return self.complain(format!("Not found: {}", source.path));
        };
        let Some(sprite) = sprite(jpeg, panel.inks, Dither::of(&source.dither), has_psram) else {
            self.complain("invalid jpg".to_owned());
            return self.complain(format!("Error accessing {}", source.path));
        };
        self.files.remove(&source.path);
        let compresses = has_psram
            && panel
                .compressed
                .is_some_and(|(kind, from)| kind == picture::Compression::Zlib && self.settings.tag_version >= from);
        let plain = buffer::encode(&sprite, panel, record.rotate);
        let bytes = if compresses { buffer::zip(&plain, panel) } else { plain };
        let hash = md5(&bytes);
        if hash.iter().take(8).eq(record.hash.iter().take(8)) {
            self.traffic.same += 1;
            return;
        }
        if source.stores_only {
            return;
        }
        // An older picture in the queue stays in front of it.
        record.queue.push_back(Queued { bytes, hash });
        record.pending += 1;
        if let Some(tag) = self.tags.get_mut(&mac).filter(|_| source.ttl_minutes > 0) {
            tag.check_in_ms = source.ttl_minutes.saturating_mul(60_000);
        }
    }

    fn check_in(&mut self, mac: Mac) {
        let (now, now_s, power, listened) = (self.now, self.now_s(), self.power, self.is_listened_to());
        let Some(tag) = self.tags.get_mut(&mac) else { return };
        let interval = if listened { tag.check_in_ms.min(LISTENED_CHECK_IN_MS) } else { tag.check_in_ms };
        tag.next_check_in = now.plus_ms(interval);
        if !power {
            return;
        }
        let record = tag.record.get_or_insert_with(super::tag::Record::new);
        record.last_seen_s = now_s;
        if record.queue.is_empty() {
            return;
        }
        match tag.faults.front().copied() {
            Some(TransferFault::Late(left)) => {
                tag.faults.pop_front();
                if left > 1 {
                    tag.faults.push_front(TransferFault::Late(left - 1));
                }
                return;
            }
            Some(TransferFault::Lost) => {
                tag.faults.pop_front();
                // The record goes on saying that something is pending.
                record.queue.clear();
                return self.complain(format!("{mac} xfer timeout"));
            }
            Some(TransferFault::Twice | TransferFault::NotShown) | None => {}
        }
        let fault = tag.faults.pop_front();
        let Some(queued) = record.queue.pop_front() else { return };
        record.pending = record.pending.saturating_sub(1);
        record.hash = [0; 16];
        for (kept, byte) in record.hash.iter_mut().zip(queued.hash).take(8) {
            *kept = byte;
        }
        record.updates += 1;
        record.updated_s = now_s;
        record.wakeup = 0;
        self.traffic.transfers += 1;
        if fault != Some(TransferFault::NotShown) {
            tag.refresh(&queued.bytes, now);
        }
        if fault == Some(TransferFault::Twice) {
            self.traffic.transfers += 1;
            tag.refresh(&queued.bytes, now);
        }
        if self.settings.keeps_delivered {
            self.files.insert(format!("/current/{mac}.raw"), queued.bytes);
        }
    }
}

/// The first 03:56 from `from` on.
fn night(from: Timestamp) -> Timestamp {
    let in_day = from.as_ms().rem_euclid(DAY_MS);
    from.plus_ms((NIGHT_MS - in_day).rem_euclid(DAY_MS))
}
