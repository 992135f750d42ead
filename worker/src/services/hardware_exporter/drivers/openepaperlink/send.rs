//! Sending one picture: look first, upload, look again.

use http::StatusCode;
use picture::Panel;
use proto::records::v1::{DeliveryState, Evidence};

use super::{
    super::{Delivered, Delivery},
    client::{Client, TagRecord},
    content,
    mac::Mac,
    receipt::Receipt,
    upload::{Upload, has_colour},
};

/// Where uploads land over there.
const UPLOADS: &str = "/temp/";

pub(super) async fn send(client: Client<'_>, delivery: &Delivery) -> Delivered {
    let mac: Mac = match delivery.hardware_address.parse() {
        Ok(mac) => mac,
        Err(cause) => return Delivered::Permanent { cause },
    };
    let before = match known(client.record(mac).await) {
        Ok(record) => record,
        Err(answer) => return answer,
    };
    let Some(panel) = Panel::of(before.panel) else {
        return Delivered::Permanent {
            cause: format!("the tag says its panel is of type {:02X}, which is not known here", before.panel),
        };
    };
    if let Some(cause) = content::misfit(&delivery.picture, panel) {
        return Delivered::Permanent { cause };
    }
    let hashes = content::hashes(&delivery.picture, panel);
    if before.pending == 0 && delivery.replaces.is_none() && shows(&before, &hashes) {
        return confirmed(&before);
    }
    if (before.pending > 0 || delivery.replaces.is_some())
        && let Err(error) = client.clear(mac).await
    {
        return Delivered::without_answer(&error);
    }
    let upload = Upload { mac, jpeg: &delivery.encoded, has_colour: has_colour(&delivery.picture) };
    let said = client.upload(&upload).await;
    if let Err(error) = &said
        && !error.may_have_arrived()
    {
        return Delivered::without_answer(error);
    }
    let after = match known(client.record(mac).await) {
        Ok(record) => record,
        Err(answer) => return answer,
    };
    let filename = after.filename();
    if filename == before.filename() || !filename.starts_with(UPLOADS) || !after.is_external() {
        return match said {
            Ok(StatusCode::CONFLICT) => retry("the access point is not ready (409)"),
            Ok(StatusCode::OK) => retry("the access point answered 200 and took nothing: it is not ready"),
            Ok(status) => retry(&format!("the access point took nothing ({})", status.as_u16())),
            Err(error) => Delivered::without_answer(&error),
        };
    }
    let may_be_compressed = panel.compressed.is_some_and(|(_, from)| after.version >= u32::from(from));
    let proof = format!("the tag's record names {filename}");
    let receipt = Receipt { filename, hashes, before: before.half_hash(), may_be_compressed }.text();
    Delivered::Underway { state: DeliveryState::Accepted, receipt, proof }
}

/// The tag's record, if this access point may send to it.
fn known(record: Result<Option<TagRecord>, daemon::outbound::OutboundError>) -> Result<TagRecord, Delivered> {
    match record {
        Err(error) => Err(Delivered::without_answer(&error)),
        Ok(None) => Err(retry("the access point does not know the tag (yet): it has to check in there")),
        Ok(Some(record)) if record.is_elsewhere() => Err(retry("another access point has the tag")),
        Ok(Some(record)) => Ok(record),
    }
}

fn retry(cause: &str) -> Delivered {
    Delivered::Retryable { cause: cause.to_owned() }
}

/// Whether the tag reports one of these hashes.
pub(super) fn shows(record: &TagRecord, hashes: &[String]) -> bool {
    let reported = record.half_hash();
    hashes.iter().any(|hash| hash.eq_ignore_ascii_case(&reported))
}

pub(super) fn confirmed(record: &TagRecord) -> Delivered {
    let reported = record.half_hash();
    Delivered::Confirmed {
        evidence: Evidence::Transferred,
        proof: format!("the tag holds the picture's bytes: it reports hash {reported}"),
    }
}
