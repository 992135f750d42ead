//! Changes of records come into the queues that subscribed to their types.

use std::collections::{BTreeMap, BTreeSet};

use domain::{ErrorCode, Refusal, SplitItem, Target, TenantId, Timestamp, TrackingId, sla_clamp};

use crate::{
    StoreError,
    announce::{Announce, Announcement, Woken},
    model::{Lane, Queue, RecordKey},
    policy::coalesce::Arrival,
    unit::Unit,
};

use super::{
    arrive::{Origin, arrive, fresh_row},
    changes::{Changes, Place},
};

/// Puts one row per announcement and subscribed queue into its lane, coalescing.
pub(crate) async fn announce<U: Unit>(
    unit: &mut U,
    announcements: &[Announcement],
    now: Timestamp,
) -> Result<Woken, StoreError> {
    if announcements.is_empty() {
        return Ok(Woken::default());
    }
    let queues = unit.queue_list().await?;
    let by_lane = lanes(unit, announcements, now).await?;
    let mut changes = Changes::default();
    for queue in &queues {
        for (lane, announcements) in by_lane.values() {
            let place = Place { queue, lane };
            let told: Vec<&Announcement> =
                announcements.iter().copied().filter(|told| queue.subscriptions.contains(&told.dto_type)).collect();
            if told.is_empty() {
                continue;
            }
            let wanted = wanted(unit, (&queues, place), told).await?;
            let rows = wanted.into_iter().map(|told| row(place, told, now)).collect();
            arrive(unit, place, rows, (Arrival::Fresh, &mut changes)).await?;
        }
    }
    changes.write(unit, now).await
}

fn row(place: Place<'_>, told: &Announcement, now: Timestamp) -> crate::model::Row {
    let item = SplitItem { dto_type: told.dto_type, target: Target::Record(told.urn.clone()), alias: None };
    let origin = Origin { sla: sla_clamp(Some(told.sla), now), tracking_id: told.tracking_id.clone() };
    fresh_row(place, item, &origin)
}

/// Announcements by lane, in order of the lanes' ids; refuses one into another tenant's lane.
async fn lanes<'a, U: Unit>(
    unit: &mut U,
    announcements: &'a [Announcement],
    now: Timestamp,
) -> Result<BTreeMap<i64, (Lane, Vec<&'a Announcement>)>, StoreError> {
    let mut ordinary: BTreeMap<TenantId, i64> = BTreeMap::new();
    let mut by_lane: BTreeMap<i64, (Lane, Vec<&Announcement>)> = BTreeMap::new();
    for told in announcements {
        let tenant = told.urn.tenant();
        let known = told.lane.or_else(|| ordinary.get(tenant).copied());
        let id = match known {
            Some(id) if by_lane.contains_key(&id) => id,
            _ => {
                let lane = match told.lane {
                    Some(id) => unit.lane_find(id).await?.ok_or_else(StoreError::stale_lease)?,
                    None => unit.lane_ordinary(tenant, now).await?,
                };
                if told.lane.is_none() {
                    ordinary.insert(tenant.clone(), lane.id);
                }
                let id = lane.id;
                by_lane.entry(id).or_insert_with(|| (lane, Vec::new()));
                id
            }
        };
        if let Some((lane, told_here)) = by_lane.get_mut(&id) {
            if lane.tenant != *tenant {
                let message = "a record of another tenant cannot be announced in this lane";
                return Err(Refusal::new(ErrorCode::PermissionDenied, message).into());
            }
            told_here.push(told);
        }
    }
    Ok(by_lane)
}

/// Leaves out what is announced only if undelivered and is not.
///
/// Undelivered is also what was taken up here and whose outcome got stuck further on: an operation that finds a picture
/// unchanged would otherwise end well while the label waits for what another one, paused or cancelled, holds.
async fn wanted<'a, U: Unit>(
    unit: &mut U,
    (queues, place): (&[Queue], Place<'_>),
    told: Vec<&'a Announcement>,
) -> Result<Vec<&'a Announcement>, StoreError> {
    let key = |told: &Announcement| RecordKey { dto_type: told.dto_type, urn: told.urn.clone() };
    let asked: Vec<RecordKey> =
        told.iter().filter(|told| told.announce == Announce::OnlyIfUndelivered).map(|told| key(told)).collect();
    if asked.is_empty() {
        return Ok(told);
    }
    let mut undelivered: BTreeSet<RecordKey> =
        unit.row_elsewhere(place.queue.id, place.lane.id, &asked).await?.into_iter().collect();
    undelivered.extend(unit.undelivered_among(place.queue.id, &asked).await?);
    let further: BTreeMap<RecordKey, &RecordKey> =
        asked.iter().filter_map(|record| Some((leads_to(record)?, record))).collect();
    let outcomes: Vec<RecordKey> = further.keys().cloned().collect();
    for queue in queues {
        let of_queue: Vec<RecordKey> =
            outcomes.iter().filter(|record| queue.subscriptions.contains(&record.dto_type)).cloned().collect();
        if of_queue.is_empty() {
            continue;
        }
        let mut stuck = unit.row_elsewhere(queue.id, place.lane.id, &of_queue).await?;
        stuck.extend(unit.undelivered_among(queue.id, &of_queue).await?);
        undelivered.extend(stuck.iter().filter_map(|record| further.get(record)).map(|record| (*record).clone()));
    }
    Ok(told.into_iter().filter(|told| told.announce == Announce::Always || undelivered.contains(&key(told))).collect())
}

/// The record that is made from it.
fn leads_to(record: &RecordKey) -> Option<RecordKey> {
    let dto_type = record.dto_type.leads_to()?;
    Some(RecordKey { dto_type, urn: record.urn.sibling(dto_type)? })
}

/// Whether that tracking id names an operation of the tenant.
pub(crate) async fn is_operation<U: Unit>(
    unit: &mut U,
    tenant: &TenantId,
    tracking_id: &TrackingId,
) -> Result<bool, StoreError> {
    Ok(unit.operation_find(tenant, tracking_id).await?.is_some())
}
