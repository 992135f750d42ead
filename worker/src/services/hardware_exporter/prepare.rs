//! Before sending at one access point: what goes out is read, unpacked, encoded and announced, so that the access point
//! waits for none of that.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::DtoType;
use picture::{Digest, Picture};
use proto::{
    records::v1::{SourceEslImage, StoreEslStatus},
    timestamp_to_wire,
};
use tokio::time::Instant;

use super::{
    carry::not_carried,
    drivers::{Delivery, Driver, Fence},
    lanes::CallTimes,
    status,
    visit::{Errand, Verdicts, Visit},
};
use crate::runtime::{CallError, Reads, RecordWrite, Verdict, WriteState, contained, on_cpu, write_many};

/// How long a label waits for the merger to name the source picture's newest version, in milliseconds. Its next
/// notification makes it due at once.
const MERGE_DEFER_MS: i64 = 1_000;
/// Longest work announced at once. While it is sent the next is announced, so twice as much, and the last call or two of
/// what went before, may be announced and not sent when a worker ends; that waits for the call's end.
const ANNOUNCED: Duration = Duration::from_millis(500);
/// Most pictures announced at once: their pictures are in memory meanwhile.
const ANNOUNCED_MAX: usize = 128;
/// Added to the end of calls for clocks that differ between workers.
const CLOCKS_DIFFER_MS: i64 = 5_000;

/// A picture ready to go.
pub(super) struct Parcel {
    pub(super) errand: Errand,
    pub(super) delivery: Delivery,
    /// The status while it is on its way.
    pub(super) sent: StoreEslStatus,
    pub(super) announced: bool,
}

/// Pictures that are sent one after the other, with the times of their calls.
pub(super) struct Group {
    pub(super) parcels: Vec<Parcel>,
    pub(super) times: CallTimes,
}

impl Group {
    /// What it was made of, each with whether it was announced.
    pub(super) fn errands(self) -> impl Iterator<Item = (Errand, bool)> {
        self.parcels.into_iter().map(|parcel| (parcel.errand, parcel.announced))
    }
}

impl Visit<'_> {
    /// How many labels are read and announced together: what can be sent in `time`, and no more than what may be announced.
    pub(super) fn at_once(&self, time: Duration) -> usize {
        let mean_us = self.lane.mean(&self.manner).max(Duration::from_millis(1)).as_micros();
        let fit = |span: Duration| usize::try_from(span.as_micros() / mean_us).unwrap_or(ANNOUNCED_MAX);
        let calls = self.manner.at_once.max(1);
        let least = self.manner.per_call.max(1).saturating_mul(calls);
        let most = fit(ANNOUNCED).clamp(1, ANNOUNCED_MAX).max(least);
        // The mean is that of one call's pictures; several calls are out at once.
        most.min(fit(time).saturating_mul(calls)).max(1)
    }

    /// Reads the pictures and unpacks them. What cannot go out gets its verdict here.
    pub(super) async fn pack(&self, errands: Vec<Errand>, verdicts: &mut Verdicts) -> Result<Vec<Parcel>, CallError> {
        let mut reads = Reads::default();
        for Errand { carry, .. } in &errands {
            reads.want(carry.source, carry.label.record(carry.source));
        }
        let read = reads.fetch(self.context.platform).await?;
        let mut ready = Vec::with_capacity(errands.len());
        for errand in errands {
            let carry = &errand.carry;
            match read.record_as::<SourceEslImage>(carry.source, &carry.label.record(carry.source)) {
                Err(cause) => verdicts.extend(not_carried(self.context, self.labels, errand, cause)),
                Ok(found) => {
                    if let Some(source) = found.record.filter(|source| source.digest == carry.outgoing.digest) {
                        ready.push((errand, source));
                        continue;
                    }
                    // The picture is newer than what the merger named: its next word is on its way.
                    let until = self.now().plus_ms(MERGE_DEFER_MS);
                    let cause = "the source picture is not the one that was merged; waiting for the merger".to_owned();
                    verdicts.push((errand.index, Verdict::Settled(errand.carry.later(until, cause))));
                }
            }
        }
        let driver = Arc::clone(&self.driver);
        let unpacked = on_cpu(ready, move |(errand, source)| {
            let open = || unpack(&source).and_then(|contents| contents.encoded(driver.as_ref()));
            (errand, contained(open, || Err("the picture's reader panicked".to_owned())))
        })
        .await?;
        let mut parcels = Vec::with_capacity(unpacked.len());
        for (errand, contents) in unpacked {
            match contents {
                Ok(contents) => parcels.push(self.parcel(errand, contents)),
                Err(cause) => verdicts.extend(not_carried(self.context, self.labels, errand, cause)),
            }
        }
        Ok(parcels)
    }

    fn parcel(&self, errand: Errand, Contents { picture, digest, encoded }: Contents) -> Parcel {
        let carry = &errand.carry;
        let delivery = Delivery {
            label: carry.label.clone(),
            hardware_address: carry.outgoing.hardware_address.clone(),
            digest,
            picture,
            encoded,
            replaces: carry.pending(),
        };
        let sent = status::announced(&carry.before, &carry.outgoing, self.now(), None);
        Parcel { errand, delivery, sent, announced: false }
    }

    /// Says "sent" before anything goes out that a later worker must know of. Parcels whose inputs changed go no further.
    /// No call for what is announced runs after the deadline that the status names.
    pub(super) async fn announce(&self, parcels: Vec<Parcel>, verdicts: &mut Verdicts) -> Result<Group, CallError> {
        let mut times = self.times();
        times.deadline = times.begin_by.max(Instant::now()) + self.manner.call_limit;
        let longest = times.deadline.duration_since(Instant::now());
        let until = self.now().plus_ms(i64::try_from(longest.as_millis()).unwrap_or(i64::MAX) + CLOCKS_DIFFER_MS);
        let (mut announced, mut ready): (Vec<Parcel>, Vec<Parcel>) = parcels
            .into_iter()
            .partition(|parcel| self.manner.fence == Fence::Exporter || parcel.errand.carry.replaces_a_confirmed_one());
        let mut writes = Vec::with_capacity(announced.len());
        for parcel in &mut announced {
            let label = self.label(&parcel.errand).ok_or_else(|| CallError::answer("a parcel has no label"))?;
            if self.manner.fence == Fence::Exporter {
                parcel.sent.sent_until = Some(timestamp_to_wire(until));
            }
            let inputs = parcel.errand.carry.inputs.clone();
            writes.push(RecordWrite::put(label, DtoType::StoreEslStatus, &parcel.sent, inputs));
        }
        if writes.is_empty() {
            return Ok(Group { parcels: ready, times });
        }
        let states = write_many(self.context.platform, self.context.lease, writes).await?;
        for (mut parcel, state) in announced.into_iter().zip(states) {
            match state {
                WriteState::InputChanged => verdicts.push((parcel.errand.index, Verdict::Again)),
                WriteState::Written(version) | WriteState::Unchanged(version) => {
                    if let Some(status) = parcel.errand.carry.inputs.last_mut() {
                        status.version = version;
                    }
                    parcel.announced = true;
                    ready.push(parcel);
                }
            }
        }
        Ok(Group { parcels: ready, times })
    }
}

/// What a source picture holds.
struct Contents {
    picture: Picture,
    digest: Digest,
    encoded: Bytes,
}

impl Contents {
    /// With what the driver sends of it.
    fn encoded(self, driver: &dyn Driver) -> Result<Self, String> {
        Ok(Self { encoded: driver.encode(&self.picture)?, ..self })
    }
}

fn unpack(source: &SourceEslImage) -> Result<Contents, String> {
    let picture = Picture::unpack(&source.picture).map_err(|error| format!("the source picture: {error}"))?;
    let digest = picture.digest();
    if digest.as_bytes().as_slice() == source.digest.as_ref() {
        Ok(Contents { picture, digest, encoded: Bytes::new() })
    } else {
        Err("the source picture does not have the digest it names".to_owned())
    }
}
