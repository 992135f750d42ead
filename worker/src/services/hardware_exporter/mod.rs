//! hardware-exporter: sends the picture to the label through its access point, follows it until confirmed.
//!
//! One rule: send unless the label's present hardware address last confirmed this digest (`plan`).
//!
//! Invariants
//! - A status says confirmed only for what a driver confirmed, and only while the picture, the label and the status it
//!   was decided on are still those (input versions).
//! - Before a picture replaces a confirmed one, the status says what is on its way. So after a crash between sending
//!   and reporting, a return to the old picture is sent too, instead of being taken for confirmed.
//! - Shown pictures never go backwards: one worker holds a store at a time, and drivers refuse what comes under an older
//!   lease generation than the store has seen.

pub(crate) mod drivers;
mod plan;
mod send;

use std::sync::Arc;

use domain::{DtoType, Outcome, ParentShape, ServiceName, SplitItem, Target};
use futures::{FutureExt as _, future::BoxFuture};
use proto::records::v1::StoreEslStatus;

use crate::{
    ExporterSettings,
    runtime::{CallError, Context, Input, Label, LabelRef, Reads, RecordWrite, Reported, Route, Service, Verdict},
};

use drivers::{Driver, folder::FolderDriver};
use plan::{Decision, State};

const SUBSCRIPTIONS: &[DtoType] = &[DtoType::EslImage, DtoType::StoreEsl];
/// It splits nothing: no trigger is its own.
const SHAPES: &[ParentShape] = &[];

/// The service.
pub(crate) struct HardwareExporter {
    drivers: Vec<Arc<dyn Driver>>,
}

impl HardwareExporter {
    pub(crate) fn new(settings: &ExporterSettings) -> Self {
        Self::with_drivers(vec![Arc::new(FolderDriver::new(settings))])
    }

    /// With other drivers; for tests.
    pub(crate) fn with_drivers(drivers: Vec<Arc<dyn Driver>>) -> Self {
        Self { drivers }
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
        let mut sends = Vec::new();
        for (index, label) in labels.iter().enumerate() {
            verdicts.push(match State::of(&label.name, &read).map(State::decide) {
                Err(cause) => Verdict::failed(cause),
                Ok(Decision::Forget(inputs)) => Verdict::delete(label, DtoType::StoreEslStatus, inputs),
                Ok(Decision::Confirmed) => Verdict::Settled(Outcome::Unchanged),
                Ok(Decision::Broken(status, inputs)) => {
                    let cause = status.last_error.clone();
                    say(label, &status, inputs, Outcome::Failed { cause })
                }
                Ok(Decision::Say(status, inputs)) => Verdict::put(label, DtoType::StoreEslStatus, &status, inputs),
                Ok(Decision::Send(send)) => {
                    sends.push((index, *send));
                    Verdict::Again
                }
            });
        }
        for (index, verdict) in send::send_all(&self.drivers, context, labels, sends).await? {
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

    fn route(&self, item: &SplitItem) -> Route {
        match (&item.target, item.dto_type, item.alias) {
            (Target::Record(urn), DtoType::EslImage | DtoType::StoreEsl, None) => {
                LabelRef::of(urn).map_or(Route::Unknown, Route::Label)
            }
            _ => Route::Unknown,
        }
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
