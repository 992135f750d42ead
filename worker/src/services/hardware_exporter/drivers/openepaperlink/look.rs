//! What became of pictures that were sent.

use std::collections::HashMap;

use daemon::outbound::OutboundError;
use proto::records::v1::{DeliveryState, Evidence};

use super::{
    super::{Delivered, Pending},
    client::{Client, TagRecord},
    content,
    mac::Mac,
    receipt::Receipt,
    send::{confirmed, shows},
};

/// From so many tags on all records are read, about nine a request, instead of one by one.
const ONE_BY_ONE_MAX: usize = 3;

/// How long a picture that may be compressed, and cannot be asked for, is believed to wait while its tag checks in, in
/// milliseconds. A tag takes 20 tries at most, each at a check-in some 40 s apart.
const QUEUED_MS_MAX: i64 = 30 * 60 * 1_000;

/// An answer for each, in order.
pub(super) async fn look(client: Client<'_>, pending: &[Pending]) -> Vec<Delivered> {
    let records = match records(client, pending).await {
        Ok(records) => records,
        Err(error) => return vec![Delivered::without_answer(&error); pending.len()],
    };
    let mut answers = Vec::with_capacity(pending.len());
    for one in pending {
        let answer = match one.hardware_address.parse::<Mac>() {
            Err(cause) => Delivered::Permanent { cause },
            Ok(mac) => became(client, one, mac, records.get(&mac))
                .await
                .unwrap_or_else(|error| Delivered::without_answer(&error)),
        };
        let is_gone = matches!(answer, Delivered::Unreachable { .. });
        answers.push(answer.clone());
        if is_gone {
            // It went away in between: the rest is not asked for, each with a wait of its own.
            answers.resize(pending.len(), answer);
            break;
        }
    }
    answers
}

async fn records(client: Client<'_>, pending: &[Pending]) -> Result<HashMap<Mac, TagRecord>, OutboundError> {
    let mut records = HashMap::new();
    if pending.len() > ONE_BY_ONE_MAX {
        for record in client.records().await? {
            if let Ok(mac) = record.mac.parse() {
                records.insert(mac, record);
            }
        }
        return Ok(records);
    }
    for mac in pending.iter().filter_map(|one| one.hardware_address.parse::<Mac>().ok()) {
        if let Some(record) = client.record(mac).await? {
            records.insert(mac, record);
        }
    }
    Ok(records)
}

/// A picture goes from its file into the queue and from there to the tag. It is looked for in this order, the tag's record
/// last, so that one on the move is not overlooked.
async fn became(
    client: Client<'_>,
    pending: &Pending,
    mac: Mac,
    record: Option<&TagRecord>,
) -> Result<Delivered, OutboundError> {
    let Some(receipt) = Receipt::read(&pending.receipt) else {
        return Ok(lost("nothing is known of how it was sent"));
    };
    if let Some(record) = record.filter(|record| shows(record, &receipt.hashes)) {
        return Ok(confirmed(record));
    }
    if record.is_some_and(TagRecord::is_elsewhere) {
        return Ok(lost("another access point took the tag"));
    }
    let underway =
        |state: DeliveryState, proof: String| Delivered::Underway { state, receipt: pending.receipt.clone(), proof };
    let is_source = record.is_some_and(|record| record.filename() == receipt.filename);
    if is_source && client.has_file(&receipt.filename).await? {
        return Ok(underway(DeliveryState::Accepted, format!("{} waits to be prepared", receipt.filename)));
    }
    for hash in &receipt.hashes {
        if client.queued(mac, hash).await?.is_some() {
            return Ok(underway(DeliveryState::Queued, format!("it waits for the tag under hash {hash}")));
        }
    }
    let Some(record) = client.record(mac).await? else {
        return Ok(lost("the access point does not know the tag any more: its database was reset"));
    };
    if shows(&record, &receipt.hashes) {
        return Ok(confirmed(&record));
    }
    if record.filename() != receipt.filename {
        return Ok(lost("something else was uploaded for the tag in the meantime"));
    }
    if receipt.may_be_compressed {
        // Its hash is then that of bytes nobody can foretell; what was delivered can be read back.
        if let Some(bytes) = client.delivered(mac).await?
            && content::is_read_back(&bytes, &record.hash, &receipt.hashes)
        {
            let proof = "the bytes that the tag reports, read back, are the picture's".to_owned();
            return Ok(Delivered::Confirmed { evidence: Evidence::Transferred, proof });
        }
        let seen_after_ms = record.last_seen_s.saturating_mul(1_000).saturating_sub(pending.sent_at.as_ms());
        if record.pending > 0 && seen_after_ms < QUEUED_MS_MAX {
            return Ok(underway(DeliveryState::Queued, format!("{} pending", record.pending)));
        }
    }
    if receipt.may_be_compressed
        && record.pending == 0
        && !record.shows_nothing()
        && record.half_hash() != receipt.before
    {
        // Nothing else was uploaded since, so what the tag took can only be this.
        let proof =
            format!("the tag's hash changed to {} after the upload; its bytes cannot be compared", record.half_hash());
        return Ok(Delivered::Confirmed { evidence: Evidence::Transferred, proof });
    }
    Ok(why_lost(&record, &receipt))
}

fn why_lost(record: &TagRecord, receipt: &Receipt) -> Delivered {
    // The count alone proves nothing: it stays when a transfer breaks off and the queue is dropped.
    if record.pending > 0 {
        return lost("the access point counts it as pending and does not have it: the transfer broke off");
    }
    let shown = if record.shows_nothing() { "no picture" } else { "another picture" };
    lost(&format!("not found: {}; nothing waits and the tag reports {shown}: hardware was reset", receipt.filename))
}

fn lost(cause: &str) -> Delivered {
    Delivered::Lost { cause: cause.to_owned() }
}
