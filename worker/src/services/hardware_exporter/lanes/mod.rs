//! One lane per access point: its calls one after the other at its pace, its circuit breaker, what answered too late.
//!
//! Invariants
//! - A lane never has more calls out than its driver's manner allows, whoever asks: a call holds its permit until it is
//!   over, also when nobody waits for it any more.
//! - Batches of a store come one after the other, in the order in which they asked: each makes its pictures ready when the
//!   one before has made its last ready ([`Lane::turn`]), and sends when that one has sent its last ([`Lane::road`]).
//! - Lanes know nothing of each other: a slow access point holds nothing but its own.
//! - A call is dropped at its deadline, looked at before anything else, so that a process that was suspended does not
//!   send what was meant for the time before.
//!
//! Reading order: [`Lane`], then `call`. Deliberately not here: what is sent and in which order (`visit`).

mod call;

pub(super) use self::call::{CallTimes, Called, Order};

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{Timestamp, Urn};
use tokio::{
    sync::{self, MutexGuard as Guard, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::{
    breaker::{Breaker, Gate, Shut},
    drivers::{Delivered, Manner, Probe},
};
use crate::runtime::LabelRef;

/// Lanes kept although nothing happens in them: more than one worker has access points to serve.
const IDLE_MAX: usize = 4_096;
/// Late answers kept: what the calls of a lane carry at once. More are only left where labels vanished meanwhile.
const LATE_MAX: usize = 4_096;
/// How far the moment an access point says it started may move between two probes without being looked at closely, in
/// milliseconds: clocks drift, calls take their time, and none starts twice in half a minute.
const BOOT_TOLERANCE_MS: i64 = 30_000;
/// What a picture is believed to take at an access point that was never called: a few are tried before many are made ready.
const FIRST_GUESS: Duration = Duration::from_millis(50);
/// Bounds of what a call is waited for beyond its time: one that hangs holds a batch no longer.
const OVERTIME_MIN: Duration = Duration::from_millis(50);
const OVERTIME_MAX: Duration = Duration::from_millis(500);
/// Weight of the newest call in a lane's mean, one in this many.
const MEAN_WEIGHT: u32 = 4;

/// All lanes of this process.
#[derive(Default)]
pub(super) struct Lanes(Mutex<HashMap<Urn, Arc<Lane>>>);

/// The lane of one access point.
pub(super) struct Lane {
    access_point: Urn,
    calls: Arc<Semaphore>,
    turn: sync::Mutex<()>,
    road: sync::Mutex<()>,
    salt: u64,
    facts: Mutex<Facts>,
}

/// What is remembered of an access point between visits. Losing it (a restart) costs looks and waits, never truth.
#[derive(Default)]
struct Facts {
    breaker: Breaker,
    /// No call starts before.
    free_at: Option<Instant>,
    /// Mean time of a picture, pause included.
    mean: Option<Duration>,
    /// Answers that came when nobody waited any more.
    late: BTreeMap<LabelRef, Late>,
    /// Since when the access point is up, as it said last.
    up_since: Option<Timestamp>,
    /// It says another start than before, or one for the first time, and nobody has compared that with its record yet.
    boot: Option<Boot>,
}

/// When an access point started, as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boot {
    /// Since when it is up.
    pub(super) since: Timestamp,
    /// When that was seen.
    pub(super) seen: Timestamp,
}

/// An answer that came late.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Late {
    /// To what.
    sending: Sending,
    answer: Delivered,
}

/// One sending of one picture to one label: what an answer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) label: LabelRef,
    pub(super) digest: Vec<u8>,
    /// When it was sent, as the status says: the same picture may be sent again.
    pub(super) at: Timestamp,
}

impl Lanes {
    /// The lane of an access point.
    pub(super) fn of(&self, access_point: &Urn, manner: &Manner) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= IDLE_MAX && !lanes.contains_key(access_point) {
            // In use elsewhere, away, or with an answer that nobody took: kept.
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1 || !lane.is_idle());
        }
        let lane = lanes.entry(access_point.clone()).or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            access_point.hash(&mut hasher);
            Arc::new(Lane {
                access_point: access_point.clone(),
                calls: Arc::new(Semaphore::new(manner.at_once.max(1))),
                turn: sync::Mutex::new(()),
                road: sync::Mutex::new(()),
                salt: hasher.finish(),
                facts: Mutex::default(),
            })
        });
        Arc::clone(lane)
    }
}

impl Lane {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self) -> bool {
        let facts = self.facts();
        facts.breaker.is_free() && facts.late.is_empty()
    }

    /// Waits until the batches before have made their last pictures ready; none when that comes after `by`.
    pub(super) async fn turn(&self, by: Instant) -> Option<Guard<'_, ()>> {
        timeout_at(by, self.turn.lock()).await.ok()
    }

    /// Waits until the batches before have sent their last pictures; none when that comes after `by`.
    pub(super) async fn road(&self, by: Instant) -> Option<Guard<'_, ()>> {
        timeout_at(by, self.road.lock()).await.ok()
    }

    /// Whether a batch sends here.
    pub(super) fn is_sending(&self) -> bool {
        self.road.try_lock().is_err()
    }

    /// Whether it has as many calls out as it may.
    fn is_occupied(&self) -> bool {
        self.calls.available_permits() == 0
    }

    /// Whether it stays occupied although its calls should be over by now. Says so after the usual time at the latest.
    pub(super) async fn is_stuck(&self, manner: &Manner) -> bool {
        self.is_occupied() && self.permit(Instant::now() + self.overtime(manner)).await.is_none()
    }

    /// How long a call that was begun is waited for when it should be over.
    pub(super) fn overtime(&self, manner: &Manner) -> Duration {
        (self.mean(manner) * 2).clamp(OVERTIME_MIN, OVERTIME_MAX)
    }

    pub(super) fn gate(&self, now: Timestamp) -> Gate {
        self.facts().breaker.gate(now)
    }

    /// The access point did not answer.
    pub(super) fn failed(&self, now: Timestamp, cause: &str) -> Shut {
        self.away(&mut self.facts(), now, cause)
    }

    /// Told when it begins: what it holds up is seen at each label, why it does concerns people.
    fn away(&self, facts: &mut Facts, now: Timestamp, cause: &str) -> Shut {
        if facts.breaker.is_free() {
            tracing::warn!(access_point = %self.access_point, cause, "an access point does not answer; its labels wait");
        }
        facts.breaker.failed(now, cause, self.salt)
    }

    fn up(&self, facts: &mut Facts) {
        if !facts.breaker.is_free() {
            tracing::info!(access_point = %self.access_point, "an access point answers again");
        }
        facts.breaker.answered();
    }

    /// Notes for the breaker what a driver answered, before the next call begins.
    pub(super) fn noted(&self, answers: &[Delivered], now: Timestamp) {
        let mut facts = self.facts();
        for answer in answers {
            match answer {
                Delivered::Unreachable { cause } => drop(self.away(&mut facts, now, cause)),
                _ => self.up(&mut facts),
            }
        }
    }

    /// A number that differs between access points, so that they are not looked after all at once.
    pub(super) fn salt(&self) -> u64 {
        self.salt
    }

    /// Takes the answer that came late for this sending.
    pub(super) fn take_late(&self, sending: &Sending) -> Option<Delivered> {
        // What is about another sending is of no use to anybody any more.
        self.facts().late.remove(&sending.label).filter(|late| late.sending == *sending).map(|late| late.answer)
    }

    /// Notes what a probe found, asked at `now`.
    pub(super) fn probed(&self, probe: &Probe, now: Timestamp) {
        let mut facts = self.facts();
        match probe {
            Probe::Away { cause } => drop(self.away(&mut facts, now, cause)),
            Probe::Up { uptime } => {
                self.up(&mut facts);
                let Some(uptime) = uptime else { return };
                let since = now.plus_ms(-i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX));
                let before = facts.up_since.replace(since);
                if before.is_none_or(|before| since.ms_since(before) > BOOT_TOLERANCE_MS) {
                    facts.boot = Some(Boot { since, seen: now });
                }
            }
        }
    }

    /// Takes the start that a probe found.
    pub(super) fn take_boot(&self) -> Option<Boot> {
        self.facts().boot.take()
    }

    /// Nobody could compare it; a newer one goes before.
    pub(super) fn put_back(&self, boot: Boot) {
        self.facts().boot.get_or_insert(boot);
    }

    /// How long a picture takes here, pause included; a guess while nothing is known.
    pub(super) fn mean(&self, manner: &Manner) -> Duration {
        self.facts().mean.unwrap_or(manner.pause.max(FIRST_GUESS))
    }

    /// Takes a permit at the lane's pace; none when that comes after `by`.
    async fn permit(&self, by: Instant) -> Option<OwnedSemaphorePermit> {
        let permit = timeout_at(by, Arc::clone(&self.calls).acquire_owned()).await.ok()?.ok()?;
        self.rested(permit, by).await
    }

    /// The permit once the lane has had its rest; none when that comes after `by`.
    async fn rested(&self, permit: OwnedSemaphorePermit, by: Instant) -> Option<OwnedSemaphorePermit> {
        let free_at = self.facts().free_at;
        if let Some(free_at) = free_at {
            if free_at > by {
                return None;
            }
            // Timers have whole milliseconds: waiting for a moment that has passed would take one.
            if free_at > Instant::now() {
                tokio::time::sleep_until(free_at).await;
            }
        }
        Some(permit)
    }

    /// Notes how long a call of `count` pictures took and when the next may start.
    fn rest(&self, begun: Instant, count: usize, pause: Duration) {
        let now = Instant::now();
        let took = (now - begun + pause) / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let mut facts = self.facts();
        facts.free_at = Some(now + pause);
        facts.mean = Some(facts.mean.map_or(took, |mean| (mean * (MEAN_WEIGHT - 1) + took) / MEAN_WEIGHT));
    }

    fn keep_late(&self, about: Vec<Sending>, answers: Vec<Delivered>) {
        let mut facts = self.facts();
        if facts.late.len() >= LATE_MAX {
            facts.late.clear();
        }
        let late = about.into_iter().zip(answers);
        facts.late.extend(late.map(|(sending, answer)| (sending.label.clone(), Late { sending, answer })));
    }
}

#[cfg(test)]
mod tests;
