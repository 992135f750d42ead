//! Dropping what waits for tags that hang elsewhere by now.
//!
//! There is no command that drops one picture. `clear` empties the tag's queue, so it is given only while the tag's record
//! still names the very upload that is to go: what anybody uploaded since stays. A picture that is not prepared yet is in no
//! queue and outlives `clear`; it is dropped once it was prepared, minutes before the tag checks in.

use daemon::outbound::OutboundError;

use super::{
    super::{Pending, TakenBack},
    client::Client,
    mac::Mac,
    receipt::Receipt,
};

/// An answer for each, in order.
pub(super) async fn take_back(client: Client<'_>, pending: &[Pending]) -> Vec<TakenBack> {
    let mut answers = Vec::with_capacity(pending.len());
    for one in pending {
        let answer = drop_one(client, one).await.unwrap_or_else(|error| failed(&error));
        answers.push(answer.clone());
        if matches!(answer, TakenBack::Unreachable { .. }) {
            // It went away in between: the rest is not asked for, each with a wait of its own.
            answers.resize(pending.len(), answer);
            break;
        }
    }
    answers
}

/// What a call that did not come about means.
pub(super) fn failed(error: &OutboundError) -> TakenBack {
    let cause = error.to_string();
    if error.is_permanent() { TakenBack::Never { cause } } else { TakenBack::Unreachable { cause } }
}

async fn drop_one(client: Client<'_>, pending: &Pending) -> Result<TakenBack, OutboundError> {
    let gone = |proof: &str| Ok(TakenBack::Gone { proof: proof.to_owned() });
    let mac: Mac = match pending.hardware_address.parse() {
        Ok(mac) => mac,
        Err(cause) => return Ok(TakenBack::Never { cause }),
    };
    let Some(before) = client.record(mac).await? else {
        return gone("it does not know the tag");
    };
    // Without a receipt nobody knows which upload it was, and only we upload here.
    let filename = Receipt::read(&pending.receipt).map_or_else(|| before.filename(), |receipt| receipt.filename);
    if before.filename() != filename {
        return gone("something else was uploaded for the tag since");
    }
    client.clear(mac).await?;
    if !filename.is_empty() && client.has_file(&filename).await? {
        return Ok(TakenBack::NotYet {
            cause: format!("{filename} waits to be prepared and cannot be dropped before"),
        });
    }
    // It may have been prepared between the two.
    match client.record(mac).await? {
        Some(after) if after.pending > 0 => {
            client.clear(mac).await?;
            gone("what waited for the tag was dropped")
        }
        _ => gone("nothing waits for the tag"),
    }
}
