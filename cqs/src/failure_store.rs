//! The part of the store trait about failures: listed, retried, told of a record, and forgotten after their time.

use domain::{OperatorSubject, QueueName, Reason, ServiceName, TenantId, Timestamp, TrackingId, Urn};

use crate::{
    RetentionSettings,
    announce::Woken,
    model::{Failure, RecordFate},
    store::Step,
};

/// A `ListFailures`.
#[derive(Debug, Clone)]
pub struct FailureAsk {
    /// The operation's tenant.
    pub tenant: TenantId,
    /// Its name.
    pub tracking_id: TrackingId,
    /// Only of this queue.
    pub queue: Option<QueueName>,
    /// Only with exactly this cause.
    pub cause: Option<String>,
    /// After this place: key of a queue, position in the dead letter.
    pub after: Option<(i64, i64)>,
    /// At most so many, at least 1.
    pub limit: usize,
}

/// A page of failures.
#[derive(Debug, Clone, Default)]
pub struct FailurePage {
    /// At most as many as asked for.
    pub failures: Vec<Failure>,
    /// Where the next page begins; none: this is the last.
    pub next: Option<(i64, i64)>,
}

/// A `RetryFailures` whose texts are parsed.
#[derive(Debug, Clone)]
pub struct RetryAsk {
    /// Who asks.
    pub service: ServiceName,
    /// The tenant of both operations.
    pub tenant: TenantId,
    /// The operation whose failures to take over.
    pub parent: TrackingId,
    /// The retry's name.
    pub tracking_id: TrackingId,
    /// Only of this queue.
    pub queue: Option<QueueName>,
    /// Only with exactly this cause.
    pub cause: Option<String>,
    /// Why.
    pub reason: Reason,
    /// On whose behalf.
    pub operator_subject: Option<OperatorSubject>,
    /// SLA as asked; none: the parent's.
    pub sla: Option<Timestamp>,
    /// SHA-256 of the request, for the audit log.
    pub request_digest: String,
}

/// What a `RetryFailures` did.
#[derive(Debug, Clone)]
pub struct Retried {
    /// Failures taken over (a replay: that had been).
    pub items: i64,
    /// True when it had been accepted before.
    pub replayed: bool,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The SLA that counts.
    pub sla: Timestamp,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// What a round of moving failures into retries did.
#[derive(Debug, Clone, Default)]
pub struct Filled {
    /// Whether more can be moved now.
    pub more: bool,
    /// Queues in which something became ready.
    pub woken: Woken,
}

/// Failures of the change queue service.
pub trait FailureStore: Send + Sync + 'static {
    /// What failed in an operation; refuses one that does not exist.
    fn failures(&self, ask: FailureAsk) -> Step<'_, FailurePage>;

    /// Opens an operation that takes failures of another one over. O(1) in their number.
    fn retry_failures(&self, ask: RetryAsk, now: Timestamp) -> Step<'_, Retried>;

    /// One bounded round of moving failures into the retries that took them over, as far as those have room.
    fn fill_retries(&self, now: Timestamp) -> Step<'_, Filled>;

    /// Where something about records waits, is leased, or failed and was not handled since.
    fn record_fates(&self, urns: Vec<Urn>) -> Step<'_, Vec<RecordFate>>;

    /// One bounded round of forgetting what is over for long. True when more is to be forgotten.
    fn retain(&self, settings: RetentionSettings, now: Timestamp) -> Step<'_, bool>;
}

/// Implements [`FailureStore`] for a twin as `steps_of!` does the rest.
macro_rules! failure_steps_of {
    ($store:ty) => {
        impl $crate::failure_store::FailureStore for $store {
            fn failures(
                &self,
                ask: $crate::failure_store::FailureAsk,
            ) -> $crate::store::Step<'_, $crate::failure_store::FailurePage> {
                self.read(ask, |unit, ask| Box::pin(async move { $crate::steps::failures::failures(unit, &ask).await }))
            }

            fn retry_failures(
                &self,
                ask: $crate::failure_store::RetryAsk,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, $crate::failure_store::Retried> {
                self.write(ask, move |unit, ask| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::retry::retry_failures(unit, ask, now))
                })
            }

            fn fill_retries(&self, now: domain::Timestamp) -> $crate::store::Step<'_, $crate::failure_store::Filled> {
                self.write((), move |unit, ()| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::retry::fill_retries(unit, now))
                })
            }

            fn record_fates(&self, urns: Vec<domain::Urn>) -> $crate::store::Step<'_, Vec<$crate::model::RecordFate>> {
                self.read(urns, |unit, urns| {
                    Box::pin(async move { $crate::steps::failures::record_fates(unit, &urns).await })
                })
            }

            fn retain(
                &self,
                settings: $crate::RetentionSettings,
                now: domain::Timestamp,
            ) -> $crate::store::Step<'_, bool> {
                self.write((), move |unit, ()| {
                    let now = $crate::unit::Clocked::time(unit, now);
                    Box::pin($crate::steps::retention::retain(unit, settings, now))
                })
            }
        }
    };
}
pub(crate) use failure_steps_of;
