//! Why something of an operation waits: every cause, not the first one.

use domain::Timestamp;

use crate::model::{Act, BlockCause, Blocked, Control, PlaceReport, Queue, State};

/// A queue whose workers did not ask for work for so long has none, in milliseconds. A waiting worker is noted at least
/// every six seconds.
const NO_WORKER_MS: i64 = 15_000;

/// What is known of an operation beside its places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// Its controls.
    pub(crate) control: &'a Control,
    /// Where it stands.
    pub(crate) state: State,
    /// Who put the brake on.
    pub(crate) brake: Option<&'a Act>,
    /// The queues.
    pub(crate) queues: &'a [Queue],
    /// Now.
    pub(crate) now: Timestamp,
}

/// Every cause; none when it is worked, or over.
pub(crate) fn causes(view: &View<'_>, places: &[PlaceReport]) -> Vec<Blocked> {
    match view.state {
        State::Succeeded | State::FinishedWithFailures | State::Cancelling | State::Cancelled => return Vec::new(),
        State::AwaitingApproval | State::Running | State::Paused | State::Held => {}
    }
    let mut causes = of_the_whole(view);
    for place in places.iter().filter(|place| place.ready + place.delayed > 0) {
        let queue = view.queues.iter().find(|queue| queue.id == place.queue);
        for (cause, until, detail) in of_place(view, (place, queue)) {
            causes.push(Blocked { cause, queue: queue.map(|queue| queue.name.clone()), until, detail });
        }
    }
    causes
}

fn of_the_whole(view: &View<'_>) -> Vec<Blocked> {
    let all = |cause, until, detail| Blocked { cause, queue: None, until, detail };
    let by = |act: &Act| {
        let who = act.by.as_ref().map_or("the system", |subject| subject.as_str());
        format!("by {who} at {}: {}", act.at, act.reason)
    };
    let control = view.control;
    let mut causes = Vec::new();
    if let Some(approval) = control.approval.as_ref().filter(|_| control.awaits_approval()) {
        let detail = format!("{} labels need a second operator's approval", approval.label_count);
        causes.push(all(BlockCause::AwaitingApproval, Some(approval.expires_at), detail));
    }
    if let Some(brake) = view.brake {
        causes.push(all(BlockCause::Brake, None, by(brake)));
    }
    if let Some(pause) = &control.paused {
        causes.push(all(BlockCause::Paused, pause.until, by(&pause.act)));
    }
    if let Some(hold) = &control.held {
        causes.push(all(BlockCause::Held, None, hold.cause.clone()));
    }
    causes
}

fn of_place(
    view: &View<'_>,
    (place, queue): (&PlaceReport, Option<&Queue>),
) -> Vec<(BlockCause, Option<Timestamp>, String)> {
    let mut causes = Vec::new();
    let limits = view.control.limits;
    if place.ready == 0 {
        let more = if place.delayed < PlaceReport::COUNTED_MAX { "" } else { " or more" };
        let rows = place.delayed.min(PlaceReport::COUNTED_MAX);
        let detail = format!("{rows}{more} rows are deferred or backing off");
        causes.push((BlockCause::NotDue, place.next_due, detail));
        return causes;
    }
    if let (Some(until), Some(rate)) = (place.closed_until.filter(|until| *until > view.now), limits.throttle_per_s) {
        causes.push((BlockCause::Throttled, Some(until), format!("{rate} labels/s")));
    }
    if let Some(most) = limits.max_in_flight.filter(|most| place.leased_labels >= *most) {
        causes.push((BlockCause::InFlightLimit, None, format!("{} of {most} labels are leased", place.leased_labels)));
    }
    let polled_at = queue.and_then(|queue| queue.polled_at);
    let silent = polled_at.is_none_or(|at| view.now.ms_since(at) > NO_WORKER_MS);
    if silent && place.leased_until.is_none_or(|until| until <= view.now) {
        let detail = polled_at.map_or("no worker ever asked for work".to_owned(), |at| {
            format!("no worker has asked for work since {at}")
        });
        causes.push((BlockCause::NoWorker, None, detail));
    }
    causes
}
