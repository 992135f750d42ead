//! Sending: read what goes out, announce it, hand it to the drivers, say what they answered.

use std::{collections::BTreeMap, sync::Arc};

use domain::{DtoType, Outcome};
use picture::{Digest, Picture};
use proto::records::v1::{AccessPoint, SourceEslImage};

use super::{
    drivers::{Delivered, Delivery, Driver, Shipment},
    plan::Send,
    say,
};
use crate::runtime::{
    CallError, Context, Label, Reads, RecordWrite, Records, Verdict, WriteState, contained, on_cpu, write_many,
};

/// How long a label waits for the merger to name the source picture's newest version, in milliseconds. Its next
/// notification makes it due at once.
const MERGE_DEFER_MS: i64 = 1_000;
/// How long a label waits for an access point that does not answer, in milliseconds.
const UNREACHABLE_DEFER_MS: i64 = 30_000;
/// How long until a picture on its way is looked after, in milliseconds.
const UNDERWAY_DEFER_MS: i64 = 10_000;

/// A picture ready to go, with the label it is for.
struct Parcel {
    index: usize,
    send: Send,
    driver: Arc<dyn Driver>,
    delivery: Delivery,
}

/// Sends everything; a verdict for every index of `sends`.
pub(super) async fn send_all(
    drivers: &[Arc<dyn Driver>],
    context: Context<'_>,
    labels: &[Label],
    sends: Vec<(usize, Send)>,
) -> Result<Vec<(usize, Verdict)>, CallError> {
    let mut verdicts = Vec::with_capacity(sends.len());
    let parcels = pack(drivers, context, labels, sends, &mut verdicts).await?;
    let parcels = announce(context, labels, parcels, &mut verdicts).await?;
    let mut by_driver: BTreeMap<&'static str, Vec<Parcel>> = BTreeMap::new();
    for parcel in parcels {
        by_driver.entry(parcel.driver.name()).or_default().push(parcel);
    }
    for parcels in by_driver.into_values() {
        let Some(driver) = parcels.first().map(|parcel| Arc::clone(&parcel.driver)) else { continue };
        let (kept, deliveries): (Vec<(usize, Send)>, Vec<Delivery>) =
            parcels.into_iter().map(|parcel| ((parcel.index, parcel.send), parcel.delivery)).unzip();
        let sent = deliveries.len();
        let answers = driver.send_many(Shipment { generation: context.lease.generation, deliveries }).await;
        if answers.len() != sent {
            return Err(CallError::answer("a driver answered another number of deliveries than it got"));
        }
        for ((index, send), answer) in kept.into_iter().zip(answers) {
            if let Some(label) = labels.get(index) {
                verdicts.push((index, answered(context, label, send, answer, driver.as_ref())));
            }
        }
    }
    Ok(verdicts)
}

/// Reads access points and pictures and unpacks them. What cannot go out gets its verdict here.
async fn pack(
    drivers: &[Arc<dyn Driver>],
    context: Context<'_>,
    labels: &[Label],
    sends: Vec<(usize, Send)>,
    verdicts: &mut Vec<(usize, Verdict)>,
) -> Result<Vec<Parcel>, CallError> {
    let mut reads = Reads::default();
    for (index, send) in &sends {
        reads.want(DtoType::AccessPoint, send.access_point.clone());
        if let Some(label) = labels.get(*index) {
            reads.want(send.source, label.name.record(send.source));
        }
    }
    let read = reads.fetch(context.platform).await?;
    let mut ready = Vec::with_capacity(sends.len());
    for (index, mut send) in sends {
        let Some(label) = labels.get(index) else { continue };
        let found = access(drivers, &read, &mut send).and_then(|access| {
            let source = read.record_as::<SourceEslImage>(send.source, &label.name.record(send.source))?;
            Ok((access, source.record))
        });
        match found {
            Err(cause) => verdicts.push((index, not_sent(label, send, cause))),
            // The picture is newer than what the merger named: its next word is on its way.
            Ok((_, source)) if source.as_ref().is_none_or(|source| source.digest != send.digest) => {
                let until = context.clock.now().plus_ms(MERGE_DEFER_MS);
                let cause = "the source picture is not the one that was merged; waiting for the merger".to_owned();
                verdicts.push((index, Verdict::Settled(Outcome::Defer { until, cause })));
            }
            Ok((access, source)) => ready.push((index, send, access, label.name.clone(), source.unwrap_or_default())),
        }
    }
    let unpacked = on_cpu(ready, |(index, send, (driver, address), label, source)| {
        let picture = contained(|| unpack(&source), || Err("the picture's reader panicked".to_owned()));
        let hardware_address = send.hardware_address.clone();
        match picture {
            Ok((picture, digest)) => {
                let delivery = Delivery { label, hardware_address, access_point_address: address, digest, picture };
                Ok(Parcel { index, send, driver, delivery })
            }
            Err(cause) => Err(Box::new((index, send, cause))),
        }
    })
    .await?;
    let mut parcels = Vec::with_capacity(unpacked.len());
    for one in unpacked {
        match one {
            Ok(parcel) => parcels.push(parcel),
            Err(broken) => {
                let (index, send, cause) = *broken;
                verdicts.extend(labels.get(index).map(|label| (index, not_sent(label, send, cause))));
            }
        }
    }
    Ok(parcels)
}

/// The driver of the label's access point and the address there. The access point becomes an input.
fn access(drivers: &[Arc<dyn Driver>], read: &Records, send: &mut Send) -> Result<(Arc<dyn Driver>, String), String> {
    let found = read.record::<AccessPoint>(&send.access_point)?;
    send.inputs.insert(0, found.input);
    let Some(access_point) = found.record else {
        return Err(format!("access point {} does not exist", send.access_point));
    };
    let driver = drivers.iter().find(|driver| driver.name() == access_point.driver).ok_or_else(|| {
        format!("access point {} has the unknown driver {:?}", send.access_point, access_point.driver)
    })?;
    Ok((Arc::clone(driver), access_point.address))
}

fn unpack(source: &SourceEslImage) -> Result<(Picture, Digest), String> {
    let picture = Picture::unpack(&source.picture).map_err(|error| format!("the source picture: {error}"))?;
    let digest = picture.digest();
    if digest.as_bytes().as_slice() == source.digest.as_ref() {
        Ok((picture, digest))
    } else {
        Err("the source picture does not have the digest it names".to_owned())
    }
}

/// Says "sent" where a confirmed picture is about to be replaced. Parcels whose inputs changed go no further.
async fn announce(
    context: Context<'_>,
    labels: &[Label],
    parcels: Vec<Parcel>,
    verdicts: &mut Vec<(usize, Verdict)>,
) -> Result<Vec<Parcel>, CallError> {
    let (announced, mut ready): (Vec<Parcel>, Vec<Parcel>) =
        parcels.into_iter().partition(|parcel| parcel.send.must_be_announced());
    let writes: Vec<RecordWrite> = announced
        .iter()
        .filter_map(|parcel| labels.get(parcel.index).map(|label| (label, &parcel.send)))
        .map(|(label, send)| RecordWrite::put(label, DtoType::StoreEslStatus, &send.sent(), send.inputs.clone()))
        .collect();
    if writes.len() != announced.len() {
        return Err(CallError::answer("a parcel has no label"));
    }
    if writes.is_empty() {
        return Ok(ready);
    }
    let states = write_many(context.platform, context.lease, writes).await?;
    for (mut parcel, state) in announced.into_iter().zip(states) {
        match state {
            WriteState::InputChanged => verdicts.push((parcel.index, Verdict::Again)),
            WriteState::Written(version) | WriteState::Unchanged(version) => {
                if let Some(status) = parcel.send.inputs.last_mut() {
                    status.version = version;
                }
                ready.push(parcel);
            }
        }
    }
    Ok(ready)
}

fn not_sent(label: &Label, send: Send, cause: String) -> Verdict {
    let status = send.not_sent(&cause);
    say(label, &status, send.inputs, Outcome::Failed { cause })
}

fn answered(context: Context<'_>, label: &Label, send: Send, answer: Delivered, driver: &dyn Driver) -> Verdict {
    let status = send.answered(&answer, driver.evidence());
    let later = |ms| context.clock.now().plus_ms(ms);
    let outcome = match answer {
        Delivered::Confirmed => Outcome::Done,
        Delivered::Underway(state) => Outcome::Defer {
            until: later(UNDERWAY_DEFER_MS),
            cause: format!("the picture is on its way ({})", state.as_str_name()),
        },
        Delivered::Retryable { cause } => Outcome::Retry { cause },
        Delivered::Permanent { cause } => Outcome::Failed { cause },
        Delivered::Unreachable { cause } => Outcome::Defer { until: later(UNREACHABLE_DEFER_MS), cause },
        // A later worker holds the store: it knows better what the status is.
        Delivered::Superseded { cause } => return Verdict::Settled(Outcome::Retry { cause }),
    };
    say(label, &status, send.inputs, outcome)
}
