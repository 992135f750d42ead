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
//! Deliberately not here: what is sent and in which order (`visit`).

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use domain::{Timestamp, Urn};
use futures::FutureExt as _;
use tokio::{
    sync::{self, MutexGuard as Guard, OwnedSemaphorePermit, Semaphore, oneshot},
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

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// An answer for each delivery.
    Answered(Vec<Delivered>),
    /// It goes on without us; its answers will lie in the lane.
    GoesOn,
    /// There was no time left to begin it, or it was not wanted any more.
    NotBegun,
}

/// A call to make.
pub(super) struct Order<W, C> {
    /// The pictures it is about.
    pub(super) about: Vec<Sending>,
    pub(super) times: CallTimes,
    /// Whether it is to be made still; asked when its turn has come.
    pub(super) wanted: W,
    /// Answers for each of its pictures.
    pub(super) call: C,
}

/// The times of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallTimes {
    /// It is not begun after this.
    pub(super) begin_by: Instant,
    /// Nobody waits for it after this.
    pub(super) wait_until: Instant,
    /// It is dropped then.
    pub(super) deadline: Instant,
    /// The lane rests that long after it.
    pub(super) pause: Duration,
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
        self.facts().breaker.failed(now, cause, self.salt)
    }

    /// Notes for the breaker what a driver answered, before the next call begins.
    pub(super) fn noted(&self, answers: &[Delivered], now: Timestamp) {
        let mut facts = self.facts();
        for answer in answers {
            match answer {
                Delivered::Unreachable { cause } => drop(facts.breaker.failed(now, cause, self.salt)),
                _ => facts.breaker.answered(),
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
            Probe::Away { cause } => drop(facts.breaker.failed(now, cause, self.salt)),
            Probe::Up { uptime } => {
                facts.breaker.answered();
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

    /// Makes a call when its turn comes, at the lane's pace. Turns come in the order in which they were asked for.
    pub(super) async fn call<W, C>(self: &Arc<Self>, Order { about, times, wanted, call }: Order<W, C>) -> Called
    where
        W: FnOnce() -> bool + Send + 'static,
        C: Future<Output = Vec<Delivered>> + Send + 'static,
    {
        let count = about.len();
        let (mut told, mut answer) = oneshot::channel();
        let (lane, begun) = (Arc::clone(self), Arc::new(OnceLock::new()));
        let begins = Arc::clone(&begun);
        // Asked once here, so that it has its place before whatever is asked for next.
        let mut turn = Box::pin(Arc::clone(&self.calls).acquire_owned());
        let at_once = turn.as_mut().now_or_never();
        // On its own, so that it is neither cut short nor overlapped when nobody waits for it any more, and begins without
        // waiting for the batch, which may be busy with other access points.
        tokio::spawn(async move {
            let permit = match at_once {
                Some(permit) => permit.ok(),
                None => tokio::select! {
                    biased;
                    () = told.closed() => return,
                    permit = timeout_at(times.begin_by, turn) => permit.ok().and_then(Result::ok),
                },
            };
            let permit = match permit {
                Some(permit) => lane.rested(permit, times.begin_by).await,
                None => None,
            };
            let wanted = permit.filter(|_| !told.is_closed() && wanted() && begins.set(true).is_ok());
            let Some(permit) = wanted else {
                // Whoever does not wait any more has said so.
                drop(told.send(None));
                return;
            };
            let begun = Instant::now();
            let answers = tokio::select! {
                biased;
                () = tokio::time::sleep_until(times.deadline) => unanswered(count),
                answers = call => fitting(answers, count),
            };
            lane.rest(begun, count, times.pause);
            drop(permit);
            if let Err(Some(answers)) = told.send(Some(answers)) {
                lane.keep_late(about, answers);
            }
        });
        let told = tokio::select! {
            told = &mut answer => told.unwrap_or_else(|_| Some(ended(count))),
            () = tokio::time::sleep_until(times.wait_until) => {
                if begun.set(false).is_ok() {
                    return Called::NotBegun;
                }
                answer.close();
                match answer.try_recv() {
                    Ok(told) => told,
                    Err(_) => return Called::GoesOn,
                }
            }
        };
        told.map_or(Called::NotBegun, Called::Answered)
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

fn ended(count: usize) -> Vec<Delivered> {
    vec![Delivered::Retryable { cause: "the driver panicked".to_owned() }; count]
}

fn unanswered(count: usize) -> Vec<Delivered> {
    vec![Delivered::Unreachable { cause: "the call was not answered in time".to_owned() }; count]
}

/// A driver that answers another number than it was asked for says nothing.
fn fitting(answers: Vec<Delivered>, count: usize) -> Vec<Delivered> {
    if answers.len() == count {
        return answers;
    }
    vec![
        Delivered::Retryable { cause: "the driver answered another number of deliveries than it got".to_owned() };
        count
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::services::hardware_exporter::drivers::{Fence, Looks};

    /// What an upload takes.
    const UPLOAD: Duration = Duration::from_millis(20);
    /// What reading, announcing and reporting takes between two batches.
    const BETWEEN: Duration = Duration::from_millis(50);

    fn manner() -> Manner {
        Manner {
            per_call: 1,
            at_once: 1,
            pause: Duration::ZERO,
            call_limit: Duration::from_secs(30),
            looks: Some(Looks { first: Duration::from_secs(45), longest: Duration::from_mins(10) }),
            fence: Fence::Exporter,
        }
    }

    /// One lane's share of a batch: made ready in its turn, then sent one after the other.
    async fn share(lane: Arc<Lane>, waiting: u32, at_work: Arc<AtomicUsize>) {
        let far = Instant::now() + Duration::from_mins(1);
        let turn = lane.turn(far).await.unwrap();
        tokio::time::sleep(BETWEEN).await;
        let _road = lane.road(far).await.unwrap();
        drop(turn);
        for _ in 0..waiting {
            let counted = Arc::clone(&at_work);
            let upload = async move {
                assert_eq!(counted.fetch_add(1, Ordering::SeqCst), 0, "two uploads at once");
                tokio::time::sleep(UPLOAD).await;
                counted.fetch_sub(1, Ordering::SeqCst);
                Vec::new()
            };
            let times = CallTimes { begin_by: far, wait_until: far, deadline: far, pause: Duration::ZERO };
            let order = Order { about: Vec::new(), times, wanted: || true, call: upload };
            assert!(matches!(lane.call(order).await, Called::Answered(_)));
        }
    }

    /// In virtual time: four access points that take 20 ms a picture, unevenly many labels a batch, two batches at once.
    #[tokio::test(start_paused = true)]
    async fn four_access_points_are_kept_busy_and_no_two_calls_overlap_on_one() {
        let lanes = Lanes::default();
        let names: Vec<Urn> = (0..4).map(|id| format!("t/T/s/S/accesspoints/A{id}").parse().unwrap()).collect();
        let of_lane: Vec<(Arc<Lane>, Arc<AtomicUsize>)> =
            names.iter().map(|name| (lanes.of(name, &manner()), Arc::default())).collect();
        let (begun, mut sent) = (Instant::now(), 0);
        let mut last = None;
        for round in 0..20 {
            // 148 labels by chance: a quarter each, give or take nine.
            let shares: Vec<_> = of_lane
                .iter()
                .zip(0..)
                .map(|((lane, at_work), index)| {
                    let waiting = 37 + (round * 7 + index * 5) % 19 - 9;
                    sent += waiting;
                    tokio::spawn(share(Arc::clone(lane), waiting, Arc::clone(at_work)))
                })
                .collect();
            let before = last.replace(futures::future::join_all(shares));
            if let Some(before) = before {
                assert!(before.await.iter().all(Result::is_ok));
            }
        }
        if let Some(last) = last {
            assert!(last.await.iter().all(Result::is_ok));
        }
        let (busy, possible) = (UPLOAD * sent, begun.elapsed() * 4);
        assert!(busy * 100 >= possible * 93, "{busy:?} of {possible:?}");
    }

    /// In virtual time: a call that hangs is waited for no longer than the batch, holds its own lane until its deadline,
    /// and its late answer is kept.
    #[tokio::test(start_paused = true)]
    async fn a_hanging_call_holds_its_own_lane_only_and_is_dropped_at_its_deadline() {
        let lanes = Lanes::default();
        let lane = lanes.of(&"t/T/s/S/accesspoints/A".parse().unwrap(), &manner());
        let label = LabelRef::of(&"t/T/s/S/esls/E".parse().unwrap()).unwrap();
        let sending = Sending { label, digest: vec![1; 32], at: Timestamp::from_ms(7) };
        let now = Instant::now();
        let times = CallTimes {
            begin_by: now + Duration::from_secs(3),
            wait_until: now + Duration::from_secs(3),
            deadline: now + Duration::from_secs(30),
            pause: Duration::ZERO,
        };
        let order = Order { about: vec![sending.clone()], times, wanted: || true, call: std::future::pending() };
        let called = lane.call(order).await;
        assert_eq!((called, now.elapsed()), (Called::GoesOn, Duration::from_secs(3)));
        assert!(lane.is_occupied() && lane.take_late(&sending).is_none());
        tokio::time::sleep(Duration::from_secs(28)).await;
        assert!(!lane.is_occupied());
        let other = Sending { at: Timestamp::from_ms(8), ..sending.clone() };
        assert!(matches!(lane.take_late(&sending), Some(Delivered::Unreachable { .. })));
        assert_eq!(lane.take_late(&other), None);
    }
}
