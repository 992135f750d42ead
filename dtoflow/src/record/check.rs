//! Required fields and bounds, type by type, in the order of the domain's table.

use std::collections::BTreeMap;

use domain::{RecordId, limits::CAUSE_MAX_BYTES};
use prost::bytes::Bytes;
use proto::records::v1 as wire;

use super::Record;

/// Entries of an item's values or a link's parameters.
const VALUES_MAX: usize = 200;
/// Bytes of a property's name.
const VALUE_NAME_MAX_BYTES: usize = 64;
/// Bytes of a property's value: a long product description, with room.
const VALUE_MAX_BYTES: usize = 2_000;
/// Pixels of a panel's side: above the largest panel sold.
const SIDE_MAX_PIXELS: u32 = 2_048;
/// Bytes of a packed picture.
const PICTURE_MAX_BYTES: usize = 256 * 1024;
/// Bytes of a SHA-256.
const DIGEST_BYTES: usize = 32;
/// Bytes of a name for people.
const NAME_MAX_BYTES: usize = 200;
/// Bytes of a driver's name.
const DRIVER_MAX_BYTES: usize = 64;
/// Bytes of an access point's address: a URL, with room.
const ADDRESS_MAX_BYTES: usize = 500;
/// Bytes by which a driver finds a picture again: a path or an id, with room.
const RECEIPT_MAX_BYTES: usize = 200;
/// Steps of a delivery that a status keeps: one whole delivery with its losses at the ends.
const TRANSITIONS_MAX: usize = 8;
/// Bytes of a step's cause: a sentence, so that millions of statuses stay small.
const TRANSITION_CAUSE_MAX_BYTES: usize = 300;
/// Pictures that a status names as left behind: a label that is moved more often between two looks is being played with.
const LEFT_BEHIND_MAX: usize = 4;
/// Bytes of a hardware address: the longest printed on labels has 17, with room.
const HARDWARE_ADDRESS_MAX_BYTES: usize = 64;

/// What is wrong with a payload: one sentence that opens with the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RecordFault(String);

impl RecordFault {
    pub(super) fn undecodable() -> Self {
        Self("does not decode as a record of its type".to_owned())
    }

    fn of(field: &str, what: &str) -> Self {
        Self(format!("{field} {what}"))
    }
}

type Checked = Result<(), RecordFault>;

impl Record {
    pub(super) fn check(&self) -> Checked {
        match self {
            Self::StoreItemValues(record) => {
                if record.values.is_empty() {
                    return Err(RecordFault::of("values", "is required"));
                }
                values("values", &record.values)
            }
            Self::EslType(record) => esl_type(record),
            Self::AccessPoint(record) => {
                required("driver", &record.driver)?;
                at_most("driver", &record.driver, DRIVER_MAX_BYTES)?;
                at_most("address", &record.address, ADDRESS_MAX_BYTES)
            }
            Self::StoreEsl(record) => {
                id("esltype_id", &record.esltype_id)?;
                id("accesspoint_id", &record.accesspoint_id)?;
                required("hardware_address", &record.hardware_address)?;
                at_most("hardware_address", &record.hardware_address, HARDWARE_ADDRESS_MAX_BYTES)
            }
            Self::EccModel(record) => {
                required("layout", &record.layout)?;
                at_most("name", &record.name, NAME_MAX_BYTES)
            }
            Self::EccLink(record) => {
                id("item_id", &record.item_id)?;
                id("model_id", &record.model_id)?;
                values("parameters", &record.parameters)
            }
            Self::Design(record) => {
                required("svg", &record.svg)?;
                required("mappings", &record.mappings)?;
                at_most("name", &record.name, NAME_MAX_BYTES)
            }
            Self::StudioLink(record) => {
                id("item_id", &record.item_id)?;
                id("design_id", &record.design_id)
            }
            Self::SourceEslImage(record) => source_image(record),
            Self::EslImage(record) => {
                known("source", wire::ImageSource::try_from(record.source).ok(), &wire::ImageSource::Unspecified)?;
                digest("digest", &record.digest)?;
                sides(record.width, record.height)?;
                palette(record.palette)
            }
            Self::StoreEslStatus(record) => status(record),
            Self::AccessPointStatus(record) => match record.up_since {
                None => Err(RecordFault::of("up_since", "is required")),
                Some(_) => Ok(()),
            },
        }
    }
}

fn esl_type(record: &wire::EslType) -> Checked {
    sides(record.width, record.height)?;
    palette(record.palette)?;
    if !matches!(record.rotation, 0 | 90 | 180 | 270) {
        return Err(RecordFault::of("rotation", "must be 0, 90, 180 or 270"));
    }
    at_most("name", &record.name, NAME_MAX_BYTES)
}

fn source_image(record: &wire::SourceEslImage) -> Checked {
    if record.picture.is_empty() {
        return Err(RecordFault::of("picture", "is required"));
    }
    if record.picture.len() > PICTURE_MAX_BYTES {
        return Err(RecordFault::of("picture", "must be at most 262144 bytes"));
    }
    digest("digest", &record.digest)?;
    sides(record.width, record.height)?;
    palette(record.palette)
}

fn status(record: &wire::StoreEslStatus) -> Checked {
    known("state", wire::DeliveryState::try_from(record.state).ok(), &wire::DeliveryState::Unspecified)?;
    if wire::Evidence::try_from(record.evidence).is_err() {
        return Err(RecordFault::of("evidence", "is not a known value"));
    }
    for (field, bytes) in [("confirmed_digest", &record.confirmed_digest), ("sent_digest", &record.sent_digest)] {
        if !bytes.is_empty() {
            digest(field, bytes)?;
        }
    }
    at_most("confirmed_hardware_address", &record.confirmed_hardware_address, HARDWARE_ADDRESS_MAX_BYTES)?;
    at_most("sent_hardware_address", &record.sent_hardware_address, HARDWARE_ADDRESS_MAX_BYTES)?;
    if !record.sent_accesspoint_id.is_empty() {
        id("sent_accesspoint_id", &record.sent_accesspoint_id)?;
    }
    at_most("sent_receipt", &record.sent_receipt, RECEIPT_MAX_BYTES)?;
    at_most("last_error", &record.last_error, CAUSE_MAX_BYTES)?;
    if record.transitions.len() > TRANSITIONS_MAX {
        return Err(RecordFault::of("transitions", "must have at most 8 entries"));
    }
    for transition in &record.transitions {
        let state = wire::DeliveryState::try_from(transition.state).ok();
        known("transitions.state", state, &wire::DeliveryState::Unspecified)?;
        at_most("transitions.cause", &transition.cause, TRANSITION_CAUSE_MAX_BYTES)?;
        if wire::Evidence::try_from(transition.evidence).is_err() {
            return Err(RecordFault::of("transitions.evidence", "is not a known value"));
        }
    }
    if record.left_behind.len() > LEFT_BEHIND_MAX {
        return Err(RecordFault::of("left_behind", "must have at most 4 entries"));
    }
    record.left_behind.iter().try_for_each(left_behind)
}

fn left_behind(record: &wire::LeftBehind) -> Checked {
    id("left_behind.accesspoint_id", &record.accesspoint_id)?;
    required("left_behind.hardware_address", &record.hardware_address)?;
    at_most("left_behind.hardware_address", &record.hardware_address, HARDWARE_ADDRESS_MAX_BYTES)?;
    digest("left_behind.digest", &record.digest)?;
    at_most("left_behind.receipt", &record.receipt, RECEIPT_MAX_BYTES)
}

fn required(field: &str, text: &str) -> Checked {
    if text.trim().is_empty() { Err(RecordFault::of(field, "is required")) } else { Ok(()) }
}

fn at_most(field: &str, text: &str, max: usize) -> Checked {
    if text.len() > max { Err(RecordFault::of(field, &format!("must be at most {max} bytes"))) } else { Ok(()) }
}

fn id(field: &str, text: &str) -> Checked {
    required(field, text)?;
    text.parse::<RecordId>().map(|_| ()).map_err(|error| RecordFault::of(field, &error.to_string()))
}

fn digest(field: &str, bytes: &Bytes) -> Checked {
    match bytes.len() {
        DIGEST_BYTES => Ok(()),
        0 => Err(RecordFault::of(field, "is required")),
        _ => Err(RecordFault::of(field, "must be 32 bytes")),
    }
}

fn sides(width: u32, height: u32) -> Checked {
    for (field, side) in [("width", width), ("height", height)] {
        if !(1..=SIDE_MAX_PIXELS).contains(&side) {
            return Err(RecordFault::of(field, "must be 1 to 2048"));
        }
    }
    Ok(())
}

fn palette(value: i32) -> Checked {
    known("palette", wire::Palette::try_from(value).ok(), &wire::Palette::Unspecified)
}

fn known<T: PartialEq>(field: &str, value: Option<T>, unspecified: &T) -> Checked {
    match value {
        None => Err(RecordFault::of(field, "is not a known value")),
        Some(value) if value == *unspecified => Err(RecordFault::of(field, "is required")),
        Some(_) => Ok(()),
    }
}

fn values(field: &str, values: &BTreeMap<String, String>) -> Checked {
    if values.len() > VALUES_MAX {
        return Err(RecordFault::of(field, "must have at most 200 entries"));
    }
    for (name, value) in values {
        let well_formed = (1..=VALUE_NAME_MAX_BYTES).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !well_formed {
            return Err(RecordFault::of(field, "has a name that is not 1 to 64 of a-z 0-9 _"));
        }
        if value.len() > VALUE_MAX_BYTES {
            return Err(RecordFault(format!("{field}.{name} must be at most {VALUE_MAX_BYTES} bytes")));
        }
    }
    Ok(())
}
