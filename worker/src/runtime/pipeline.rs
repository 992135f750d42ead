//! The loop: dequeue, keep the lease alive, split or handle, complete.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use daemon::shutdown::Shutdown;
use domain::{
    Clock, IdSource, LeaseRef, Notification, Outcome, ServiceName,
    limits::{DEQUEUE_ITEMS_MAX, DEQUEUE_WAIT_MS_MAX, LEASE_MS_MAX, LEASE_MS_MIN},
};
use proto::{cqs::v1::DtoChangeNotification, notification_from_wire};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use super::{
    CallError, Context, Expansion, Label, LabelRef, Platform, Route, Service,
    backoff::{Backoff, persist},
    cause,
    hand::Hand,
    handle::handle,
    heartbeat::Heartbeat,
    platform::{Ask, Further, Leased},
    split::{Split, Splitter},
};

/// Shortest turn of the loop when nothing came: a platform that answers long-polls at once must not make it spin.
const EMPTY_TURN_MIN: Duration = Duration::from_millis(50);
/// A batch that is in hand for longer waits for something: work takes some tens of milliseconds.
const WAITS_AFTER: Duration = Duration::from_millis(250);

/// How a service's queue is worked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PipelineSettings {
    /// Batches in hand at once per service, 1 to 16. Two let one read and write while the other renders.
    pub pipelines: usize,
    /// Most items of a batch, 1 to 2,000.
    pub batch_max: i32,
    /// How long a dequeue waits for a first item, in milliseconds, 0 to 30,000. A stop waits for it.
    pub wait_ms: i32,
    /// Length of a lease, in milliseconds, 100 to 600,000; extended while the batch is in hand.
    pub lease_ms: i32,
}

impl Default for PipelineSettings {
    fn default() -> Self {
        // A changed price waits for the batches in hand at each of three services, so a batch is some tens of milliseconds:
        // with 256 labels a price took twice as long in the midst of a refresh that was a seventh faster.
        Self { pipelines: 2, batch_max: 96, wait_ms: 2_000, lease_ms: 30_000 }
    }
}

impl PipelineSettings {
    /// Each value forced into its range.
    #[must_use]
    pub fn within_bounds(self) -> Self {
        Self {
            pipelines: self.pipelines.clamp(1, 16),
            batch_max: self.batch_max.clamp(1, DEQUEUE_ITEMS_MAX),
            wait_ms: self.wait_ms.clamp(0, DEQUEUE_WAIT_MS_MAX),
            lease_ms: self.lease_ms.clamp(LEASE_MS_MIN, LEASE_MS_MAX),
        }
    }
}

/// What a runtime is made of.
pub(crate) struct RuntimeParts {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) platform: Platform,
    pub(crate) settings: PipelineSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) worker_id: Arc<str>,
    pub(crate) shutdown: Shutdown,
}

/// One service's runtime.
pub(crate) struct Runtime {
    parts: RuntimeParts,
    configured: watch::Sender<bool>,
    /// Whether the platform did not answer one of the loops last: what all of them meet is said once.
    is_away: AtomicBool,
    /// One for each batch that works. A loop holds one while it asks and works, and gives it back when its batch waits.
    working: Arc<Semaphore>,
}

/// Whether the loop goes on.
enum Turn {
    Worked,
    Idle,
}

impl Runtime {
    pub(crate) fn new(parts: RuntimeParts) -> Arc<Self> {
        let working = Arc::new(Semaphore::new(parts.settings.pipelines.max(1)));
        Arc::new(Self { parts, configured: watch::Sender::new(false), is_away: AtomicBool::new(false), working })
    }

    /// The service's name.
    pub(crate) fn name(&self) -> ServiceName {
        self.parts.service.name()
    }

    /// Becomes true once the queue exists with its subscriptions.
    pub(crate) fn configured(&self) -> watch::Receiver<bool> {
        self.configured.subscribe()
    }

    /// Starts the pipelines on the current tokio runtime; they end with the shutdown's soft token.
    pub(crate) fn start(self: &Arc<Self>) {
        let runtime = Arc::clone(self);
        self.parts.shutdown.tasks.spawn(async move {
            if !runtime.configure().await {
                return;
            }
            let loops = runtime.parts.settings.pipelines + runtime.parts.service.waiting_batches();
            for _ in 0..loops {
                let pipeline = Arc::clone(&runtime);
                runtime.parts.shutdown.tasks.spawn(async move { pipeline.pipeline().await });
            }
        });
    }

    /// Makes the queue, however long the platform takes to answer; false when told to stop first.
    async fn configure(&self) -> bool {
        let mut backoff = Backoff::default();
        loop {
            match self.parts.platform.configure(self.parts.service.as_ref()).await {
                Ok(()) => {
                    tracing::info!(service = %self.parts.service.name(), "queue ready");
                    self.configured.send_replace(true);
                    return true;
                }
                Err(error) => {
                    // The first failures of a common start are nobody's business.
                    if backoff.failures() >= 3 {
                        tracing::warn!(service = %self.parts.service.name(), %error, "the queue cannot be configured yet");
                    }
                    if !self.pause(&mut backoff).await {
                        return false;
                    }
                }
            }
        }
    }

    async fn pipeline(&self) {
        let mut backoff = Backoff::default();
        while !self.parts.shutdown.soft.is_cancelled() {
            let started = Instant::now();
            let turn = tokio::select! {
                biased;
                () = self.parts.shutdown.hard.cancelled() => return,
                turn = self.turn() => turn,
            };
            match turn {
                Ok(Turn::Worked) => backoff.reset(),
                Ok(Turn::Idle) => {
                    backoff.reset();
                    tokio::time::sleep_until(started + EMPTY_TURN_MIN).await;
                }
                Err(error) => {
                    if !self.is_away.swap(true, Ordering::Relaxed) {
                        tracing::warn!(service = %self.parts.service.name(), %error, "the platform does not answer; trying again");
                    }
                    if !self.pause(&mut backoff).await {
                        return;
                    }
                    // A platform that lost its data has no queue of ours either.
                    if matches!(error, CallError::Never(_)) && !self.configure().await {
                        return;
                    }
                }
            }
        }
    }

    /// Waits; false when told to stop.
    async fn pause(&self, backoff: &mut Backoff) -> bool {
        tokio::select! {
            () = self.parts.shutdown.soft.cancelled() => false,
            () = tokio::time::sleep(backoff.next(self.parts.ids.as_ref())) => true,
        }
    }

    /// How a batch is asked for now.
    fn ask(&self) -> Ask<'_> {
        let settings = &self.parts.settings;
        Ask {
            max_items: self.parts.service.batch_max(settings.batch_max).clamp(1, DEQUEUE_ITEMS_MAX),
            wait_ms: settings.wait_ms,
            lease_ms: settings.lease_ms,
            worker_id: &self.parts.worker_id,
        }
    }

    pub(super) fn service(&self) -> &dyn Service {
        self.parts.service.as_ref()
    }

    /// Whether nothing new is to be begun.
    pub(super) fn is_stopping(&self) -> bool {
        self.parts.shutdown.soft.is_cancelled()
    }

    async fn turn(&self) -> Result<Turn, CallError> {
        let working = tokio::select! {
            biased;
            () = self.parts.shutdown.soft.cancelled() => return Ok(Turn::Worked),
            permit = Arc::clone(&self.working).acquire_owned() => permit,
        };
        // Not cut short by a stop: an answer on its way would hold its items until the lease lapses.
        let leased = self.parts.platform.dequeue(&self.ask()).await?;
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!(service = %self.parts.service.name(), "the platform answers again");
        }
        let Some(Leased { lease, notifications }) = leased else { return Ok(Turn::Idle) };
        let lease_ms = self.parts.settings.lease_ms;
        let length = Duration::from_millis(u64::try_from(lease_ms).unwrap_or(0));
        let (platform, extended) = (self.parts.platform.clone(), lease.clone());
        let heartbeat = Heartbeat::start(length, move || {
            let (platform, lease) = (platform.clone(), extended.clone());
            async move { platform.extend(&lease, lease_ms).await }
        });
        let lost = tokio::select! {
            biased;
            () = heartbeat.lost() => true,
            result = until_waiting(working, self.hold(&lease, notifications)) => match result {
                Ok(()) => false,
                Err(CallError::Stale) => {
                    heartbeat.refused();
                    true
                }
                Err(error) => return Err(error),
            },
        };
        if lost {
            tracing::info!(queue = %lease.queue, generation = lease.generation, "the lease is over; batch dropped");
        }
        Ok(Turn::Worked)
    }

    /// Further rows for a lease, as many as for a new one.
    pub(super) async fn further(&self, lease: &LeaseRef) -> Result<Further, CallError> {
        self.parts.platform.further(lease, &self.ask()).await
    }

    /// Whose notifications lead where.
    pub(super) async fn sorted(&self, notifications: Vec<DtoChangeNotification>) -> Batch {
        let service = self.parts.service.as_ref();
        let mut outcomes: Vec<(i64, Outcome)> = Vec::with_capacity(notifications.len());
        let (mut labels, mut splits) = (Vec::new(), Vec::new());
        for wire in notifications {
            let id = wire.id;
            let notification = match notification_from_wire(wire) {
                Ok(notification) => notification,
                Err(refusal) => {
                    outcomes.push((id, Outcome::Failed { cause: refusal.to_string() }));
                    continue;
                }
            };
            match service.route(&notification.item) {
                Route::Label(label) => labels.push((label, notification)),
                Route::Split(expansion) => splits.push((notification, expansion)),
                Route::ForgetAndSplit(urn, expansion) => {
                    service.forget(&urn).await;
                    splits.push((notification, expansion));
                }
                Route::Forget(urn) => {
                    service.forget(&urn).await;
                    outcomes.push((id, Outcome::Done));
                }
                Route::Unknown => outcomes.push((id, unknown(&notification))),
            }
        }
        Batch { outcomes, labels: Label::group(labels), splits }
    }

    /// Works on a batch and reports it.
    pub(super) async fn batch(&self, lease: &LeaseRef, batch: Batch, hand: &Arc<Hand>) -> Result<(), CallError> {
        let service = self.parts.service.as_ref();
        let Batch { mut outcomes, labels, splits } = batch;
        let context = Context { platform: &self.parts.platform, lease, clock: &self.parts.clock, hand };
        let splitter = Splitter { service, context, ids: self.parts.ids.as_ref() };
        let done = splitter.split_many(&splits).await?;
        for ((notification, _), split) in splits.iter().zip(done) {
            if let Split::Report(outcome) = split {
                outcomes.push((notification.id, outcome));
            }
        }
        if !labels.is_empty() {
            let handled = handle(service, context, self.parts.ids.as_ref(), &labels).await?;
            for (label, outcome) in labels.iter().zip(handled) {
                outcomes.extend(label.notifications.iter().map(|id| (*id, outcome.clone())));
            }
        }
        self.complete(lease, outcomes).await
    }

    /// Gives back what was leased and is not begun.
    pub(super) async fn give_back(&self, lease: &LeaseRef, batch: Batch) -> Result<(), CallError> {
        let Batch { mut outcomes, labels, splits } = batch;
        let back = || Outcome::Defer { until: self.parts.clock.now(), cause: "nothing more was begun".to_owned() };
        let ids = labels.into_iter().flat_map(|label| label.notifications);
        outcomes.extend(ids.chain(splits.into_iter().map(|(told, _)| told.id)).map(|id| (id, back())));
        self.complete(lease, outcomes).await
    }

    async fn complete(&self, lease: &LeaseRef, outcomes: Vec<(i64, Outcome)>) -> Result<(), CallError> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let outcomes: Vec<(i64, Outcome)> =
            outcomes.into_iter().map(|(id, outcome)| (id, with_cause(outcome))).collect();
        let asked = AtomicU32::new(0);
        let call = || {
            asked.fetch_add(1, Ordering::Relaxed);
            self.parts.platform.complete(lease, &outcomes)
        };
        let dead = match persist(self.parts.ids.as_ref(), "a batch to complete", call).await {
            // Repeated after an answer that was lost it is stale, for the batch was completed. What joined the lease since
            // is none the worse for that.
            Err(CallError::Stale) if asked.into_inner() > 1 => {
                let extend = || self.parts.platform.extend(lease, self.parts.settings.lease_ms);
                persist(self.parts.ids.as_ref(), "a lease to extend", extend).await.map(|()| 0)
            }
            answer => answer,
        }?;
        if dead > 0 {
            tracing::warn!(queue = %lease.queue, dead, "items went to the dead letter");
        }
        Ok(())
    }
}

/// A leased batch, looked through.
pub(super) struct Batch {
    /// What is known already.
    outcomes: Vec<(i64, Outcome)>,
    labels: Vec<Label>,
    splits: Vec<(Notification, Expansion)>,
}

impl Batch {
    /// The labels to handle.
    pub(super) fn labels(&self) -> BTreeSet<LabelRef> {
        self.labels.iter().map(|label| label.name.clone()).collect()
    }
}

/// Works on a batch; gives its permit back when the batch turns out to wait, so that another may work.
async fn until_waiting<T>(working: impl Sized, batch: impl Future<Output = T>) -> T {
    let mut batch = std::pin::pin!(batch);
    if let Ok(done) = tokio::time::timeout(WAITS_AFTER, &mut batch).await {
        return done;
    }
    drop(working);
    batch.await
}

fn unknown(notification: &Notification) -> Outcome {
    let item = &notification.item;
    Outcome::Failed { cause: format!("{} {} is not of this service", item.dto_type, item.target.urn()) }
}

/// The outcome with a cause that CQS takes.
fn with_cause(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done | Outcome::Unchanged | Outcome::Confirmed { .. } => outcome,
        Outcome::Retry { cause: text } => Outcome::Retry { cause: cause(text) },
        Outcome::Defer { until, cause: text } => Outcome::Defer { until, cause: cause(text) },
        Outcome::Follow { until, cause: text, handed_over } => {
            Outcome::Follow { until, cause: cause(text), handed_over }
        }
        Outcome::Failed { cause: text } => Outcome::Failed { cause: cause(text) },
    }
}
