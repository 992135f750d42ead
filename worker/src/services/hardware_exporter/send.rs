//! Sending at one access point, group by group: while one is handed to the lane, the next is made ready (`prepare`) and
//! what was answered before is written down.

use std::{sync::Arc, time::Duration};

use domain::{Clock, DtoType, Outcome, Timestamp};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesOrdered};
use proto::records::v1::{DeliveryState, StoreEslStatus};
use tokio::{sync::MutexGuard as Guard, time::Instant};

use super::{
    breaker::{Gate, Shut},
    drivers::{Delivered, Driver, Fence, Probe, Shipment},
    lanes::{CallTimes, Called, Lane, Order, Sending},
    prepare::{Group, Parcel},
    say,
    status::{self, Step},
    visit::{Errand, RUNNING_DEFER_MS, Verdicts, Visit},
};
use crate::runtime::{CallError, RecordWrite, Reported, Verdict, write_many};

/// Calls that are out, or wait for their turn, in that order.
type Out<'v> = FuturesOrdered<BoxFuture<'v, Verdicts>>;

impl Visit<'_> {
    /// Sends as much as there is time for, most urgent first; a verdict for every errand. Without the road, which is taken
    /// when the first pictures are ready.
    pub(super) async fn send(
        &self,
        errands: Vec<Errand>,
        (turn, road): (Guard<'_, ()>, Option<Guard<'_, ()>>),
    ) -> Result<Verdicts, CallError> {
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
        let (mut next, refused) = self.prepare(&mut ready, Duration::ZERO).await?;
        verdicts.extend(refused);
        let mut answered = Verdicts::new();
        let mut road = road;
        if road.is_none()
            && let Some(group) = next.take()
        {
            match self.way().await {
                Ok(way) => (road, next) = (Some(way), Some(group)),
                Err(closed) => {
                    verdicts.extend(self.kept_waiting(closed, group, ready));
                    return Ok(verdicts);
                }
            }
        }
        let (mut turn, mut out) = (Some(turn), Out::new());
        while let Some(group) = next {
            // Another group's time is enough to have the next batch read.
            if ready.len() <= self.at_once(Duration::MAX) {
                self.patience.one_ends_soon(self.lane.mean(&self.manner));
            }
            if ready.is_empty() {
                drop(turn.take());
            }
            let takes = self.lane.mean(&self.manner) * u32::try_from(group.parcels.len()).unwrap_or(u32::MAX);
            // The access point is kept busy: meanwhile the next are made ready and what it answered before is written down.
            let (shipped, prepared, noted) = tokio::join!(
                self.ship(group, &mut out),
                self.prepare(&mut ready, takes),
                self.noted(std::mem::take(&mut answered))
            );
            answered = shipped;
            let (group, refused) = prepared?;
            verdicts.extend(refused);
            verdicts.extend(noted?);
            next = group;
        }
        while let Some(last) = out.next().await {
            answered.extend(last);
        }
        drop(road);
        verdicts.extend(answered);
        Ok(verdicts)
    }

    /// Waits until the batches before have sent all they had.
    async fn way(&self) -> Result<Guard<'_, ()>, Closed> {
        let road = self.lane.road(self.patience.end()).await.ok_or(Closed::TooLate)?;
        if self.lane.is_stuck(&self.manner).await { Err(Closed::Stuck) } else { Ok(road) }
    }

    /// What was ready, and what was not, when the way was closed: all of it later.
    fn kept_waiting(&self, closed: Closed, group: Group, ready: Vec<Errand>) -> Verdicts {
        let errands = group.errands();
        match closed {
            Closed::TooLate => self.all_back(errands.chain(ready.into_iter().map(|errand| (errand, false)))),
            Closed::Stuck => {
                let mut verdicts = self.busy(ready);
                verdicts.extend(errands.filter_map(|(one, announced)| {
                    let outcome = self.later(&one);
                    self.given_back(one, announced, outcome)
                }));
                verdicts
            }
        }
    }

    /// Makes the next group ready, to be sent after `ahead`; verdicts for what will not be sent. No group: nothing is left.
    async fn prepare(&self, ready: &mut Vec<Errand>, ahead: Duration) -> Result<(Option<Group>, Verdicts), CallError> {
        let mut verdicts = Verdicts::new();
        while !ready.is_empty() {
            let time = self.patience.end().saturating_duration_since(Instant::now() + ahead);
            if time.is_zero() {
                verdicts.extend(self.handed_back(std::mem::take(ready)));
                break;
            }
            if let Gate::Shut(shut) = self.lane.gate(self.now()) {
                verdicts.extend(self.parked(std::mem::take(ready), &shut));
                break;
            }
            // In equal parts: the last one's time is what the next batch is made ready in.
            let parts = ready.len().div_ceil(self.at_once(time)).max(1);
            let rest = ready.split_off(ready.len().div_ceil(parts));
            let errands = std::mem::replace(ready, rest);
            let parcels = self.pack(errands, &mut verdicts).await?;
            let group = self.announce(parcels, &mut verdicts).await?;
            if !group.parcels.is_empty() {
                return Ok((Some(group), verdicts));
            }
        }
        Ok((None, verdicts))
    }

    /// Writes what these verdicts say now instead of at the batch's end; the verdicts that are left.
    async fn noted(&self, verdicts: Verdicts) -> Result<Verdicts, CallError> {
        let mut left = Vec::with_capacity(verdicts.len());
        let (mut writes, mut written) = (Vec::new(), Vec::new());
        for (index, verdict) in verdicts {
            match verdict {
                Verdict::Write(write, reported) => {
                    writes.push(write);
                    written.push((index, reported));
                }
                other => left.push((index, other)),
            }
        }
        if writes.is_empty() {
            return Ok(left);
        }
        let states = write_many(self.context.platform, self.context.lease, writes).await?;
        left.extend(written.into_iter().zip(states).map(|((index, reported), state)| {
            (index, reported.outcome(state).map_or(Verdict::Again, Verdict::Settled))
        }));
        Ok(left)
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

    /// Hands the parcels to the lane, as many a call and as many calls at once as the driver's manner says. Ends when the last
    /// of them has its place there: the next group comes behind it without a rest. What was answered until then.
    async fn ship<'v>(&'v self, Group { mut parcels, times }: Group, out: &mut Out<'v>) -> Verdicts {
        let (per_call, at_once) = (self.manner.per_call.max(1), self.manner.at_once.max(1));
        let mut answered = Verdicts::new();
        while !parcels.is_empty() {
            // One more than may be out: it has its turn the moment another is over.
            while out.len() > at_once {
                answered.extend(out.next().await.unwrap_or_default());
            }
            let rest = parcels.split_off(parcels.len().min(per_call));
            out.push_back(self.ship_call(std::mem::replace(&mut parcels, rest), times).boxed());
            // From its first look on it has its place.
            if let Some(Some(verdicts)) = out.next().now_or_never() {
                answered.extend(verdicts);
            }
        }
        answered
    }

    async fn ship_call(&self, parcels: Vec<Parcel>, times: CallTimes) -> Verdicts {
        // An access point that has finished its share ends the others' soon.
        let end = self.patience.end();
        let times = CallTimes { begin_by: end, wait_until: end + self.overtime(), ..times };
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
        let (place, generation) = (self.place.clone(), self.context.lease.generation);
        let shipment = Shipment { place, generation, deliveries };
        let (lane, clock, patience) = (Arc::clone(&self.lane), Arc::clone(self.context.clock), self.patience.clone());
        let wanted = move || Instant::now() < patience.end() && lane.gate(clock.now()) == Gate::Free;
        let call = HandOver {
            driver: Arc::clone(&self.driver),
            lane: Arc::clone(&self.lane),
            clock: Arc::clone(self.context.clock),
        };
        match self.lane.call(Order { about, times, wanted, call: call.of(shipment) }).await {
            Called::Answered(answers) => {
                let answered = kept.into_iter().zip(answers);
                answered.filter_map(|((errand, sent, _), answer)| self.settled(errand, sent, answer)).collect()
            }
            Called::GoesOn => {
                if self.manner.fence == Fence::Target {
                    // The target tells what comes late from what came after by their leases alone.
                    self.context.hand.is_the_last();
                }
                kept.into_iter().map(|(errand, ..)| self.goes_on(&errand)).collect()
            }
            Called::NotBegun => {
                if let Gate::Shut(shut) = self.lane.gate(self.now()) {
                    return kept.into_iter().filter_map(|(errand, ..)| self.not_reached(errand, &shut)).collect();
                }
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
        (errand.index, Verdict::Settled(errand.carry.later(until, cause)))
    }

    /// What was announced did not go out.
    fn not_reached(&self, errand: Errand, shut: &Shut) -> Option<(usize, Verdict)> {
        let status = status::unreachable(errand.carry.before.clone(), &shut.cause, self.now());
        let outcome = errand.carry.later(shut.until, shut.cause.clone());
        let label = self.label(&errand)?;
        Some((errand.index, say(label, &status, errand.carry.inputs, outcome)))
    }

    /// There was no time for it: due again when the lane has come that far.
    fn not_begun(&self, errand: Errand, announced: bool, position: usize) -> Option<(usize, Verdict)> {
        let ahead = self.lane.mean(&self.manner).as_millis().saturating_mul(position as u128);
        let until = self.now().plus_ms(i64::try_from(ahead).unwrap_or(i64::MAX));
        let outcome = errand.carry.later(until, "its access point is busy with the labels before it".to_owned());
        self.given_back(errand, announced, outcome)
    }

    /// Nothing was sent: an announcement is taken back.
    fn given_back(&self, errand: Errand, announced: bool, outcome: Outcome) -> Option<(usize, Verdict)> {
        let label = self.label(&errand)?;
        if !announced {
            return Some((errand.index, Verdict::Settled(outcome)));
        }
        if errand.carry.before.state() == DeliveryState::Unspecified {
            // It had no status: there is nothing else to go back to.
            let write = RecordWrite::delete(label, DtoType::StoreEslStatus, errand.carry.inputs);
            return Some((errand.index, Verdict::Write(write, Reported::Always(outcome))));
        }
        Some((errand.index, say(label, &errand.carry.before, errand.carry.inputs, outcome)))
    }

    pub(super) fn handed_back(&self, errands: Vec<Errand>) -> Verdicts {
        self.all_back(errands.into_iter().map(|errand| (errand, false)))
    }

    /// Nothing of these errands was begun; with each, whether it was announced.
    fn all_back(&self, errands: impl Iterator<Item = (Errand, bool)>) -> Verdicts {
        errands
            .enumerate()
            .filter_map(|(position, (errand, announced))| self.not_begun(errand, announced, position))
            .collect()
    }
}

/// Why nothing can be sent after the batches before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// There is no time left.
    TooLate,
    /// One of their calls does not come to its end.
    Stuck,
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

/// A call that sends.
struct HandOver {
    driver: Arc<dyn Driver>,
    lane: Arc<Lane>,
    clock: Arc<dyn Clock>,
}

impl HandOver {
    /// Sends; where something was not taken, asks the access point whether it takes anything at all. One that has just
    /// booted refuses every picture, and that is no fault of the labels.
    async fn of(self, shipment: Shipment) -> Vec<Delivered> {
        let Self { driver, lane, clock } = self;
        let place = shipment.place.clone();
        let mut answers = driver.send(shipment).await;
        if answers.iter().any(|answer| matches!(answer, Delivered::Retryable { .. })) {
            let asked = clock.now();
            let probe = driver.probe(&place).await;
            lane.probed(&probe, asked);
            if let Probe::Away { cause } = probe {
                for answer in answers.iter_mut().filter(|answer| matches!(answer, Delivered::Retryable { .. })) {
                    *answer = Delivered::Unreachable { cause: cause.clone() };
                }
            }
        }
        lane.noted(&answers, clock.now());
        answers
    }
}
