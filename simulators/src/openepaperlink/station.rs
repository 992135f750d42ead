//! The access point's state: its tags, its files, and what is asked of it. What happens by itself is in `events`.

use std::collections::{BTreeMap, VecDeque};

use domain::Timestamp;
use md5::{Digest as _, Md5};

use super::{
    AccessPointSettings, Control, Mac, StatusBehaviour, StatusFault, TagSettings, Traffic,
    tag::{MODE_ELSEWHERE, MODE_EXTERNAL, Record, Source, Tag},
};

/// Complaints kept.
const ERRORS_MAX: usize = 1_024;
/// How long after a boot nothing is taken and nothing rendered, in milliseconds.
pub(super) const INIT_MS: i64 = 30_000;
/// Free flash of a fresh access point, in bytes.
const FLASH_FREE: u64 = 8_000_000;
/// What a tag says after a boot by its watchdog.
const WAKEUP_BOOT: u8 = 0xFC;

pub(crate) struct Station {
    pub(super) settings: AccessPointSettings,
    pub(super) now: Timestamp,
    pub(super) booted: Timestamp,
    pub(super) night_from: Timestamp,
    pub(super) power: bool,
    pub(super) flash_free: u64,
    pub(super) listeners: usize,
    pub(super) tags: BTreeMap<Mac, Tag>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) traffic: Traffic,
    errors: VecDeque<String>,
    statuses: VecDeque<StatusFault>,
}

/// An upload's parameters, as far as they were read before its file.
#[derive(Debug, Default)]
pub(super) struct Parameters(pub(super) Vec<(String, String)>);

impl Parameters {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<u8> {
        self.get(name).and_then(|value| value.trim().parse().ok())
    }
}

/// A status and its text.
pub(super) type Answer = (u16, &'static str);

impl Station {
    pub(super) fn new(settings: AccessPointSettings) -> Self {
        let now = settings.clock.now();
        let tags = settings.tags.iter().map(|tag: &TagSettings| (tag.mac, Tag::new(tag, now))).collect();
        Self {
            now,
            // It has been up for an hour: not just booted.
            booted: now.plus_ms(-3_600_000),
            night_from: now,
            power: true,
            flash_free: FLASH_FREE,
            listeners: 0,
            tags,
            files: BTreeMap::new(),
            traffic: Traffic::default(),
            errors: VecDeque::new(),
            statuses: VecDeque::new(),
            settings,
        }
    }

    pub(super) const fn has_power(&self) -> bool {
        self.power
    }

    pub(super) fn tag(&self, mac: Mac) -> Option<&Tag> {
        self.tags.get(&mac)
    }

    pub(super) fn macs(&self) -> Vec<Mac> {
        self.tags.keys().copied().collect()
    }

    pub(super) fn errors(&self) -> Vec<String> {
        self.errors.iter().cloned().collect()
    }

    pub(super) const fn traffic(&self) -> Traffic {
        self.traffic
    }

    pub(super) const fn now_s(&self) -> i64 {
        self.now.as_ms().div_euclid(1_000)
    }

    pub(super) const fn uptime_s(&self) -> i64 {
        self.now.ms_since(self.booted).div_euclid(1_000)
    }

    pub(super) const fn is_running(&self) -> bool {
        self.power && self.now.ms_since(self.booted) >= INIT_MS
    }

    pub(super) fn complain(&mut self, what: String) {
        if self.errors.len() == ERRORS_MAX {
            self.errors.pop_front();
        }
        self.errors.push_back(what);
    }

    /// Something happens to it from outside.
    pub(super) fn control(&mut self, control: Control) {
        match control {
            // The network and the pace are the door's business.
            Control::Offline(_) | Control::AnswerDelay(_) | Control::UploadDelay(_) => {}
            Control::Power(false) => self.power = false,
            Control::Power(true) | Control::Reboot => {
                self.power = true;
                self.boot();
            }
            Control::RadioReset => {
                self.complain("AP did reset, resending pending".to_owned());
                let now_s = self.now_s();
                for record in self.tags.values_mut().filter_map(|tag| tag.record.as_mut()).filter(|it| it.pending > 0) {
                    record.queue.clear();
                    record.pending = 0;
                    record.next_update_s = now_s;
                }
            }
            Control::ForgetTags => self.tags.values_mut().for_each(|tag| tag.record = None),
            Control::FlashFree(bytes) => self.flash_free = bytes,
            Control::KeepsDelivered(keeps) => self.settings.keeps_delivered = keeps,
            Control::Status(fault) => self.statuses.push_back(fault),
            Control::RebootTag(mac) => self.reboot_tag(mac),
            Control::TakenOver(mac, taken) => {
                if let Some(record) = self.tags.get_mut(&mac).and_then(|tag| tag.record.as_mut()) {
                    record.mode = if taken { MODE_ELSEWHERE } else { MODE_EXTERNAL };
                    record.queue.clear();
                }
            }
            Control::Transfer(mac, fault) => {
                if let Some(tag) = self.tags.get_mut(&mac) {
                    tag.faults.push_back(fault);
                }
            }
        }
    }

    /// Sources and queues lie in files that a boot deletes; records come back from the database, without what is pending.
    pub(super) fn boot(&mut self) {
        self.complain("REBOOTING".to_owned());
        self.booted = self.now;
        self.files.retain(|path, _| !path.starts_with("/temp/"));
        for record in self.tags.values_mut().filter_map(|tag| tag.record.as_mut()) {
            record.queue.clear();
            record.pending = 0;
        }
    }

    fn reboot_tag(&mut self, mac: Mac) {
        let (now, now_s) = (self.now, self.now_s());
        let Some(tag) = self.tags.get_mut(&mac) else { return };
        tag.reboot();
        tag.next_check_in = now.plus_ms(1_000);
        if let Some(record) = &mut tag.record {
            record.wakeup = WAKEUP_BOOT;
            if record.queue.is_empty() {
                record.hash = [0; 16];
                record.next_update_s = now_s;
            }
        }
    }

    /// An upload, with its file. What is answered, and how, is `status`'s business.
    pub(super) fn upload(&mut self, parameters: &Parameters, jpeg: Vec<u8>) -> Answer {
        self.traffic.uploads += 1;
        if let Some(fault) = self.statuses.pop_front() {
            if fault.is_taken {
                self.take(parameters, jpeg);
            }
            return (fault.status, "");
        }
        let real = self.take(parameters, jpeg);
        self.status(real)
    }

    /// What the caller gets to see of an answer.
    pub(super) fn status(&self, real: Option<Answer>) -> Answer {
        match (self.settings.status, real) {
            (StatusBehaviour::Real, Some(real)) => real,
            // No branch answers, or the route's last word replaces what was said.
            (StatusBehaviour::Real, None) | (StatusBehaviour::Replaced, _) => (200, ""),
        }
    }

    fn take(&mut self, parameters: &Parameters, jpeg: Vec<u8>) -> Option<Answer> {
        if !self.is_running() {
            return Some((409, "Come back later"));
        }
        let Some(mac) = parameters.get("mac") else { return Some((400, "parameters incomplete")) };
        let mac: Mac = mac.parse().ok()?;
        let now_s = self.now_s();
        // In one millisecond it takes at most one picture; under a clock that stands still, the count tells them apart.
        let up_ms = self.now.ms_since(self.booted).unsigned_abs();
        let path = format!("/temp/{mac}_{}.jpg", up_ms.wrapping_add(self.traffic.taken));
        let Some(record) = self.tags.get_mut(&mac).and_then(|tag| tag.record.as_mut()) else {
            return Some((400, "mac not found"));
        };
        for (name, kept) in [("rotate", &mut record.rotate), ("lut", &mut record.lut), ("invert", &mut record.invert)] {
            *kept = parameters.number(name).unwrap_or(*kept);
        }
        if let Some(alias) = parameters.get("alias") {
            alias.clone_into(&mut record.alias);
        }
        let source = Source {
            path: path.clone(),
            dither: parameters.get("dither").unwrap_or("1").to_owned(),
            ttl_minutes: parameters.get("ttl").and_then(|ttl| ttl.parse().ok()).unwrap_or(0),
            // Naming the parameter is enough, whatever its value.
            stores_only: ["preloadtype", "preloadlut"].iter().any(|name| parameters.get(name).is_some()),
        };
        self.traffic.taken += 1;
        self.traffic.dithered += u64::from(source.dither != "0");
        self.traffic.stored_only += u64::from(source.stores_only);
        record.mode = parameters.number("contentmode").unwrap_or(MODE_EXTERNAL);
        record.source = Some(source);
        record.next_update_s = now_s.min(record.next_update_s);
        self.files.insert(path, jpeg);
        Some((200, "Ok, saved"))
    }

    /// A command for a tag; `None`: no branch answers.
    pub(super) fn command(&mut self, mac: &str, command: &str) -> Option<Answer> {
        let mac: Mac = mac.parse().ok()?;
        let now_s = self.now_s();
        let Some(record) = self.tags.get_mut(&mac).and_then(|tag| tag.record.as_mut()) else {
            return Some((400, "Error: mac not found"));
        };
        match command {
            "clear" => {
                self.traffic.clears += 1;
                record.queue.clear();
                record.pending = 0;
            }
            "refresh" => {
                record.hash = [0; 16];
                record.next_update_s = now_s;
            }
            "reboot" => self.reboot_tag(mac),
            "del" => {
                if let Some(tag) = self.tags.get_mut(&mac) {
                    tag.record = None;
                }
            }
            "scan" | "reset" | "deepsleep" | "ledflash" | "ledflash_long" | "ledflash_stop" | "purge" => {}
            _ => return Some((500, "param error")),
        }
        Some((200, "Ok, done"))
    }

    /// The bytes of a picture in the tag's queue, by the first half of its hash, reversed.
    pub(super) fn queued(&self, mac: Mac, reversed: &str) -> Option<Vec<u8>> {
        let record = self.tags.get(&mac)?.record.as_ref()?;
        let named = |hash: &[u8; 16]| {
            let mut half: Vec<u8> = hash.iter().take(8).copied().collect();
            half.reverse();
            half.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
        };
        record
            .queue
            .iter()
            .find(|queued| named(&queued.hash).eq_ignore_ascii_case(reversed))
            .map(|queued| queued.bytes.clone())
    }

    pub(super) fn record(&self, mac: Mac) -> Option<(&Tag, &Record)> {
        let tag = self.tags.get(&mac)?;
        tag.record.as_ref().map(|record| (tag, record))
    }
}

/// MD5 of some bytes: what access point and tag name a picture by.
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// A hash as text.
pub(super) fn hex(hash: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(hash))
}
