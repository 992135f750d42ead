//! Taking back what labels left behind at access points where they hang no more: one call an access point, before
//! anything is sent to those labels at their new place.
//!
//! Best effort: an access point that is away delays nothing. It is tried again with growing waits, some two hours long;
//! meanwhile the label gets its picture, and its notification is not done.

use std::{collections::BTreeMap, sync::Arc};

use domain::{DtoType, RecordId, Timestamp, Urn};
use futures::future::join_all;
use picture::Digest;
use proto::{
    records::v1::{AccessPoint, DeliveryState, LeftBehind},
    timestamp_from_wire,
};
use tokio::{sync::oneshot, time::Instant};

use super::{
    HardwareExporter,
    breaker::Gate,
    drivers::{Driver, Pending, Place, Survey, TakenBack},
    lanes::{CallTimes, Called, Lane, Order},
    moved,
    next_look::next_attempt,
    patience::Patience,
    plan::Leave,
    say, status,
    visit::Verdicts,
};
use crate::runtime::{CallError, Context, Label, LabelRef, Reads, RecordWrite, Records, Reported, Verdict};

/// How long until an access point that is in the midst of another call is asked again, in milliseconds. No try is counted.
const BUSY_MS: i64 = 1_000;
/// How long until an access point is asked again that cannot drop a picture yet, in milliseconds: pictures are prepared
/// minutes before their tag checks in, and dropped only then.
const NOT_YET_MS: i64 = 60_000;
/// Tries of that kind: tags that sleep check in every hour at the latest.
const NOT_YET_MAX: u32 = 90;

/// A picture left behind, and whose it is: the position among the leaves.
type Item = (usize, LeftBehind);

/// What became of it.
enum Became {
    Gone {
        proof: String,
    },
    Kept {
        why: String,
        next: Option<Timestamp>,
    },
    /// Not asked: counts nothing.
    NotAsked {
        next: Timestamp,
    },
}

/// Takes back what is due; a verdict for every index of `leaves`: its label is then looked at again at once.
pub(super) async fn take_back_all(
    exporter: &HardwareExporter,
    context: Context<'_>,
    labels: &[Label],
    mut leaves: Vec<(usize, Leave)>,
) -> Result<Verdicts, CallError> {
    if leaves.is_empty() {
        return Ok(Vec::new());
    }
    let (mut reads, mut places) = (Reads::default(), BTreeMap::<Urn, Vec<Item>>::new());
    for (position, (_, leave)) in leaves.iter_mut().enumerate() {
        for left in std::mem::take(&mut leave.due) {
            let Ok(id) = left.accesspoint_id.parse::<RecordId>() else {
                leave.became(&left, Became::gone("no access point has this id"), context.clock.now());
                continue;
            };
            let urn = leave.label.neighbour(DtoType::AccessPoint, &id);
            reads.want(DtoType::AccessPoint, urn.clone());
            places.entry(urn).or_default().push((position, left));
        }
    }
    let read = reads.fetch(context.platform).await?;
    let patience = Patience::begin(context.hand);
    let names: Vec<LabelRef> = leaves.iter().map(|(_, leave)| leave.label.clone()).collect();
    let visits = places.into_iter().map(|(urn, items)| {
        let place = At { exporter, context, read: &read, names: &names, patience: &patience };
        async move {
            let became = place.take_back(urn, &items).await;
            items.into_iter().zip(became).collect::<Vec<_>>()
        }
    });
    for ((position, left), became) in join_all(visits).await.into_iter().flatten() {
        if let Some((_, leave)) = leaves.get_mut(position) {
            leave.became(&left, became, context.clock.now());
        }
    }
    Ok(leaves.into_iter().filter_map(|(index, leave)| Some((index, leave.verdict(labels.get(index)?)))).collect())
}

impl Leave {
    fn became(&mut self, left: &LeftBehind, became: Became, now: Timestamp) {
        let status = std::mem::take(&mut self.status);
        self.status = match became {
            Became::Gone { proof } => moved::gone(status, left, (&proof, now)),
            Became::Kept { why, next } => moved::kept(status, left, (&why, now), next),
            Became::NotAsked { next } => moved::put_off(status, left, next),
        };
    }

    fn verdict(self, label: &Label) -> Verdict {
        // The picture is confirmed and nothing is left that could follow it.
        if self.is_confirmed && self.status.left_behind.is_empty() && self.status.state() == DeliveryState::Confirmed {
            let arrived = status::arrived(self.status.evidence(), true);
            return say(label, &self.status, self.inputs, arrived);
        }
        Verdict::Write(RecordWrite::put(label, DtoType::StoreEslStatus, &self.status, self.inputs), Reported::Again)
    }
}

impl Became {
    fn gone(proof: &str) -> Self {
        Self::Gone { proof: proof.to_owned() }
    }
}

/// One access point where labels hang no more.
struct At<'a> {
    exporter: &'a HardwareExporter,
    context: Context<'a>,
    read: &'a Records,
    names: &'a [LabelRef],
    patience: &'a Patience,
}

impl At<'_> {
    /// What became of each item.
    async fn take_back(&self, urn: Urn, items: &[Item]) -> Vec<Became> {
        let all = |became: &dyn Fn(&LeftBehind) -> Became| items.iter().map(|(_, left)| became(left)).collect();
        let now = self.context.clock.now();
        let (driver, place) = match self.reached(urn) {
            Ok(reached) => reached,
            Err(why) => return all(&|_| Became::gone(&why)),
        };
        let manner = driver.manner();
        let lane = self.exporter.lanes.of(&place.access_point, &manner);
        if let Gate::Shut(shut) = lane.gate(now) {
            return all(&|left| self.away(&lane, left, &shut.cause));
        }
        if lane.is_stuck(&manner).await {
            return all(&|_| Became::NotAsked { next: now.plus_ms(BUSY_MS) });
        }
        let (told, mut answers) = oneshot::channel();
        let survey = Survey { place, pending: items.iter().filter_map(|item| self.pending(item)).collect() };
        let call = async move {
            // Nobody waits any more: it was taken back all the same, and the next try finds nothing.
            let _ = told.send(driver.take_back(survey).await);
            Vec::new()
        };
        let end = self.patience.end();
        let deadline = Instant::now() + manner.call_limit;
        let times = CallTimes { begin_by: end, wait_until: end, deadline, pause: manner.pause };
        let order = Order { about: Vec::new(), times, wanted: || true, call };
        let mut answers = match (lane.call(order).await, answers.try_recv()) {
            (Called::Answered(_), Ok(answers)) => answers.into_iter(),
            _ => return all(&|_| Became::NotAsked { next: now.plus_ms(BUSY_MS) }),
        };
        items
            .iter()
            .map(|(_, left)| match answers.next() {
                None => Became::Kept { why: "the driver gave no answer".to_owned(), next: self.next(&lane, left) },
                Some(TakenBack::Gone { proof }) => Became::Gone { proof },
                Some(TakenBack::NotYet { cause }) => {
                    let next = (left.attempts < NOT_YET_MAX).then(|| now.plus_ms(NOT_YET_MS));
                    Became::Kept { why: cause, next }
                }
                Some(TakenBack::Never { cause }) => Became::Kept { why: cause, next: None },
                Some(TakenBack::Unreachable { cause }) => {
                    lane.failed(now, &cause);
                    self.away(&lane, left, &cause)
                }
            })
            .collect()
    }

    fn reached(&self, urn: Urn) -> Result<(Arc<dyn Driver>, Place), String> {
        let found = self.read.record::<AccessPoint>(&urn)?;
        let record = found.record.ok_or_else(|| "there is no such access point any more".to_owned())?;
        let driver = self.exporter.drivers.iter().find(|driver| driver.name() == record.driver);
        let driver = driver.ok_or_else(|| format!("it has the unknown driver {:?}", record.driver))?;
        Ok((Arc::clone(driver), Place { access_point: urn, address: record.address }))
    }

    fn pending(&self, (position, left): &Item) -> Option<Pending> {
        let digest = <[u8; 32]>::try_from(left.digest.as_ref()).ok()?;
        Some(Pending {
            label: self.names.get(*position)?.clone(),
            hardware_address: left.hardware_address.clone(),
            digest: Digest::from_bytes(digest),
            receipt: left.receipt.clone(),
            state: DeliveryState::Sent,
            sent_at: left.sent_at.as_ref().and_then(|at| timestamp_from_wire("sent_at", at).ok()).unwrap_or_default(),
        })
    }

    fn away(&self, lane: &Lane, left: &LeftBehind, why: &str) -> Became {
        Became::Kept { why: why.to_owned(), next: self.next(lane, left) }
    }

    fn next(&self, lane: &Lane, left: &LeftBehind) -> Option<Timestamp> {
        next_attempt(left.attempts.saturating_add(1), self.context.clock.now(), lane.salt())
    }
}
