//! Records as the access point writes them.

use serde_json::{Value, json};

use super::{
    Mac,
    station::{Station, hex},
    tag::{Record, Tag},
};

/// A page ends when it has passed this many bytes.
const PAGE_BYTES: usize = 5_000;

fn record(tag: &Tag, record: &Record, version: u8) -> Value {
    let source = record.source.as_ref().map_or_else(String::new, |source| {
        json!({
            "filename": source.path, "timetolive": source.ttl_minutes.to_string(), "dither": source.dither,
            "delete": "1", "preload": if source.stores_only { "1" } else { "0" },
        })
        .to_string()
    });
    json!({
        "mac": tag.mac.to_string(), "hash": hex(record.hash), "lastseen": record.last_seen_s,
        "nextupdate": record.next_update_s, "nextcheckin": tag.next_check_in.as_ms().div_euclid(1_000),
        "pending": record.pending, "alias": record.alias, "contentMode": record.mode, "LQI": 200, "RSSI": -60,
        "temperature": 20, "batteryMv": 2_900, "hwType": tag.panel.number, "wakeupReason": record.wakeup,
        "capabilities": 0, "modecfgjson": source, "isexternal": false, "apip": "0.0.0.0", "rotate": record.rotate,
        "lut": record.lut, "invert": record.invert, "updatecount": record.updates, "updatelast": record.updated_s,
        "ch": 11, "ver": version,
    })
}

impl Station {
    /// One tag's record in a list of its own; an empty list for an unknown tag.
    pub(super) fn record_json(&self, mac: Mac) -> Value {
        let found: Vec<Value> =
            self.record(mac).map(|(tag, kept)| record(tag, kept, self.settings.tag_version)).into_iter().collect();
        json!({ "tags": found })
    }

    /// A page of records. The position is kept in eight bits, so from 256 tags on it begins again.
    pub(super) fn page_json(&self, position: usize) -> Value {
        let from = position % 256;
        let mut page = Vec::new();
        let mut bytes = 0;
        let known = || self.tags.values().filter_map(|tag| tag.record.as_ref().map(|kept| (tag, kept)));
        for (tag, kept) in known().skip(from) {
            let value = record(tag, kept, self.settings.tag_version);
            bytes += value.to_string().len();
            page.push(value);
            if bytes > PAGE_BYTES {
                break;
            }
        }
        let next = from + page.len();
        if next < known().count() { json!({ "tags": page, "continu": next }) } else { json!({ "tags": page }) }
    }

    /// All records, whatever their number.
    pub(super) fn backup_json(&self) -> Value {
        let version = self.settings.tag_version;
        let all = self.tags.values().filter_map(|tag| tag.record.as_ref().map(|kept| record(tag, kept, version)));
        Value::Array(all.collect())
    }

    /// What a listener on the WebSocket gets to hear every few seconds.
    pub(super) fn system_json(&self) -> Value {
        json!({ "sys": {
            "currtime": self.now_s(), "heap": 120_000, "recordcount": self.tags.len(), "dbsize": self.tags.len() * 512,
            "littlefsfree": self.flash_free, "apstate": 1, "runstate": if self.is_running() { 2 } else { 3 },
            "rssi": -50, "wifistatus": 3, "wifissid": "store", "uptime": self.uptime_s(),
        } })
    }
}
