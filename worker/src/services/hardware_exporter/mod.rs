//! hardware-exporter: sends the picture to the label through its access point, follows it until confirmed.
//!
//! One rule: send unless the label's present hardware address last confirmed this digest (`plan`).
//!
//! Reading order: `plan` (what a label needs), `status` (the steps of a delivery), `carry` (which labels hang where),
//! `visit`, `prepare` and `send` (one batch at one access point), `lanes`, `breaker`, `patience`, `next_look` (when), `moved` and
//! `take_back` (what labels left behind elsewhere), `withdraw` (what comes before a re-export), `reset` (what follows a reset), `drivers`.
//!
//! Invariants
//! - A status says confirmed only for what a driver proved, and only while the picture, the label and the status it was
//!   decided on are still those (input versions). A row is done only then; until then it is deferred, so that no
//!   operation claims success early.
//! - Before a picture goes out that a later worker must know of, the status says so, under the lease. So after a crash
//!   between sending and reporting nothing is taken for confirmed that is not.
//! - Shown pictures never go backwards: one worker holds a store at a time. Where the target cannot refuse a late worker
//!   itself, a picture goes out only after its announcement was written under a live lease, its call is dropped at a
//!   deadline that the announcement names, and no other picture is sent to that label before that.
//! - Access points do not wait for each other: each has its lane, and a batch waits for none of them for long.
//! - Nor do they wait for the platform: while a batch is sent, the next one of its store is read, encoded and announced under
//!   the same lease, and what was answered is written down beside. Two batches of a store are in hand at most.
//! - An access point that does not answer costs its labels no attempt. When it is back, each gets its newest picture: what
//!   is sent is read when it is sent.
//!
//! Deliberately not here: rendering and merging; retries of what failed (CQS).

mod breaker;
mod carry;
pub(crate) mod drivers;
mod lanes;
mod moved;
mod next_look;
mod patience;
mod plan;
mod prepare;
mod reset;
mod send;
mod status;
mod take_back;
mod visit;
mod withdraw;

pub(crate) use reset::AfterReset;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use domain::{
    AliasName, Clock, Collection, DtoType, Notification, Outcome, ParentShape, ServiceName, SplitItem, Target, Urn,
};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1::StoreEslStatus;

use crate::{
    ExporterSettings,
    runtime::{
        AliasQuery, CallError, Context, Expansion, Input, Label, LabelRef, Reads, RecordWrite, Reported, Route,
        Service, Verdict,
    },
};

use drivers::Driver;
use lanes::Lanes;
use plan::{Decision, State};

const SUBSCRIPTIONS: &[DtoType] = &[DtoType::EslImage, DtoType::StoreEsl, DtoType::AccessPoint];
/// The parents of re-exports: a store, an access point, a label.
const SHAPES: &[ParentShape] = &[
    ParentShape { dto_type: DtoType::EslImage, alias: Some(AliasName::ByStore) },
    ParentShape { dto_type: DtoType::StoreEsl, alias: Some(AliasName::ByAccessPoint) },
    ParentShape { dto_type: DtoType::EslImage, alias: Some(AliasName::ByStoreEsl) },
];
/// Batches of one store at its access points, at once in one process: they wait, they do not work.
const BATCHES_MAX: usize = 64;
/// What a batch for hardware holds, in milliseconds of its access points' time: reading and reporting it takes a tenth of
/// that, and two such batches, as many as are in hand of a store, are sent within the two seconds in which pausing and
/// cancelling take effect.
const BATCH_MS: u64 = 800;
/// A batch's largest growth: its labels and their statuses are in memory meanwhile.
const BATCH_GROWTH_MAX: i32 = 8;

/// The service.
pub(crate) struct HardwareExporter {
    drivers: Vec<Arc<dyn Driver>>,
    lanes: Lanes,
    after_reset: AfterReset,
    /// Pictures that the access points of the last batch take in [`BATCH_MS`]; 0 where no hardware is waited for.
    fitting: AtomicU64,
}

impl HardwareExporter {
    pub(crate) fn new(settings: &ExporterSettings, clock: &Arc<dyn Clock>) -> Self {
        let after_reset = if settings.announce_after_reset { AfterReset::Announce } else { AfterReset::Wait };
        Self::with_drivers(drivers::all(settings, clock)).after_reset(after_reset)
    }

    /// Does this when an access point was reset.
    pub(crate) fn after_reset(self, after_reset: AfterReset) -> Self {
        Self { after_reset, ..self }
    }

    /// With these drivers.
    pub(crate) fn with_drivers(drivers: Vec<Arc<dyn Driver>>) -> Self {
        Self { drivers, lanes: Lanes::default(), after_reset: AfterReset::Wait, fitting: AtomicU64::new(0) }
    }

    async fn verdicts(&self, context: Context<'_>, labels: &[Label]) -> Result<Vec<Verdict>, CallError> {
        let mut reads = Reads::default();
        for label in labels {
            for dto_type in [DtoType::EslImage, DtoType::StoreEsl, DtoType::StoreEslStatus] {
                reads.want(dto_type, label.name.record(dto_type));
            }
        }
        let read = reads.fetch(context.platform).await?;
        let mut verdicts = Vec::with_capacity(labels.len());
        let (mut carries, mut leaves) = (Vec::new(), Vec::new());
        let now = context.clock.now();
        for (index, label) in labels.iter().enumerate() {
            verdicts.push(match State::of(&label.name, &read).map(|state| state.decide(now)) {
                Err(cause) => Verdict::failed(cause),
                Ok(Decision::Forget(inputs)) => Verdict::delete(label, DtoType::StoreEslStatus, inputs),
                Ok(Decision::Confirmed(evidence)) => Verdict::Settled(status::arrived(evidence, false)),
                Ok(Decision::SayConfirmed(status, inputs)) => {
                    say(label, &status, inputs, status::arrived(status.evidence(), true))
                }
                Ok(Decision::Broken(status, inputs)) => {
                    let cause = status.last_error.clone();
                    say(label, &status, inputs, Outcome::Failed { cause })
                }
                Ok(Decision::Say(status, inputs)) => Verdict::put(label, DtoType::StoreEslStatus, &status, inputs),
                Ok(Decision::LeaveLater(until)) => {
                    let cause = "an older picture may still wait where the label hung before".to_owned();
                    // Its own picture is confirmed.
                    Verdict::Settled(Outcome::Follow { until, cause, handed_over: true })
                }
                Ok(Decision::Leave(leave)) => {
                    leaves.push((index, *leave));
                    Verdict::Again
                }
                Ok(Decision::Carry(carry)) => {
                    carries.push((index, *carry));
                    Verdict::Again
                }
            });
        }
        let (left, sent) = tokio::join!(
            take_back::take_back_all(self, context, labels, leaves),
            carry::carry_all(self, context, labels, carries)
        );
        for (index, verdict) in left?.into_iter().chain(sent?) {
            if let Some(slot) = verdicts.get_mut(index) {
                *slot = verdict;
            }
        }
        Ok(verdicts)
    }
}

impl Service for HardwareExporter {
    fn name(&self) -> ServiceName {
        ServiceName::HardwareExporter
    }

    fn subscriptions(&self) -> &'static [DtoType] {
        SUBSCRIPTIONS
    }

    fn shapes(&self) -> &'static [ParentShape] {
        SHAPES
    }

    fn exclusive_by_store(&self) -> bool {
        true
    }

    fn batch_max(&self, configured: i32) -> i32 {
        let fitting = i32::try_from(self.fitting.load(Ordering::Relaxed)).unwrap_or(i32::MAX);
        fitting.clamp(configured, configured.saturating_mul(BATCH_GROWTH_MAX))
    }

    fn waiting_batches(&self) -> usize {
        BATCHES_MAX
    }

    fn route(&self, item: &SplitItem) -> Route {
        let records = |dto_type, alias, parent: &Urn| {
            Route::Split(Expansion::Records(AliasQuery { dto_type, alias, parent: parent.clone() }))
        };
        match (&item.target, item.dto_type, item.alias) {
            (Target::Record(urn), DtoType::EslImage | DtoType::StoreEsl, None) => {
                LabelRef::of(urn).map_or(Route::Unknown, Route::Label)
            }
            // A written access point: what could not be sent through it may be now. Nothing is withdrawn.
            (Target::Record(urn), DtoType::AccessPoint, None) => {
                records(DtoType::StoreEsl, AliasName::ByAccessPoint, urn)
            }
            (Target::Parent(urn @ Urn::Store(..)), DtoType::EslImage, Some(alias @ AliasName::ByStore))
            | (
                Target::Parent(urn @ Urn::StoreRecord(_, _, Collection::Esls, _)),
                DtoType::EslImage,
                Some(alias @ AliasName::ByStoreEsl),
            )
            | (
                Target::Parent(urn @ Urn::StoreRecord(_, _, Collection::AccessPoints, _)),
                DtoType::StoreEsl,
                Some(alias @ AliasName::ByAccessPoint),
            ) => records(item.dto_type, alias, urn),
            _ => Route::Unknown,
        }
    }

    fn before_children<'a>(
        &'a self,
        context: Context<'a>,
        parent: &'a Notification,
        children: &'a [SplitItem],
    ) -> BoxFuture<'a, Result<(), CallError>> {
        async move {
            // An access point that was written is no parent.
            if parent.item.target.is_parent() { withdraw::withdraw(context, parent, children).await } else { Ok(()) }
        }
        .boxed()
    }

    fn compute<'a>(
        &'a self,
        context: Context<'a>,
        labels: &'a [Label],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, CallError>> {
        self.verdicts(context, labels).boxed()
    }
}

/// A status write that reports `outcome` whatever it changed.
fn say(label: &Label, status: &StoreEslStatus, inputs: Vec<Input>, outcome: Outcome) -> Verdict {
    Verdict::Write(RecordWrite::put(label, DtoType::StoreEslStatus, status, inputs), Reported::Always(outcome))
}
