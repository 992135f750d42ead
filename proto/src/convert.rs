//! Domain ↔ wire. Parsing names the field that is wrong; nothing here decides policy.

use std::{fmt::Display, str::FromStr};

use domain::{
    Evidence, LeaseRef, Notification, Outcome, ParentShape, QueueName, Refusal, SplitItem, Target, Timestamp, Urn,
};

use crate::{cqs::v1 as wire, records::v1::Evidence as WireEvidence};

/// Parses a required text field, naming it when it is wrong.
pub fn parse_field<T>(field: &str, text: &str) -> Result<T, Refusal>
where
    T: FromStr,
    T::Err: Display,
{
    if text.is_empty() {
        return Err(Refusal::field(field, "is required"));
    }
    text.parse().map_err(|error: T::Err| Refusal::field(field, error))
}

/// A timestamp as the wire carries it.
pub fn timestamp_to_wire(timestamp: Timestamp) -> prost_types::Timestamp {
    let ms = timestamp.as_ms();
    let nanos = i32::try_from(ms.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
    prost_types::Timestamp { seconds: ms.div_euclid(1000), nanos }
}

/// A timestamp from the wire, cut to milliseconds; refuses nanoseconds outside 0 to 999,999,999 and years outside 1 to 9999.
pub fn timestamp_from_wire(field: &str, timestamp: &prost_types::Timestamp) -> Result<Timestamp, Refusal> {
    // RFC 3339's range, which protobuf's own definition of Timestamp names.
    const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
    if !SECONDS.contains(&timestamp.seconds) || !(0..1_000_000_000).contains(&timestamp.nanos) {
        return Err(Refusal::field(field, "is not a timestamp between the years 1 and 9999"));
    }
    Ok(Timestamp::from_ms(timestamp.seconds * 1000 + i64::from(timestamp.nanos / 1_000_000)))
}

/// A child or injected parent as the wire carries it.
pub fn split_item_to_wire(item: &SplitItem) -> wire::SplitItem {
    wire::SplitItem {
        dto_type: item.dto_type.as_str().to_owned(),
        urn: Some(match &item.target {
            Target::Record(urn) => wire::split_item::Urn::DtoId(urn.to_string()),
            Target::Parent(urn) => wire::split_item::Urn::ParentId(urn.to_string()),
        }),
        alias_name: item.alias.map(|alias| alias.as_str().to_owned()).unwrap_or_default(),
    }
}

/// A child or injected parent from the wire; `field` is its path, e.g. `items[3]`.
pub fn split_item_from_wire(field: &str, item: &wire::SplitItem) -> Result<SplitItem, Refusal> {
    let dto_type = parse_field(&format!("{field}.dto_type"), &item.dto_type)?;
    let alias = if item.alias_name.is_empty() {
        None
    } else {
        Some(parse_field(&format!("{field}.alias_name"), &item.alias_name)?)
    };
    let target = match &item.urn {
        Some(wire::split_item::Urn::DtoId(text)) => {
            if alias.is_some() {
                return Err(Refusal::field(format!("{field}.alias_name"), "must be empty for a record"));
            }
            Target::Record(
                Urn::record(dto_type, text).map_err(|error| Refusal::field(format!("{field}.dto_id"), error))?,
            )
        }
        Some(wire::split_item::Urn::ParentId(text)) => {
            Target::Parent(parse_field(&format!("{field}.parent_id"), text)?)
        }
        None => return Err(Refusal::field(format!("{field}.urn"), "needs dto_id or parent_id")),
    };
    Ok(SplitItem { dto_type, target, alias })
}

/// A shape as the wire carries it.
pub fn shape_to_wire(shape: ParentShape) -> wire::ParentShape {
    wire::ParentShape {
        dto_type: shape.dto_type.as_str().to_owned(),
        alias_name: shape.alias.map(|alias| alias.as_str().to_owned()).unwrap_or_default(),
    }
}

/// A shape from the wire.
pub fn shape_from_wire(field: &str, shape: &wire::ParentShape) -> Result<ParentShape, Refusal> {
    Ok(ParentShape {
        dto_type: parse_field(&format!("{field}.dto_type"), &shape.dto_type)?,
        alias: if shape.alias_name.is_empty() {
            None
        } else {
            Some(parse_field(&format!("{field}.alias_name"), &shape.alias_name)?)
        },
    })
}

/// A notification as the wire carries it.
pub fn notification_to_wire(queue: &QueueName, notification: &Notification) -> wire::DtoChangeNotification {
    let item = &notification.item;
    wire::DtoChangeNotification {
        id: notification.id,
        queue_name: queue.to_string(),
        lane: notification.lane,
        dto_type: item.dto_type.as_str().to_owned(),
        urn: Some(match &item.target {
            Target::Record(urn) => wire::dto_change_notification::Urn::DtoId(urn.to_string()),
            Target::Parent(urn) => wire::dto_change_notification::Urn::ParentId(urn.to_string()),
        }),
        alias_name: item.alias.map(|alias| alias.as_str().to_owned()).unwrap_or_default(),
        sla_timestamp: Some(timestamp_to_wire(notification.sla)),
        tracking_id: notification.tracking_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        attempts: notification.attempts,
        cursor: notification.cursor.clone(),
    }
}

/// A notification from the wire.
pub fn notification_from_wire(wire: wire::DtoChangeNotification) -> Result<Notification, Refusal> {
    let urn = wire.urn.map(|urn| match urn {
        wire::dto_change_notification::Urn::DtoId(id) => wire::split_item::Urn::DtoId(id),
        wire::dto_change_notification::Urn::ParentId(id) => wire::split_item::Urn::ParentId(id),
    });
    let item = wire::SplitItem { dto_type: wire.dto_type, urn, alias_name: wire.alias_name };
    let sla = wire.sla_timestamp.ok_or_else(|| Refusal::field("sla_timestamp", "is required"))?;
    Ok(Notification {
        id: wire.id,
        lane: wire.lane,
        item: split_item_from_wire("notification", &item)?,
        sla: timestamp_from_wire("sla_timestamp", &sla)?,
        tracking_id: if wire.tracking_id.is_empty() {
            None
        } else {
            Some(parse_field("tracking_id", &wire.tracking_id)?)
        },
        attempts: wire.attempts,
        cursor: wire.cursor,
    })
}

/// The lease that a write or a report names.
pub fn lease_from_wire(queue_name: &str, generation: i64) -> Result<LeaseRef, Refusal> {
    if generation <= 0 {
        return Err(Refusal::field("lease_generation", "is required"));
    }
    Ok(LeaseRef { queue: parse_field("queue_name", queue_name)?, generation })
}

/// A proof as the wire carries it.
pub fn evidence_to_wire(evidence: Option<Evidence>) -> WireEvidence {
    match evidence {
        None => WireEvidence::Unspecified,
        Some(Evidence::Written) => WireEvidence::Written,
        Some(Evidence::Transferred) => WireEvidence::Transferred,
        Some(Evidence::Displayed) => WireEvidence::Displayed,
    }
}

/// A proof from the wire; none where none is named.
pub fn evidence_from_wire(evidence: WireEvidence) -> Option<Evidence> {
    match evidence {
        WireEvidence::Unspecified => None,
        WireEvidence::Written => Some(Evidence::Written),
        WireEvidence::Transferred => Some(Evidence::Transferred),
        WireEvidence::Displayed => Some(Evidence::Displayed),
    }
}

/// An outcome as the wire carries it.
pub fn outcome_to_wire(id: i64, outcome: &Outcome) -> wire::ItemOutcome {
    let (kind, cause, due_at) = match outcome {
        Outcome::Done | Outcome::Confirmed { changed: true, .. } => (wire::OutcomeKind::Done, "", None),
        Outcome::Unchanged | Outcome::Confirmed { changed: false, .. } => (wire::OutcomeKind::Unchanged, "", None),
        Outcome::Retry { cause } => (wire::OutcomeKind::Retry, cause.as_str(), None),
        Outcome::Defer { until, cause } | Outcome::Follow { until, cause, .. } => {
            (wire::OutcomeKind::Defer, cause.as_str(), Some(timestamp_to_wire(*until)))
        }
        Outcome::Failed { cause } => (wire::OutcomeKind::Failed, cause.as_str(), None),
    };
    let handed_over = match outcome {
        Outcome::Follow { handed_over, .. } => Some(*handed_over),
        _ => None,
    };
    let evidence = match outcome {
        Outcome::Confirmed { evidence, .. } => Some(*evidence),
        _ => None,
    };
    let evidence = evidence_to_wire(evidence).into();
    wire::ItemOutcome { id, outcome: kind.into(), cause: cause.to_owned(), due_at, handed_over, evidence }
}

/// An outcome from the wire, with the id of its notification; long causes are cut to their bound.
pub fn outcome_from_wire(field: &str, item: &wire::ItemOutcome) -> Result<(i64, Outcome), Refusal> {
    let cause = || {
        if item.cause.is_empty() {
            return Err(Refusal::field(format!("{field}.cause"), "is required"));
        }
        let mut end = item.cause.len().min(domain::limits::CAUSE_MAX_BYTES);
        while !item.cause.is_char_boundary(end) {
            end -= 1;
        }
        Ok(item.cause.get(..end).unwrap_or_default().to_owned())
    };
    let handled = |plain: Outcome| {
        let changed = plain == Outcome::Done;
        evidence_from_wire(item.evidence()).map_or(plain, |evidence| Outcome::Confirmed { changed, evidence })
    };
    let outcome = match item.outcome() {
        wire::OutcomeKind::Done => handled(Outcome::Done),
        wire::OutcomeKind::Unchanged => handled(Outcome::Unchanged),
        wire::OutcomeKind::Retry => Outcome::Retry { cause: cause()? },
        wire::OutcomeKind::Failed => Outcome::Failed { cause: cause()? },
        wire::OutcomeKind::Defer => {
            let due_at =
                item.due_at.as_ref().ok_or_else(|| Refusal::field(format!("{field}.due_at"), "is required"))?;
            let (until, cause) = (timestamp_from_wire(&format!("{field}.due_at"), due_at)?, cause()?);
            match item.handed_over {
                None => Outcome::Defer { until, cause },
                Some(handed_over) => Outcome::Follow { until, cause, handed_over },
            }
        }
        wire::OutcomeKind::Unspecified => return Err(Refusal::field(format!("{field}.outcome"), "is required")),
    };
    Ok((item.id, outcome))
}
