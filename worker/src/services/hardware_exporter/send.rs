//! Sending at one access point: read what goes out, announce it, hand it to the lane, note what it answered.

use std::{sync::Arc, time::Duration};

use domain::{DtoType, Outcome, Timestamp};
use futures::{StreamExt as _, stream};
use picture::{Digest, Picture};
use proto::{
    records::v1::{DeliveryState, SourceEslImage, StoreEslStatus},
    timestamp_to_wire,
};
use tokio::time::Instant;

use super::{
    breaker::Gate,
    carry::not_carried,
    drivers::{Delivered, Delivery, Driver, Fence, Probe, Shipment},
    lanes::{CallTimes, Called, Lane, Sending},
    say,
    status::{self, Step},
    visit::{Errand, RUNNING_DEFER_MS, Verdicts, Visit},
};
use crate::runtime::{CallError, Reads, RecordWrite, Verdict, WriteState, contained, on_cpu, write_many};

/// How long a label waits for the merger to name the source picture's newest version, in milliseconds. Its next
/// notification makes it due at once.
const MERGE_DEFER_MS: i64 = 1_000;
/// Longest work announced at once: what is announced and not sent when a worker ends waits for the call's end.
const ANNOUNCED: Duration = Duration::from_secs(1);
/// Most pictures announced at once: their pictures are in memory meanwhile.
const ANNOUNCED_MAX: usize = 256;
/// Added to the end of calls for clocks that differ between workers.
const CLOCKS_DIFFER_MS: i64 = 5_000;

/// A picture ready to go.
struct Parcel {
    errand: Errand,
    delivery: Delivery,
    /// The status while it is on its way.
    sent: StoreEslStatus,
    announced: bool,
}

impl Visit<'_> {
    /// Sends as much as there is time for, most urgent first; a verdict for every errand.
    pub(super) async fn send(&self, errands: Vec<Errand>) -> Result<Verdicts, CallError> {
        let mut verdicts = Vec::with_capacity(errands.len());
        let mut ready = Vec::with_capacity(errands.len());
        for errand in errands {
            let errand = self.caught_up(errand);
            match self.if_running(&errand) {
                None => ready.push(errand),
                Some(verdict) => verdicts.push(verdict),
            }
        }
        ready.sort_by_key(|errand| self.label(errand).map(|label| label.sla));
        while !ready.is_empty() {
            if Instant::now() >= self.patience.end() {
                verdicts.extend(self.handed_back(ready));
                break;
            }
            if let Gate::Shut(shut) = self.lane.gate(self.now()) {
                verdicts.extend(self.parked(ready, &shut));
                break;
            }
            let rest = ready.split_off(ready.len().min(self.at_once()));
            let parcels = self.pack(ready, &mut verdicts).await?;
            let (parcels, times) = self.announce(parcels, &mut verdicts).await?;
            verdicts.extend(self.ship(parcels, times).await);
            ready = rest;
        }
        Ok(verdicts)
    }

    /// How many labels are read and announced together.
    fn at_once(&self) -> usize {
        let mean = self.lane.mean(&self.manner).max(Duration::from_millis(1));
        let fit = usize::try_from(ANNOUNCED.as_millis() / mean.as_millis().max(1)).unwrap_or(ANNOUNCED_MAX);
        let least = self.manner.per_call.max(1).saturating_mul(self.manner.at_once.max(1));
        fit.clamp(1, ANNOUNCED_MAX).max(least)
    }

    /// The errand with what is known by now of an earlier call to its label.
    fn caught_up(&self, mut errand: Errand) -> Errand {
        let now = self.now();
        let late = self.lane.take_late(&errand.carry.sending());
        let before = &mut errand.carry.before;
        if let Some(answer) = late {
            *before = over(std::mem::take(before), answer, now);
        }
        errand
    }

    /// Reads the pictures and unpacks them. What cannot go out gets its verdict here.
    async fn pack(&self, errands: Vec<Errand>, verdicts: &mut Verdicts) -> Result<Vec<Parcel>, CallError> {
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
                    verdicts.push((errand.index, Verdict::Settled(Outcome::Defer { until, cause })));
                }
            }
        }
        let unpacked = on_cpu(ready, |(errand, source)| {
            let picture = contained(|| unpack(&source), || Err("the picture's reader panicked".to_owned()));
            (errand, picture)
        })
        .await?;
        let mut parcels = Vec::with_capacity(unpacked.len());
        for (errand, picture) in unpacked {
            match picture {
                Ok((picture, digest)) => parcels.push(self.parcel(errand, picture, digest)),
                Err(cause) => verdicts.extend(not_carried(self.context, self.labels, errand, cause)),
            }
        }
        Ok(parcels)
    }

    fn parcel(&self, errand: Errand, picture: Picture, digest: Digest) -> Parcel {
        let carry = &errand.carry;
        let delivery = Delivery {
            label: carry.label.clone(),
            hardware_address: carry.outgoing.hardware_address.clone(),
            digest,
            picture,
            replaces: carry.pending(),
        };
        let sent = status::announced(&carry.before, &carry.outgoing, self.now(), None);
        Parcel { errand, delivery, sent, announced: false }
    }

    /// Says "sent" before anything goes out that a later worker must know of. Parcels whose inputs changed go no further.
    /// No call for what is announced runs after the deadline that the status names.
    async fn announce(
        &self,
        parcels: Vec<Parcel>,
        verdicts: &mut Verdicts,
    ) -> Result<(Vec<Parcel>, CallTimes), CallError> {
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
            return Ok((ready, times));
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
        Ok((ready, times))
    }

    /// Hands the parcels to the lane, as many a call and as many calls at once as the driver's manner says.
    async fn ship(&self, mut parcels: Vec<Parcel>, times: CallTimes) -> Verdicts {
        let per_call = self.manner.per_call.max(1);
        let mut calls = Vec::with_capacity(parcels.len().div_ceil(per_call));
        while !parcels.is_empty() {
            let rest = parcels.split_off(parcels.len().min(per_call));
            calls.push(std::mem::replace(&mut parcels, rest));
        }
        stream::iter(calls)
            .map(|parcels| self.ship_call(parcels, times))
            .buffered(self.manner.at_once.max(1))
            .concat()
            .await
    }

    async fn ship_call(&self, parcels: Vec<Parcel>, times: CallTimes) -> Verdicts {
        if let Gate::Shut(shut) = self.lane.gate(self.now()) {
            // What was announced did not go out.
            return parcels
                .into_iter()
                .filter_map(|parcel| {
                    let status = status::unreachable(parcel.errand.carry.before.clone(), &shut.cause, self.now());
                    let outcome = Outcome::Defer { until: shut.until, cause: shut.cause.clone() };
                    let label = self.label(&parcel.errand)?;
                    Some((parcel.errand.index, say(label, &status, parcel.errand.carry.inputs, outcome)))
                })
                .collect();
        }
        // An access point that has finished its share ends the others' soon.
        let end = self.patience.end();
        let times = CallTimes { begin_by: end, wait_until: end, ..times };
        let mut kept = Vec::with_capacity(parcels.len());
        let mut deliveries = Vec::with_capacity(parcels.len());
        for Parcel { errand, delivery, sent, announced } in parcels {
            deliveries.push(delivery);
            kept.push((errand, sent, announced));
        }
        let sending = |(errand, sent, _): &(Errand, StoreEslStatus, bool)| Sending {
            label: errand.carry.label.clone(),
            digest: errand.carry.outgoing.digest.clone(),
            at: status::sent_at(sent).unwrap_or_default(),
        };
        let about = kept.iter().map(sending).collect();
        let (driver, lane) = (Arc::clone(&self.driver), Arc::clone(&self.lane));
        let (place, generation) = (self.place.clone(), self.context.lease.generation);
        let shipment = Shipment { place, generation, deliveries };
        match self.lane.call(about, times, hand_over(driver, lane, shipment, self.now())).await {
            Called::Answered(answers) => {
                let answered = kept.into_iter().zip(answers);
                answered.filter_map(|((errand, sent, _), answer)| self.settled(errand, sent, answer)).collect()
            }
            Called::GoesOn => kept.into_iter().map(|(errand, ..)| self.goes_on(&errand)).collect(),
            Called::NotBegun => {
                let kept = kept.into_iter().enumerate();
                kept.filter_map(|(position, (errand, _, announced))| self.not_begun(errand, announced, position))
                    .collect()
            }
        }
    }

    /// The call outlasts the batch: its answer will be found in the lane, or seen by a look.
    fn goes_on(&self, errand: &Errand) -> (usize, Verdict) {
        let until = self.now().plus_ms(RUNNING_DEFER_MS);
        let cause = "the access point has not answered yet".to_owned();
        (errand.index, Verdict::Settled(Outcome::Defer { until, cause }))
    }

    /// There was no time for it: due again when the lane has come that far. An announcement is taken back.
    fn not_begun(&self, errand: Errand, announced: bool, position: usize) -> Option<(usize, Verdict)> {
        let label = self.label(&errand)?;
        let ahead = self.lane.mean(&self.manner).as_millis().saturating_mul(position as u128);
        let until = self.now().plus_ms(i64::try_from(ahead).unwrap_or(i64::MAX));
        let outcome = Outcome::Defer { until, cause: "its access point is busy with the labels before it".to_owned() };
        // A label without a status so far keeps its announcement: there is nothing to go back to, and its time runs out.
        if !announced || errand.carry.before.state() == DeliveryState::Unspecified {
            return Some((errand.index, Verdict::Settled(outcome)));
        }
        Some((errand.index, say(label, &errand.carry.before, errand.carry.inputs, outcome)))
    }

    fn handed_back(&self, errands: Vec<Errand>) -> Verdicts {
        let errands = errands.into_iter().enumerate();
        errands.filter_map(|(position, errand)| self.not_begun(errand, false, position)).collect()
    }
}

/// The status once the call that carried another picture is over with this answer.
fn over(sent: StoreEslStatus, answer: Delivered, now: Timestamp) -> StoreEslStatus {
    match answer {
        Delivered::Confirmed { evidence, proof } => status::confirmed(sent, evidence, &proof, now),
        Delivered::Underway { state, receipt, proof } => status::underway(sent, &receipt, Step::of(state, now, &proof)),
        Delivered::Retryable { cause }
        | Delivered::Permanent { cause }
        | Delivered::Unreachable { cause }
        | Delivered::Lost { cause }
        | Delivered::Superseded { cause } => status::retried(sent, &cause, now),
    }
}

/// Sends; where something was not taken, asks the access point whether it takes anything at all. One that has just
/// booted refuses every picture, and that is no fault of the labels.
async fn hand_over(driver: Arc<dyn Driver>, lane: Arc<Lane>, shipment: Shipment, now: Timestamp) -> Vec<Delivered> {
    let place = shipment.place.clone();
    let mut answers = driver.send(shipment).await;
    if answers.iter().any(|answer| matches!(answer, Delivered::Retryable { .. })) {
        let probe = driver.probe(&place).await;
        lane.probed(&probe, now);
        if let Probe::Away { cause } = probe {
            for answer in answers.iter_mut().filter(|answer| matches!(answer, Delivered::Retryable { .. })) {
                *answer = Delivered::Unreachable { cause: cause.clone() };
            }
        }
    }
    answers
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
