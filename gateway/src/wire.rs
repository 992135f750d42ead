//! Between the platform's messages and JSON: times, digests, names of stages.

use domain::{Refusal, ServiceName, Timestamp};

/// The first and the last millisecond of the years 1 to 9999, which are those of the wire.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_402_300_799_999;

/// RFC 3339 of a time from the wire; `None` when absent or outside the years 1 to 9999.
pub(crate) fn time(wire: Option<&impl WireTime>) -> Option<String> {
    wire.and_then(WireTime::timestamp).map(|timestamp| timestamp.to_string())
}

/// A time as the generated messages carry it.
pub(crate) trait WireTime {
    fn timestamp(&self) -> Option<Timestamp>;
}

impl WireTime for WireTimestamp {
    fn timestamp(&self) -> Option<Timestamp> {
        proto::timestamp_from_wire("timestamp", self).ok()
    }
}

/// The generated timestamp type, as `proto` speaks it.
pub(crate) type WireTimestamp = prost_types::Timestamp;

/// An RFC 3339 time from a request: the years 1 to 9999, as written.
pub(crate) fn parse_time(field: &str, text: &str) -> Result<Timestamp, Refusal> {
    let wrong = || Refusal::field(field, "is not an RFC 3339 time such as 2026-06-01T22:00:00Z");
    // The shortest form has 20 characters, the longest sensible one 35; chrono never sees more.
    if !(20..=35).contains(&text.len()) || text.starts_with("0000") {
        return Err(wrong());
    }
    let parsed = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    // An offset may lead a few hours out of the years that the wire knows.
    Ok(Timestamp::from_ms(parsed.timestamp_millis().clamp(FIRST_MS, LAST_MS)))
}

/// What a label has behind it once this service is done with it: the stage of the flow, as operators read it.
pub(crate) fn stage_of(service: &str) -> &'static str {
    match service.parse() {
        Ok(ServiceName::EccImageRender | ServiceName::StudioRenderer) => "rendered",
        Ok(ServiceName::EslImageMerger) => "merged",
        Ok(ServiceName::HardwareExporter) => "exported",
        Ok(ServiceName::OperatorGateway | ServiceName::RecordImport) | Err(_) => "other",
    }
}
