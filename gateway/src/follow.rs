//! Following operations: one look a second for each operation that somebody follows, however many follow it.
//!
//! Invariants
//! - Streams are bounded, in total and for each operator; a follower that goes away gives its place back at once.
//! - An operation nobody follows is not looked at.
//! - A follower sees whole snapshots, each with a revision that only grows; one it missed does it no harm.
//!
//! Deliberately not here: who may follow what (`routes::events`), what a snapshot says (`routes::operation_view`).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use daemon::shutdown::Shutdown;
use domain::{ErrorCode, OperatorSubject, Refusal, TenantId, TrackingId};
use proto::{
    CqsClient,
    cqs::v1::{GetOperationRequest, Operation},
};
use tokio::sync::watch;

use crate::backend::{CallError, Peer, call};

/// Time between two looks at an operation: counts move every second or so.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Streams at once over all operators: each holds a connection (of 1,024) and some KiB.
const STREAMS_MAX: usize = 256;
/// Streams at once of one operator: some windows, not all there are.
const STREAMS_OF_ONE_MAX: usize = 16;

/// Names an operation.
pub(crate) type OperationName = (TenantId, TrackingId);

/// What followers see. None until the first look after the one they came with.
pub(crate) type Seen = Option<Arc<Operation>>;

/// Who follows what.
#[derive(Default)]
pub(crate) struct Follows {
    streams: Mutex<BTreeMap<String, usize>>,
    looks: Mutex<BTreeMap<OperationName, Weak<watch::Sender<Seen>>>>,
}

/// A place among the streams; given back when dropped.
pub(crate) struct Place {
    follows: Arc<Follows>,
    subject: String,
}

/// One follower.
pub(crate) struct Follower {
    /// The newest snapshot; closed when nobody looks any more.
    pub(crate) seen: watch::Receiver<Seen>,
    _place: Place,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut streams = locked(&self.follows.streams);
        if let Some(count) = streams.get_mut(&self.subject) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.subject);
            }
        }
    }
}

impl Follows {
    /// Takes a place for one more stream of that operator.
    fn place(self: &Arc<Self>, subject: &OperatorSubject) -> Result<Place, Refusal> {
        let mut streams = locked(&self.streams);
        let all: usize = streams.values().sum();
        let own = streams.entry(subject.to_string()).or_default();
        let full = if *own >= STREAMS_OF_ONE_MAX {
            Some(format!("{STREAMS_OF_ONE_MAX} streams of this operator are open; close one"))
        } else if all >= STREAMS_MAX {
            Some("too many streams are open; try again, or poll the operation".to_owned())
        } else {
            None
        };
        if let Some(message) = full {
            if *own == 0 {
                streams.remove(subject.as_str());
            }
            return Err(Refusal::new(ErrorCode::ResourceExhausted, message));
        }
        *own += 1;
        Ok(Place { follows: Arc::clone(self), subject: subject.to_string() })
    }

    /// Follows an operation: joins whoever looks at it already, or begins to look.
    pub(crate) fn follow(
        self: &Arc<Self>,
        (cqs, shutdown): (CqsClient, &Shutdown),
        name: &OperationName,
        subject: &OperatorSubject,
    ) -> Result<Follower, Refusal> {
        let place = self.place(subject)?;
        let mut looks = locked(&self.looks);
        looks.retain(|_, look| look.strong_count() > 0);
        if let Some(sender) = looks.get(name).and_then(Weak::upgrade) {
            return Ok(Follower { seen: sender.subscribe(), _place: place });
        }
        let (sender, seen) = watch::channel(None);
        let sender = Arc::new(sender);
        looks.insert(name.clone(), Arc::downgrade(&sender));
        shutdown.tasks.spawn(look(cqs, name.clone(), sender, shutdown.clone()));
        Ok(Follower { seen, _place: place })
    }
}

/// Looks at one operation until nobody follows it, or the process stops.
async fn look(
    mut cqs: CqsClient,
    (tenant, tracking_id): OperationName,
    sender: Arc<watch::Sender<Seen>>,
    shutdown: Shutdown,
) {
    let request = GetOperationRequest { tenant_id: tenant.to_string(), tracking_id: tracking_id.to_string() };
    loop {
        match call(Peer::Cqs, cqs.get_operation(request.clone())).await {
            Ok(operation) => {
                sender.send_if_modified(|seen| {
                    let news = seen.as_ref().is_none_or(|seen| **seen != operation);
                    if news {
                        *seen = Some(Arc::new(operation));
                    }
                    news
                });
            }
            // It is gone: nothing more will be seen of it.
            Err(CallError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => return,
            // Followers keep what they have; the next look may be answered.
            Err(error) => tracing::warn!(?error, %tracking_id, "an operation that is followed could not be looked at"),
        }
        tokio::select! {
            () = shutdown.soft.cancelled() => return,
            () = sender.closed() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_bounded_for_each_operator_and_in_all_and_a_place_is_given_back() {
        let follows = Arc::new(Follows::default());
        let place = |operator: usize| follows.place(&format!("operator-{operator}").parse().unwrap());
        let mut held: Vec<Place> = (0..STREAMS_OF_ONE_MAX).map(|_| place(0).unwrap()).collect();
        let refused = |operator: usize| place(operator).err().map(|refusal| refusal.code);
        assert_eq!(refused(0), Some(ErrorCode::ResourceExhausted), "one operator does not take them all");
        held.extend((STREAMS_OF_ONE_MAX..STREAMS_MAX).map(|n| place(n / STREAMS_OF_ONE_MAX).unwrap()));
        assert_eq!(refused(999), Some(ErrorCode::ResourceExhausted), "nor do all together take more");
        held.pop();
        drop(place(999).unwrap());
        held.clear();
        assert!(locked(&follows.streams).is_empty(), "nothing is kept of who is gone");
    }
}
