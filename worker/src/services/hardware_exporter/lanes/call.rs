//! One call in a lane: it has its place among the others from when it is asked for, begins by itself when its turn comes, and
//! is waited for no longer than its batch lasts.

use std::{
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::FutureExt as _;
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, oneshot},
    time::{Instant, timeout_at},
};

use super::{Lane, Sending};
use crate::services::hardware_exporter::drivers::Delivered;

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Called {
    /// An answer for each delivery.
    Answered(Vec<Delivered>),
    /// It goes on without us; its answers will lie in the lane.
    GoesOn,
    /// There was no time left to begin it, or it was not wanted any more.
    NotBegun,
}

/// A call to make.
pub(in super::super) struct Order<W, C> {
    /// The pictures it is about.
    pub(in super::super) about: Vec<Sending>,
    pub(in super::super) times: CallTimes,
    /// Whether it is to be made still; asked when its turn has come.
    pub(in super::super) wanted: W,
    /// Answers for each of its pictures.
    pub(in super::super) call: C,
}

/// The times of a call.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CallTimes {
    /// It is not begun after this.
    pub(in super::super) begin_by: Instant,
    /// Nobody waits for it after this.
    pub(in super::super) wait_until: Instant,
    /// It is dropped then.
    pub(in super::super) deadline: Instant,
    /// The lane rests that long after it.
    pub(in super::super) pause: Duration,
}

/// The answers of a call; none: it was not begun.
type Told = Option<Vec<Delivered>>;

impl Lane {
    /// Makes a call when its turn comes, at the lane's pace. Turns come in the order in which they were asked for.
    pub(in super::super) async fn call<W, C>(self: &Arc<Self>, order: Order<W, C>) -> Called
    where
        W: FnOnce() -> bool + Send + 'static,
        C: Future<Output = Vec<Delivered>> + Send + 'static,
    {
        let (count, wait_until) = (order.about.len(), order.times.wait_until);
        let (told, mut answer) = oneshot::channel();
        let begun = Arc::new(OnceLock::new());
        // On its own, so that it is neither cut short nor overlapped when nobody waits for it any more, and begins without
        // waiting for the batch, which may be busy with another access point.
        tokio::spawn(Arc::clone(self).carry_out(order, Asked { turn: self.asked(), begun: Arc::clone(&begun), told }));
        let told = tokio::select! {
            told = &mut answer => told.unwrap_or_else(|_| Some(ended(count))),
            () = tokio::time::sleep_until(wait_until) => {
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

    /// A place among the calls that wait for their turn, behind whatever was asked for before.
    fn asked(&self) -> Turn {
        let mut turn: Turn = Box::pin(Arc::clone(&self.calls).acquire_owned());
        // It stands there from its first look on.
        match turn.as_mut().now_or_never() {
            Some(permit) => Box::pin(std::future::ready(permit)),
            None => turn,
        }
    }

    async fn carry_out<W, C>(self: Arc<Self>, Order { about, times, wanted, call }: Order<W, C>, asked: Asked)
    where
        W: FnOnce() -> bool + Send + 'static,
        C: Future<Output = Vec<Delivered>> + Send + 'static,
    {
        let Asked { turn, begun, mut told } = asked;
        let permit = tokio::select! {
            biased;
            () = told.closed() => return,
            permit = timeout_at(times.begin_by, turn) => permit.ok().and_then(Result::ok),
        };
        let permit = match permit {
            Some(permit) => self.rested(permit, times.begin_by).await,
            None => None,
        };
        let Some(permit) = permit.filter(|_| !told.is_closed() && wanted() && begun.set(true).is_ok()) else {
            // Whoever waits no more knows.
            let _ = told.send(None);
            return;
        };
        let (count, began) = (about.len(), Instant::now());
        let answers = tokio::select! {
            biased;
            () = tokio::time::sleep_until(times.deadline) => unanswered(count),
            answers = call => fitting(answers, count),
        };
        self.rest(began, count, times.pause);
        drop(permit);
        if let Err(Some(answers)) = told.send(Some(answers)) {
            self.keep_late(about, answers);
        }
    }
}

/// A turn that is waited for.
type Turn = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A call that was asked for, as the one sees it who makes it.
struct Asked {
    turn: Turn,
    /// Whether it was begun; set once, by the one who makes it or by the one who waits no more.
    begun: Arc<OnceLock<bool>>,
    told: oneshot::Sender<Told>,
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
