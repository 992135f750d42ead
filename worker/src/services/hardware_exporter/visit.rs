//! One batch at one access point: look after what is on its way, then send what waits.
//!
//! Reading order: [`Visit::run`], [`Visit::look`], then `send`; [`Visit::settled`] turns every answer into a verdict.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
    time::Duration,
};

use domain::{DtoType, Outcome, Timestamp};
use proto::records::v1::{DeliveryState, StoreEslStatus};
use tokio::time::Instant;

use super::{
    breaker::{Gate, Shut},
    drivers::{Delivered, Driver, Manner, Pending, Place, Probe, Survey},
    lanes::{CallTimes, Called, Lane, Order},
    moved,
    next_look::{after_losses, next_attempt, next_look},
    patience::Patience,
    plan::Carry,
    say,
    status::{self, Step},
};
use crate::runtime::{CallError, Context, Label, RecordWrite, Reported, Verdict};

/// How long a label waits when its access point is in the midst of another call, in milliseconds.
const BUSY_DEFER_MS: i64 = 1_000;
/// How long a label waits while a call that carries a picture to it may still run, in milliseconds at most.
pub(super) const RUNNING_DEFER_MS: i64 = 2_000;
/// How long a picture may be on its way before the label fails, in milliseconds: a week, longer than a store is closed.
const UNCONFIRMED_MAX_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// One access point in one batch.
pub(super) struct Visit<'a> {
    pub(super) context: Context<'a>,
    pub(super) labels: &'a [Label],
    pub(super) lane: Arc<Lane>,
    pub(super) driver: Arc<dyn Driver>,
    pub(super) manner: Manner,
    pub(super) place: Place,
    pub(super) patience: &'a Patience,
}

/// A picture to carry, and the label of the batch it is for.
pub(super) struct Errand {
    pub(super) index: usize,
    pub(super) carry: Carry,
}

/// Verdicts by the index of their label.
pub(super) type Verdicts = Vec<(usize, Verdict)>;

impl Visit<'_> {
    /// A verdict for every errand.
    pub(super) async fn run(&self, errands: Vec<Errand>) -> Result<Verdicts, CallError> {
        // An earlier batch of the store comes first.
        let Some(turn) = self.lane.turn(self.patience.end()).await else { return Ok(self.handed_back(errands)) };
        let looks = self.manner.looks.is_some();
        let looked_after = |errand: &Errand| looks && errand.carry.is_underway();
        // What it still sends may be waited for with pictures that are ready.
        let only_sends = !errands.iter().any(looked_after) && self.lane.gate(self.now()) == Gate::Free;
        if only_sends && self.lane.is_sending() {
            return self.send(errands, (turn, None)).await;
        }
        let Some(road) = self.lane.road(self.patience.end()).await else { return Ok(self.handed_back(errands)) };
        // A call that outlasted an earlier batch: nobody waits for it long, least of all the other access points.
        if self.lane.is_stuck(&self.manner).await {
            return Ok(self.busy(errands));
        }
        match self.lane.gate(self.now()) {
            Gate::Free => {}
            Gate::Shut(shut) => return Ok(self.parked(errands, &shut)),
            Gate::Trial => match self.trial().await {
                Gate::Free => {}
                Gate::Shut(shut) => return Ok(self.parked(errands, &shut)),
                Gate::Trial => return Ok(self.busy(errands)),
            },
        }
        let (underway, waiting): (Vec<Errand>, Vec<Errand>) = errands.into_iter().partition(looked_after);
        let mut verdicts = self.look(underway).await;
        if let Gate::Shut(shut) = self.lane.gate(self.now()) {
            verdicts.extend(self.parked(waiting, &shut));
        } else {
            verdicts.extend(self.send(waiting, (turn, Some(road))).await?);
        }
        Ok(verdicts)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    pub(super) fn label(&self, errand: &Errand) -> Option<&Label> {
        self.labels.get(errand.index)
    }

    /// Times of a call that begins soon.
    pub(super) fn times(&self) -> CallTimes {
        let end = self.patience.end();
        CallTimes {
            begin_by: end,
            wait_until: end,
            deadline: Instant::now() + self.manner.call_limit,
            pause: self.manner.pause,
        }
    }

    /// How long the answer of a call is waited for that was begun in time, beyond the batch's end: the usual call is over
    /// then, so that the next batch finds the access point free.
    pub(super) fn overtime(&self) -> Duration {
        self.lane.overtime(&self.manner)
    }

    /// Finds out whether an access point that went away is back. [`Gate::Trial`]: not known yet.
    async fn trial(&self) -> Gate {
        let (driver, lane, place, now) =
            (Arc::clone(&self.driver), Arc::clone(&self.lane), self.place.clone(), self.now());
        let probe = async move {
            lane.probed(&driver.probe(&place).await, now);
            Vec::new()
        };
        match self.lane.call(Order { about: Vec::new(), times: self.times(), wanted: || true, call: probe }).await {
            Called::Answered(_) => self.lane.gate(self.now()),
            Called::GoesOn | Called::NotBegun => Gate::Trial,
        }
    }

    /// Looks after everything that is on its way here, in one call.
    async fn look(&self, errands: Vec<Errand>) -> Verdicts {
        let mut verdicts = Vec::with_capacity(errands.len());
        let (mut asked, mut pending): (Vec<Errand>, Vec<Pending>) = (Vec::new(), Vec::new());
        for errand in errands {
            if let Some(answer) = self.lane.take_late(&errand.carry.sending()) {
                let before = errand.carry.before.clone();
                verdicts.extend(self.settled(errand, before, answer));
            } else if let Some(verdict) = self.if_running(&errand) {
                // Not there yet is not lost.
                verdicts.push(verdict);
            } else if let Some(one) = errand.carry.pending() {
                asked.push(errand);
                pending.push(one);
            } else {
                // Underway means that something was sent here.
                verdicts.extend(self.busy(vec![errand]));
            }
        }
        if asked.is_empty() {
            return verdicts;
        }
        let about = asked.iter().map(|errand| errand.carry.sending()).collect();
        let call = self.survey(pending);
        match self.lane.call(Order { about, times: self.times(), wanted: || true, call }).await {
            Called::Answered(answers) => {
                for (errand, answer) in asked.into_iter().zip(answers) {
                    let before = errand.carry.before.clone();
                    verdicts.extend(self.settled(errand, before, answer));
                }
            }
            Called::GoesOn | Called::NotBegun => verdicts.extend(self.busy(asked)),
        }
        verdicts
    }

    /// A probe, then a look: what is on its way tells of a reset, too, but later.
    fn survey(&self, pending: Vec<Pending>) -> impl Future<Output = Vec<Delivered>> + Send + 'static {
        let (driver, lane, place, clock) =
            (Arc::clone(&self.driver), Arc::clone(&self.lane), self.place.clone(), Arc::clone(self.context.clock));
        async move {
            let asked = clock.now();
            let probe = driver.probe(&place).await;
            lane.probed(&probe, asked);
            match probe {
                Probe::Away { cause } => vec![Delivered::Unreachable { cause }; pending.len()],
                Probe::Up { .. } => {
                    let answers = driver.look(Survey { place, pending }).await;
                    lane.noted(&answers, clock.now());
                    answers
                }
            }
        }
    }

    /// The verdict after a driver's answer; `sent` is the status while the picture was on its way.
    pub(super) fn settled(&self, errand: Errand, sent: StoreEslStatus, answer: Delivered) -> Option<(usize, Verdict)> {
        let now = self.now();
        let label = self.label(&errand)?;
        let (status, outcome) = match answer {
            Delivered::Confirmed { evidence, proof } => {
                let status = status::confirmed(sent, evidence, &proof, now);
                let outcome =
                    moved::next(&status, now).map_or(status::arrived(evidence, true), |until| Outcome::Follow {
                        until,
                        cause: "an older picture may still wait where the label hung before".to_owned(),
                        handed_over: true,
                    });
                (status, outcome)
            }
            Delivered::Underway { state, receipt, proof } => self.underway(sent, (state, &receipt, &proof), now),
            Delivered::Retryable { cause } => {
                if let Some(until) = next_attempt(sent.attempts, now, self.salt_of(label)) {
                    (status::retried(sent, &cause, now), errand.carry.later(until, cause))
                } else {
                    let cause = format!("given up after {} attempts: {cause}", sent.attempts);
                    (status::failed(sent, &cause, now), Outcome::Failed { cause })
                }
            }
            Delivered::Permanent { cause } => (status::failed(sent, &cause, now), Outcome::Failed { cause }),
            Delivered::Unreachable { cause } => {
                let Shut { until, cause } = self.lane.failed(now, &cause);
                // It did not get there: no attempt, and nothing that could still run.
                let attempts = errand.carry.before.attempts;
                let sent = StoreEslStatus { attempts, sent_until: None, ..sent };
                (status::unreachable(sent, &cause, now), errand.carry.later(until, cause))
            }
            Delivered::Lost { cause } => {
                let status = status::lost(sent, &cause, now);
                let Some(until) = after_losses(status.losses, now) else {
                    let write = RecordWrite::put(label, DtoType::StoreEslStatus, &status, errand.carry.inputs);
                    return Some((errand.index, Verdict::Write(write, Reported::Again)));
                };
                (status, Outcome::Follow { until, cause, handed_over: false })
            }
            // A later worker holds the store: it knows better what the status is.
            Delivered::Superseded { cause } => {
                return Some((errand.index, Verdict::Settled(Outcome::Retry { cause })));
            }
        };
        Some((errand.index, say(label, &status, errand.carry.inputs, outcome)))
    }

    /// A number that differs between labels, so that they do not come back in step.
    fn salt_of(&self, label: &Label) -> u64 {
        let mut hasher = DefaultHasher::new();
        label.name.hash(&mut hasher);
        hasher.finish() ^ self.lane.salt()
    }

    fn underway(
        &self,
        sent: StoreEslStatus,
        (state, receipt, proof): (DeliveryState, &str, &str),
        now: Timestamp,
    ) -> (StoreEslStatus, Outcome) {
        let sent_at = status::sent_at(&sent).unwrap_or(now);
        let status = status::underway(sent, receipt, Step::of(state, now, proof));
        let Some(looks) = self.manner.looks else {
            let cause = format!("the driver {} never looks what became of a picture", self.driver.name());
            return (status::failed(status, &cause, now), Outcome::Failed { cause });
        };
        if now.ms_since(sent_at) > UNCONFIRMED_MAX_MS {
            let cause = format!("not confirmed within {} days", UNCONFIRMED_MAX_MS / (24 * 60 * 60 * 1_000));
            return (status::failed(status, &cause, now), Outcome::Failed { cause });
        }
        let until = next_look(looks, sent_at, now, self.lane.salt());
        let handed_over = status::is_taken(&status);
        (status, Outcome::Follow { until, cause: format!("the picture is on its way: {proof}"), handed_over })
    }

    /// What a label waits for while a call that carries a picture to it may still run elsewhere.
    pub(super) fn if_running(&self, errand: &Errand) -> Option<(usize, Verdict)> {
        let now = self.now();
        let until = status::sent_until(&errand.carry.before).filter(|until| *until > now)?;
        let cause = "an earlier call may still be bringing a picture to the label".to_owned();
        let until = until.min(now.plus_ms(RUNNING_DEFER_MS));
        Some((errand.index, Verdict::Settled(errand.carry.later(until, cause))))
    }

    /// Labels of an access point that is left alone: they wait, and no attempt is counted.
    pub(super) fn parked(&self, errands: Vec<Errand>, shut: &Shut) -> Verdicts {
        let now = self.now();
        errands
            .into_iter()
            .filter_map(|errand| {
                let label = self.label(&errand)?;
                let outcome = errand.carry.later(shut.until, shut.cause.clone());
                let Errand { index, carry } = errand;
                let status = status::unreachable(carry.before.clone(), &shut.cause, now);
                if status == carry.before {
                    return Some((index, Verdict::Settled(outcome)));
                }
                Some((index, say(label, &status, carry.inputs, outcome)))
            })
            .collect()
    }

    /// Labels whose access point is in the midst of another call.
    pub(super) fn busy(&self, errands: Vec<Errand>) -> Verdicts {
        errands.into_iter().map(|errand| (errand.index, Verdict::Settled(self.later(&errand)))).collect()
    }

    /// What such a label waits for.
    pub(super) fn later(&self, errand: &Errand) -> Outcome {
        let until = self.now().plus_ms(BUSY_DEFER_MS);
        errand.carry.later(until, "the access point has not answered another call yet".to_owned())
    }
}
