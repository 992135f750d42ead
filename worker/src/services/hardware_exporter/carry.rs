//! From decisions to access points: which labels hang where, one visit each, all at once.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use domain::{DtoType, Outcome, Urn};
use futures::future::try_join_all;
use proto::records::v1::AccessPoint;

use super::{
    BATCH_MS, HardwareExporter,
    drivers::{Driver, Manner, Place},
    lanes::{Boot, Lane},
    patience::{HARDWARE_MIN, Patience},
    plan::Carry,
    reset::{self, AfterReset, Seen},
    say, status,
    visit::{Errand, Verdicts, Visit},
};
use crate::runtime::{CallError, Context, Label, Reads, Records, Verdict};

/// What one access point has to do.
struct Tour {
    driver: Arc<dyn Driver>,
    place: Place,
    errands: Vec<Errand>,
}

/// Carries everything; a verdict for every index of `carries`.
pub(super) async fn carry_all(
    exporter: &HardwareExporter,
    context: Context<'_>,
    labels: &[Label],
    carries: Vec<(usize, Carry)>,
) -> Result<Verdicts, CallError> {
    if carries.is_empty() {
        return Ok(Vec::new());
    }
    let mut reads = Reads::default();
    for (_, carry) in &carries {
        reads.want(DtoType::AccessPoint, carry.access_point.clone());
    }
    let read = reads.fetch(context.platform).await?;
    let mut verdicts = Vec::with_capacity(carries.len());
    let mut tours: BTreeMap<Urn, Tour> = BTreeMap::new();
    for (index, mut carry) in carries {
        match access(&exporter.drivers, &read, &mut carry) {
            Ok((driver, place)) => tours
                .entry(carry.access_point.clone())
                .or_insert_with(|| Tour { driver, place, errands: Vec::new() })
                .errands
                .push(Errand { index, carry }),
            Err(cause) => verdicts.extend(not_carried(context, labels, Errand { index, carry }, cause)),
        }
    }
    let patience = Patience::begin(context.hand);
    let lanes: Vec<(Arc<Lane>, Manner)> = tours.values().map(|tour| exporter.lane_of(tour)).collect();
    let visits = tours.into_values().map(|tour| visit(exporter, (context, labels), tour, &patience));
    verdicts.extend(try_join_all(visits).await?.into_iter().flatten());
    exporter.fitting.store(fitting(&lanes), Ordering::Relaxed);
    Ok(verdicts)
}

impl HardwareExporter {
    fn lane_of(&self, tour: &Tour) -> (Arc<Lane>, Manner) {
        let manner = tour.driver.manner();
        (self.lanes.of(&tour.place.access_point, &manner), manner)
    }
}

/// Pictures that these lanes together take in a batch's time. A lane that is quicker than hardware counts for nothing.
fn fitting(lanes: &[(Arc<Lane>, Manner)]) -> u64 {
    let of_lane = |(lane, manner): &(Arc<Lane>, Manner)| {
        let mean = lane.mean(manner);
        let calls = u128::try_from(manner.at_once.max(1)).unwrap_or(1);
        if mean < HARDWARE_MIN { 0 } else { u128::from(BATCH_MS) * 1_000 * calls / mean.as_micros().max(1) }
    };
    u64::try_from(lanes.iter().map(of_lane).sum::<u128>()).unwrap_or(u64::MAX)
}

async fn visit(
    exporter: &HardwareExporter,
    (context, labels): (Context<'_>, &[Label]),
    tour: Tour,
    patience: &Patience,
) -> Result<Verdicts, CallError> {
    let (lane, manner) = exporter.lane_of(&tour);
    let Tour { driver, place, errands } = tour;
    let visit = Visit { context, labels, lane, driver, manner, place, patience };
    let verdicts = visit.run(errands).await;
    patience.one_is_done();
    if let Some(boot) = visit.lane.take_boot() {
        note_boot(&visit, boot, exporter.after_reset).await;
    }
    verdicts
}

async fn note_boot(visit: &Visit<'_>, boot: Boot, after: AfterReset) {
    // All of a batch come from one lane, whose operation every write under the lease names.
    let tracking_id = visit.labels.first().and_then(|label| label.tracking_id.clone());
    let seen = Seen { access_point: &visit.place.access_point, boot, tracking_id };
    if let Err(error) = reset::noticed(visit.context, seen, after).await {
        tracing::warn!(%error, access_point = %visit.place.access_point, "since when it is up was not recorded");
        visit.lane.put_back(boot);
    }
}

/// The driver of the label's access point and the place there. The access point becomes an input.
fn access(drivers: &[Arc<dyn Driver>], read: &Records, carry: &mut Carry) -> Result<(Arc<dyn Driver>, Place), String> {
    let found = read.record::<AccessPoint>(&carry.access_point)?;
    carry.inputs.insert(0, found.input);
    let Some(access_point) = found.record else {
        return Err(format!("access point {} does not exist", carry.access_point));
    };
    let driver = drivers.iter().find(|driver| driver.name() == access_point.driver).ok_or_else(|| {
        format!("access point {} has the unknown driver {:?}", carry.access_point, access_point.driver)
    })?;
    Ok((Arc::clone(driver), Place { access_point: carry.access_point.clone(), address: access_point.address }))
}

/// The label cannot be handed to a driver: what is confirmed stays so.
pub(super) fn not_carried(
    context: Context<'_>,
    labels: &[Label],
    errand: Errand,
    cause: String,
) -> Option<(usize, Verdict)> {
    let label = labels.get(errand.index)?;
    let status = status::failed(errand.carry.before, &cause, context.clock.now());
    Some((errand.index, say(label, &status, errand.carry.inputs, Outcome::Failed { cause })))
}
