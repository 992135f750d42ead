//! The atomic steps, written once over [`crate::unit`]; each twin runs them inside its own unit of work.
//!
//! A step looks and refuses before it writes, and tells the queues before it writes records: what a twin without
//! transactions does last cannot fail.

use std::collections::BTreeMap;

use cqs::announce::{Announce, Announcement, WriteAuthority};
use domain::{TenantId, Timestamp, Urn};

use crate::{
    alias::AliasRules,
    model::{Reindexed, Touch, TouchDone, WriteBatch, WriteDone},
    plan::{AliasChange, authorize, operation_refused, plan},
    record::Record,
    store::{Result, StoreError},
    unit::{IndexedRecord, RulesRow, Unit},
};

/// See [`crate::DtoStore::record_write`].
pub(crate) async fn record_write<U: Unit>(unit: &mut U, batch: &WriteBatch, now: Timestamp) -> Result<WriteDone> {
    let lane = match &batch.authority {
        WriteAuthority::Lease(lease) => Some(unit.lease_check(lease, now).await?),
        WriteAuthority::Unleased => None,
    };
    let named = authorize(batch, lane.as_ref())?;
    if let Some(operation) = unit.operation_among(&batch.tenant, &named).await? {
        return Err(operation_refused(batch, &operation));
    }
    let current = unit.record_current(batch).await?;
    let inputs = inputs(batch);
    let versions = unit.record_versions(&batch.tenant, &inputs).await?;
    let plan = plan(batch, &current, &versions, lane.as_ref());
    let woken = unit.announce(&plan.announcements, now).await?;
    unit.record_put(batch, &plan.puts, now).await?;
    unit.alias_change(&batch.tenant, &plan.aliases).await?;
    unit.history_add(batch, &plan.history, now).await?;
    Ok(WriteDone { results: plan.results, woken })
}

/// Every record some change was computed from, once: a model or an item is the input of many.
fn inputs(batch: &WriteBatch) -> Vec<Urn> {
    let mut inputs: Vec<Urn> =
        batch.changes.iter().flat_map(|change| &change.inputs).map(|input| input.urn.clone()).collect();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// See [`crate::DtoStore::record_touch`].
pub(crate) async fn record_touch<U: Unit>(unit: &mut U, touch: &Touch, now: Timestamp) -> Result<TouchDone> {
    let named = std::slice::from_ref(&touch.tracking_id);
    if unit.operation_among(&touch.tenant, named).await?.is_some() {
        return Err(StoreError::denied("tracking_id", "is an operation's: a touch needs an id of its own"));
    }
    let touched = unit.record_touch(touch, now).await?;
    let announcements: Vec<Announcement> = touch
        .urns
        .iter()
        .zip(&touched)
        .filter(|(_, touched)| **touched)
        .map(|(urn, _)| Announcement {
            dto_type: touch.dto_type,
            urn: urn.clone(),
            sla: touch.sla,
            tracking_id: Some(touch.tracking_id.clone()),
            lane: None,
            announce: Announce::Always,
        })
        .collect();
    let woken = unit.announce(&announcements, now).await?;
    Ok(TouchDone { touched, woken })
}

/// See [`crate::store::sealed::Reindex::alias_reindex`].
pub(crate) async fn alias_reindex<U: Unit>(unit: &mut U, rules: AliasRules, limit: usize) -> Result<Reindexed> {
    // A store without the row has an index by no known rules; an empty one is done in its first step.
    let found = unit.rules_find().await?.unwrap_or(RulesRow { version: 0, target: 0, done: 0 });
    if found.version == rules.version && found.target == rules.version {
        return Ok(Reindexed::Current);
    }
    // Begins anew when the rules changed again meanwhile.
    let done = if found.target == rules.version { found.done } else { 0 };
    let records = unit.record_walk(done, limit).await?;
    let mut changes: BTreeMap<TenantId, AliasChange> = BTreeMap::new();
    let mut rewritten = Vec::new();
    for record in &records {
        let aliases = match Record::decode(record.dto_type, &record.payload) {
            Ok(decoded) => rules.aliases(record.dto_type, &record.urn, &decoded),
            Err(fault) => {
                tracing::warn!(urn = %record.urn, %fault, "record keeps its aliases: it is not of its type any more");
                continue;
            }
        };
        if aliases != record.aliases {
            let change = changes.entry(record.tenant.clone()).or_default();
            change.note(record.dto_type, &record.urn, &record.aliases, &aliases);
            rewritten.push((record.position, aliases));
        }
    }
    for (tenant, change) in &changes {
        unit.alias_change(tenant, change).await?;
    }
    unit.record_aliases_put(&rewritten).await?;
    let last = |record: &IndexedRecord| record.position;
    let next = if records.len() < limit {
        RulesRow { version: rules.version, target: rules.version, done: 0 }
    } else {
        RulesRow { version: found.version, target: rules.version, done: records.last().map_or(done, last) }
    };
    unit.rules_put(next).await?;
    Ok(Reindexed::Step(records.len()))
}
