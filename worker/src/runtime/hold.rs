//! A lease held: its batches, the next one made ready while the last is worked off.
//!
//! A service whose work waits for hardware asks for more before its batch is over ([`Hand::wants_more`]). Where the lease
//! holds a store, further rows of it join the lease then, and their batch goes beside: reading, announcing and reporting do
//! not stand in the hardware's way. Nobody else suffers by that: CQS gives nothing further once others wait for the store,
//! or changes for a worker while this is bulk work, or the lane was stopped, and then whatever was not begun is given back.
//!
//! Invariants
//! - At most [`BATCHES_MAX`] batches are in hand, under one lease and one heartbeat, and at most [`BATCHES_OF_A_LEASE_MAX`]
//!   come under it altogether.
//! - A label is in one of them only, and in none after a service said that something of it may outlast its batch
//!   ([`Hand::is_the_last`]): what is written outside under a lease's generation comes one by one for each label.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use domain::LeaseRef;
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use proto::cqs::v1::DtoChangeNotification;
use tokio::sync::Notify;

use super::{CallError, LabelRef, Runtime, hand::Hand, pipeline::Batch, platform::Further};

/// Batches of one lease in hand at once: one is worked off, the next is ready when it ends.
const BATCHES_MAX: usize = 2;

/// Batches of one lease altogether. A batch that waits for hardware takes two seconds at most, so whatever waits elsewhere in
/// the queue for a loop of this worker gets one within twenty, however much waits here. The lease ends with them, and the
/// store's rows take their place among the others.
const BATCHES_OF_A_LEASE_MAX: u64 = 10;

/// A batch in hand, as the others need to know it.
struct InHand {
    number: u64,
    hand: Arc<Hand>,
    labels: BTreeSet<LabelRef>,
}

/// What is in hand under one lease.
struct Held<'a> {
    runtime: &'a Runtime,
    lease: &'a LeaseRef,
    told: Arc<Notify>,
    batches: VecDeque<InHand>,
    running: FuturesUnordered<BoxFuture<'a, (u64, Result<(), CallError>)>>,
    last: u64,
    /// The question for further rows that is under way.
    asked: Option<BoxFuture<'a, Result<Further, CallError>>>,
    /// Whether further rows may join.
    joins: bool,
}

impl Runtime {
    /// Works on what was leased, and on what joins it.
    pub(super) async fn hold(
        &self,
        lease: &LeaseRef,
        notifications: Vec<DtoChangeNotification>,
    ) -> Result<(), CallError> {
        let mut held = Held {
            runtime: self,
            lease,
            told: Arc::default(),
            batches: VecDeque::with_capacity(BATCHES_MAX),
            running: FuturesUnordered::new(),
            last: 0,
            asked: None,
            joins: self.service().exclusive_by_store(),
        };
        held.begin(self.sorted(notifications).await);
        while !held.batches.is_empty() || held.asked.is_some() {
            held.turn().await?;
            held.look_round();
        }
        Ok(())
    }
}

impl Held<'_> {
    fn begin(&mut self, batch: Batch) {
        let (runtime, lease, number) = (self.runtime, self.lease, self.last + 1);
        self.last = number;
        let hand = Arc::new(Hand::new(Arc::clone(&self.told)));
        self.batches.push_back(InHand { number, hand: Arc::clone(&hand), labels: batch.labels() });
        let work = async move { (number, runtime.batch(lease, batch, &hand).await) };
        self.running.push(work.boxed());
    }

    /// Waits for something to happen.
    async fn turn(&mut self) -> Result<(), CallError> {
        let told = Arc::clone(&self.told);
        tokio::select! {
            biased;
            Some((number, result)) = self.running.next() => {
                result?;
                self.joins &= !self.batches.iter().any(|batch| batch.hand.is_last());
                self.batches.retain(|batch| batch.number != number);
            }
            answer = answered(&mut self.asked) => {
                self.asked = None;
                self.joined(answer).await?;
            }
            () = told.notified() => {}
        }
        Ok(())
    }

    async fn joined(&mut self, answer: Result<Further, CallError>) -> Result<(), CallError> {
        let further = match answer {
            Ok(further) => further,
            Err(error) => {
                // With its last row the lease ended meanwhile, most likely. If it was lost, the others learn of it.
                tracing::debug!(queue = %self.lease.queue, generation = self.lease.generation, %error, "nothing further");
                self.joins = false;
                return Ok(());
            }
        };
        if further.give_way {
            self.ends();
        }
        if further.notifications.is_empty() {
            // Asked again when it is wanted again.
            self.batches.iter().for_each(|batch| batch.hand.wants_no_more());
            return Ok(());
        }
        let batch = self.runtime.sorted(further.notifications).await;
        let labels = batch.labels();
        if self.joins && self.batches.iter().all(|other| other.labels.is_disjoint(&labels)) {
            self.begin(batch);
            return Ok(());
        }
        self.ends();
        self.runtime.give_back(self.lease, batch).await
    }

    /// The lease ends with what is in hand, soon.
    fn ends(&mut self) {
        self.joins = false;
        self.batches.iter().for_each(|batch| batch.hand.hurry());
    }

    /// Asks for what is wanted, and hurries what others wait for.
    fn look_round(&mut self) {
        let may_join = self.last < BATCHES_OF_A_LEASE_MAX && !self.runtime.is_stopping();
        self.joins &= may_join && !self.batches.iter().any(|batch| batch.hand.is_last());
        let Some(newest) = self.batches.back().map(|batch| Arc::clone(&batch.hand)) else { return };
        let follows = self.asked.is_some() || (self.joins && newest.is_wanting_more());
        if follows && self.asked.is_none() && self.batches.len() < BATCHES_MAX {
            let (runtime, lease) = (self.runtime, self.lease);
            self.asked = Some(async move { runtime.further(lease).await }.boxed());
        }
        if newest.is_standing_idle() {
            // It waits for the older ones to end; where nothing follows it, for its own end.
            let hurried = self.batches.len() - usize::from(follows);
            self.batches.iter().take(hurried).for_each(|batch| batch.hand.hurry());
        }
    }
}

/// The answer to what was asked; never, where nothing was.
async fn answered<T>(asked: &mut Option<BoxFuture<'_, T>>) -> T {
    match asked {
        Some(asked) => asked.await,
        None => std::future::pending().await,
    }
}
