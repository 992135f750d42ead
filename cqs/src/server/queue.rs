//! The queue's own RPCs: configure, dequeue, complete, extend, split.

use std::{sync::Arc, time::Duration};

use domain::{ErrorCode, LeaseRef, Notification, Outcome, QueueName, Refusal, Timestamp, limits};
use proto::{
    cqs::v1 as wire, lease_from_wire, notification_to_wire, outcome_from_wire, parse_field, shape_from_wire,
    split_item_from_wire, timestamp_from_wire, timestamp_to_wire,
};
use tokio::sync::oneshot;
use tonic::Request;

use super::{CqsServer, allowed, count_in, in_range, plain_text};
use crate::{
    StoreError,
    announce::Woken,
    model::{Exclusive, Lease},
    store::{CompleteAsk, ConfigureAsk, DequeueAsk, Dequeued, Further, FurtherAsk, SplitAsk},
};

/// Subscriptions and shapes of one queue: several times what the largest service has.
const DECLARATIONS_MAX: usize = 32;
/// Longest worker id, in bytes: an incarnation id has 32 digits.
const WORKER_ID_MAX_BYTES: usize = 64;
/// Longest cursor, in bytes: it names a place in an alias list, a URN at most.
const CURSOR_MAX_BYTES: usize = 512;
/// Of the `Dequeue` calls that wait in a queue of this process one looks this often, give or take a quarter, besides being
/// woken: what another process rang may be lost. However many wait, it is one.
const POLL_MS: u64 = 1_000;

/// What a look for rows found.
trait Claimed: Send + 'static {
    /// Queues to be woken.
    fn woken(&self) -> &Woken;
    /// The lease's generation and the rows that were leased by it; none: none were.
    fn rows(&self) -> Option<(i64, &[Notification])>;
}

impl Claimed for Dequeued {
    fn woken(&self) -> &Woken {
        &self.woken
    }

    fn rows(&self) -> Option<(i64, &[Notification])> {
        self.lease.as_ref().map(|(lease, rows)| (lease.generation, rows.as_slice()))
    }
}

impl Claimed for Further {
    fn woken(&self) -> &Woken {
        &self.woken
    }

    fn rows(&self) -> Option<(i64, &[Notification])> {
        (!self.rows.is_empty()).then_some((self.lease.generation, self.rows.as_slice()))
    }
}

/// The answer that tells of a lease and its rows.
fn leased(queue: &QueueName, lease: &Lease, rows: &[Notification]) -> wire::DequeueResponse {
    for told in rows {
        let tracking_id = told.tracking_id.as_ref().map_or("", |id| id.as_str());
        tracing::debug!(%queue, id = told.id, lane = told.lane, lease = lease.generation, urn = %told.item.target.urn(), tracking_id, "leased");
    }
    wire::DequeueResponse {
        lease: Some(wire::Lease {
            generation: lease.generation,
            expires_at: Some(timestamp_to_wire(lease.expires_at)),
        }),
        notifications: rows.iter().map(|told| notification_to_wire(queue, told)).collect(),
        give_way: false,
    }
}

impl CqsServer {
    pub(super) async fn configure_queue(
        &self,
        request: Request<wire::CreateOrConfigureQueueRequest>,
    ) -> Result<wire::CreateOrConfigureQueueResponse, StoreError> {
        let caller = allowed(&request, "CreateOrConfigureQueue")?;
        let request = request.into_inner();
        let queue: QueueName = parse_field("queue_name", &request.queue_name)?;
        caller.require_queue(&queue)?;
        count_in("subscriptions", request.subscriptions.len(), 0..=DECLARATIONS_MAX)?;
        count_in("shapes", request.shapes.len(), 0..=DECLARATIONS_MAX)?;
        let subscriptions = request.subscriptions.iter().enumerate();
        let shapes = request.shapes.iter().enumerate();
        let ask = ConfigureAsk {
            queue,
            subscriptions: subscriptions
                .map(|(index, told)| parse_field(&format!("subscriptions[{index}].dto_type"), &told.dto_type))
                .collect::<Result<_, _>>()?,
            shapes: shapes
                .map(|(index, shape)| shape_from_wire(&format!("shapes[{index}]"), shape))
                .collect::<Result<_, _>>()?,
            exclusive: if request.exclusive_by_store { Exclusive::ByStore } else { Exclusive::No },
        };
        let created = self.store.configure_queue(ask).await?;
        Ok(wire::CreateOrConfigureQueueResponse { created })
    }

    pub(super) async fn dequeue(
        &self,
        request: Request<wire::DequeueRequest>,
    ) -> Result<wire::DequeueResponse, StoreError> {
        let caller = allowed(&request, "Dequeue")?;
        let request = request.into_inner();
        let queue: QueueName = parse_field("queue_name", &request.queue_name)?;
        caller.require_queue(&queue)?;
        let max_items = in_range("max_items", request.max_items, 1..=limits::DEQUEUE_ITEMS_MAX)?;
        let max_items = usize::try_from(max_items).unwrap_or(1);
        let wait_ms = in_range("wait_ms", request.wait_ms, 0..=limits::DEQUEUE_WAIT_MS_MAX)?;
        let lease_ms = in_range("lease_ms", request.lease_ms, limits::LEASE_MS_MIN..=limits::LEASE_MS_MAX)?;
        plain_text("worker_id", &request.worker_id, WORKER_ID_MAX_BYTES)?;
        if request.worker_id.is_empty() {
            return Err(Refusal::field("worker_id", "is required").into());
        }
        if request.lease_generation != 0 {
            in_range("wait_ms", wait_ms, 0..=0)?;
            let lease = lease_from_wire(&request.queue_name, request.lease_generation)?;
            return self.further(FurtherAsk { lease, max_items }).await;
        }
        let ask = DequeueAsk {
            tally: self.tally(&queue),
            queue,
            owner: caller.service(),
            worker_id: request.worker_id,
            max_items,
            lease_ms: i64::from(lease_ms),
        };
        let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
        let found = self.dequeue_within(&ask, wait).await?;
        let Some((lease, notifications)) = found.lease else { return Ok(wire::DequeueResponse::default()) };
        Ok(leased(&ask.queue, &lease, &notifications))
    }

    async fn further(&self, ask: FurtherAsk) -> Result<wire::DequeueResponse, StoreError> {
        let (queue, now) = (ask.lease.queue.clone(), self.parts.clock.now());
        let store = Arc::clone(&self.store);
        let found = self.unless_left(queue.clone(), now, async move { store.further(ask, now).await }).await?;
        let answer = leased(&queue, &found.lease, &found.rows);
        Ok(wire::DequeueResponse { give_way: found.give_way, ..answer })
    }

    /// Looks until something is leased or the time is over. The bell is armed before each look, so what comes in between
    /// is not missed.
    async fn dequeue_within(&self, ask: &DequeueAsk, wait: Duration) -> Result<Dequeued, StoreError> {
        let end = tokio::time::Instant::now() + wait;
        let bell = self.parts.wakeups.bell(&ask.queue);
        loop {
            let mut rung = std::pin::pin!(bell.rung.notified());
            rung.as_mut().enable();
            bell.looks();
            let now = self.parts.clock.now();
            let found = self.look(ask.clone(), now).await?;
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            if found.lease.is_some() || left.is_zero() || self.parts.wakeups.is_closed() {
                return Ok(found);
            }
            let poll = Duration::from_millis(POLL_MS * 3 / 4 + self.parts.ids.below(POLL_MS / 2));
            let by_itself = found.look_again_at.map(|at| {
                // At least a millisecond: a clock that stands still must not make this spin.
                Duration::from_millis(u64::try_from(at.ms_since(now)).unwrap_or(0).max(1))
            });
            let again = tokio::time::Instant::now() + by_itself.unwrap_or(left).min(left);
            loop {
                tokio::select! {
                    () = &mut rung => break,
                    () = tokio::time::sleep_until(again) => break,
                    () = tokio::time::sleep(poll) => {
                        if !bell.looked_within(poll) {
                            break;
                        }
                    }
                }
            }
        }
    }

    async fn look(&self, ask: DequeueAsk, now: Timestamp) -> Result<Dequeued, StoreError> {
        let (queue, store) = (ask.queue.clone(), Arc::clone(&self.store));
        self.unless_left(queue, now, async move { store.dequeue(ask, now).await }).await
    }

    /// One look for rows. It ends even when its caller goes away meanwhile; then what it leased goes back at once, instead
    /// of lapsing later as if a worker had died over it.
    async fn unless_left<T: Claimed>(
        &self,
        queue: QueueName,
        now: Timestamp,
        look: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let (store, wakeups) = (Arc::clone(&self.store), self.parts.wakeups.clone());
        tokio::spawn(async move {
            let found = look.await;
            if let Ok(found) = &found {
                wakeups.wake(found.woken());
            }
            let Err(Ok(found)) = answer.send(found) else { return };
            if let Some((generation, rows)) = found.rows() {
                let cause = "nobody waited for the lease any more".to_owned();
                let back = Outcome::Defer { until: now, cause };
                let lease = LeaseRef { queue, generation };
                let outcomes = rows.iter().map(|row| (row.id, back.clone())).collect();
                match store.complete(CompleteAsk { lease, outcomes, jitter: 0 }, now).await {
                    Ok(done) => wakeups.wake(&done.woken),
                    Err(error) => tracing::warn!(%error, "a lease nobody waited for was not given back; it will lapse"),
                }
            }
        });
        // The task answers unless the runtime is going down.
        answered.await.unwrap_or_else(|_| Err(Refusal::new(ErrorCode::Unavailable, "the service is stopping").into()))
    }

    pub(super) async fn complete(
        &self,
        request: Request<wire::CompleteRequest>,
    ) -> Result<wire::CompleteResponse, StoreError> {
        let caller = allowed(&request, "Complete")?;
        let request = request.into_inner();
        let lease = lease_from_wire(&request.queue_name, request.lease_generation)?;
        caller.require_queue(&lease.queue)?;
        count_in("outcomes", request.outcomes.len(), 1..=usize::try_from(limits::DEQUEUE_ITEMS_MAX).unwrap_or(1))?;
        let outcomes = request.outcomes.iter().enumerate();
        let outcomes = outcomes
            .map(|(index, outcome)| outcome_from_wire(&format!("outcomes[{index}]"), outcome))
            .collect::<Result<Vec<_>, _>>()?;
        let ask = CompleteAsk { lease, outcomes, jitter: self.parts.ids.bits() };
        let done = self.store.complete(ask, self.parts.clock.now()).await?;
        self.parts.wakeups.wake(&done.woken);
        Ok(wire::CompleteResponse { dead: done.dead })
    }

    pub(super) async fn extend_lease(
        &self,
        request: Request<wire::ExtendLeaseRequest>,
    ) -> Result<wire::ExtendLeaseResponse, StoreError> {
        let caller = allowed(&request, "ExtendLease")?;
        let request = request.into_inner();
        let lease: LeaseRef = lease_from_wire(&request.queue_name, request.lease_generation)?;
        caller.require_queue(&lease.queue)?;
        let lease_ms = in_range("lease_ms", request.lease_ms, limits::LEASE_MS_MIN..=limits::LEASE_MS_MAX)?;
        let now = self.parts.clock.now();
        let expires_at = now.plus_ms(i64::from(lease_ms));
        let extended = self.store.extend_lease(lease.clone(), expires_at, now).await;
        if matches!(&extended, Err(StoreError::Refused(refusal)) if refusal.code == ErrorCode::StaleLease) {
            // It is late, and lives. That it is refused stays so, whatever comes of this.
            match self.store.lease_outlived(lease, now).await {
                Ok(woken) => self.parts.wakeups.wake(&woken),
                Err(error) => tracing::warn!(%error, "a holder that outlived its lease was not noted"),
            }
        }
        extended?;
        Ok(wire::ExtendLeaseResponse { expires_at: Some(timestamp_to_wire(expires_at)) })
    }

    pub(super) async fn re_enqueue(
        &self,
        request: Request<wire::ReEnqueueRequest>,
    ) -> Result<wire::ReEnqueueResponse, StoreError> {
        let caller = allowed(&request, "ReEnqueue")?;
        let request = request.into_inner();
        let lease = lease_from_wire(&request.queue_name, request.lease_generation)?;
        caller.require_queue(&lease.queue)?;
        count_in("items", request.items.len(), 0..=limits::SPLIT_CHILDREN_MAX)?;
        plain_text("next_cursor", &request.next_cursor, CURSOR_MAX_BYTES)?;
        if request.notification_id <= 0 {
            return Err(Refusal::field("notification_id", "is required").into());
        }
        let items = request.items.iter().enumerate();
        let ask = SplitAsk {
            lease,
            id: request.notification_id,
            children: items
                .map(|(index, item)| split_item_from_wire(&format!("items[{index}]"), item))
                .collect::<Result<_, _>>()?,
            next_cursor: request.next_cursor,
            sla: request.sla_timestamp.as_ref().map(|sla| timestamp_from_wire("sla_timestamp", sla)).transpose()?,
        };
        let id = ask.id;
        let queue = ask.lease.queue.clone();
        let done = self.store.re_enqueue(ask, self.parts.clock.now()).await?;
        self.parts.wakeups.wake(&done.woken);
        tracing::debug!(%queue, id, enqueued = done.enqueued, coalesced = done.coalesced, replayed = done.replayed, "split");
        Ok(wire::ReEnqueueResponse {
            items_enqueued: i32::try_from(done.enqueued).unwrap_or(i32::MAX),
            items_coalesced: i32::try_from(done.coalesced).unwrap_or(i32::MAX),
            replayed: done.replayed,
        })
    }
}
