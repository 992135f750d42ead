//! The memory twin: maps behind one lock. For tests and simulations.
//!
//! Differs by necessity: a unit of work is a copy of the state that replaces it at commit, together with the queues' own
//! (this twin's lock is always taken before theirs); nothing survives the process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use cqs::{
    announce::{Announcement, LeaseLane, Woken},
    memory::{MemoryCqsStore, MemoryUnit},
};
use domain::{LeaseRef, Parent, RecordId, ServiceIdentity, StoreId, TenantId, Timestamp, TrackingId, Urn};
use prost::bytes::Bytes;
use tokio::sync::Mutex;

use crate::{
    alias::{AliasKey, AliasRules},
    history::{self, HistoryAsk, HistoryEntry, Notes},
    limits::{READ_BYTES_MAX, read_too_large},
    model::{
        AliasFound, AliasListAsk, AliasLook, Content, Page, ReadBatch, Reindexed, StoreCount, StoreListAsk, Stored,
        Touch, TouchDone, Version, WriteBatch, WriteDone,
    },
    plan::{AliasChange, Current, Place, Presence, Put},
    steps,
    store::{DtoStore, Result, sealed::Reindex},
    unit::{IndexedRecord, RulesRow, Unit},
};

#[derive(Debug, Clone)]
struct Row {
    position: i64,
    version: Version,
    updated_at: Timestamp,
    written_by: ServiceIdentity,
    tracking_id: Option<TrackingId>,
    aliases: Vec<AliasKey>,
    payload: Option<Bytes>,
}

#[derive(Debug, Clone, Default)]
struct State {
    records: BTreeMap<Urn, Row>,
    entries: BTreeMap<(TenantId, Place), BTreeSet<RecordId>>,
    rules: Option<RulesRow>,
    history: BTreeMap<i64, (TenantId, StoreId, RecordId, HistoryEntry)>,
}

/// The memory twin. Clones share their state.
#[derive(Clone)]
pub struct MemoryDtoStore {
    state: Arc<Mutex<State>>,
    queues: MemoryCqsStore,
}

impl fmt::Debug for MemoryDtoStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryDtoStore")
    }
}

impl MemoryDtoStore {
    /// An empty store whose writes are announced in `queues`.
    pub fn new(queues: MemoryCqsStore) -> Self {
        Self { state: Arc::default(), queues }
    }
}

struct MemoryDtoUnit {
    work: State,
    queues: MemoryUnit,
}

/// Runs a step on copies of both states and makes them count together.
macro_rules! unit_of_work {
    ($store:expr, $unit:ident => $step:expr) => {{
        let mut state = $store.state.lock().await;
        let mut $unit = MemoryDtoUnit { work: state.clone(), queues: $store.queues.begin().await };
        let answer = $step?;
        $unit.queues.commit();
        *state = $unit.work;
        Ok(answer)
    }};
}

#[tonic::async_trait]
impl DtoStore for MemoryDtoStore {
    async fn record_write(&self, batch: WriteBatch, now: Timestamp) -> Result<WriteDone> {
        unit_of_work!(self, unit => steps::record_write(&mut unit, &batch, now).await)
    }

    async fn record_touch(&self, touch: Touch, now: Timestamp) -> Result<TouchDone> {
        unit_of_work!(self, unit => steps::record_touch(&mut unit, &touch, now).await)
    }

    async fn record_read(&self, batch: ReadBatch) -> Result<Vec<Option<Stored>>> {
        let state = self.state.lock().await;
        let mut bytes = 0;
        let mut found = Vec::with_capacity(batch.keys.len());
        for key in &batch.keys {
            let stored = state.records.get(&key.urn).and_then(|row| {
                let payload = row.payload.clone()?;
                Some(Stored {
                    version: row.version,
                    payload: (row.version > key.known_version).then_some(payload),
                    updated_at: row.updated_at,
                    written_by: row.written_by,
                    tracking_id: row.tracking_id.clone(),
                })
            });
            bytes += stored.as_ref().and_then(|stored| stored.payload.as_ref()).map_or(0, Bytes::len);
            if bytes > READ_BYTES_MAX {
                return Err(read_too_large());
            }
            found.push(stored);
        }
        Ok(found)
    }

    async fn alias_list(&self, ask: AliasListAsk) -> Result<Page<AliasFound>> {
        let state = self.state.lock().await;
        let start = ask.after.as_ref().map_or(0, |after| after.parent);
        let mut entries = Vec::new();
        for (index, parent) in ask.parents.iter().enumerate().skip(start) {
            let Some(ids) = state.entries.get(&place(&ask.look, parent)) else { continue };
            let after = ask.after.as_ref().filter(|after| after.parent == index).map(|after| &after.id);
            let ids = ids.iter().filter(|id| after.is_none_or(|after| *id > after));
            entries.extend(ids.map(|id| AliasFound { parent: index, id: id.clone() }));
            if entries.len() > ask.limit {
                break;
            }
        }
        Ok(Page::cut(entries, ask.limit))
    }

    async fn alias_count(&self, look: AliasLook, parents: Vec<Parent>) -> Result<Vec<i64>> {
        let state = self.state.lock().await;
        let count = |parent: &Parent| match parent.store {
            Some(_) => state.entries.get(&place(&look, parent)).map_or(0, BTreeSet::len),
            None => below(&state, &look, &parent.base).map(|(_, ids)| ids.len()).sum(),
        };
        Ok(parents.iter().map(|parent| i64::try_from(count(parent)).unwrap_or(i64::MAX)).collect())
    }

    async fn alias_stores(&self, ask: StoreListAsk) -> Result<Page<StoreCount>> {
        let state = self.state.lock().await;
        let stores = below(&state, &ask.look, &ask.base)
            .filter_map(|(place, ids)| Some((place.store.clone()?, ids.len())))
            .filter(|(store, _)| ask.after.as_ref().is_none_or(|after| store > after))
            .map(|(store, count)| StoreCount { store, count: i64::try_from(count).unwrap_or(i64::MAX) })
            .take(ask.limit + 1)
            .collect();
        Ok(Page::cut(stores, ask.limit))
    }

    async fn history_list(&self, ask: HistoryAsk) -> Result<Page<HistoryEntry>> {
        let state = self.state.lock().await;
        let entries = of_label(&state, (&ask.tenant, &ask.store, &ask.label))
            .filter(|entry| ask.before.is_none_or(|before| entry.position < before))
            .take(ask.limit + 1)
            .cloned()
            .collect();
        Ok(Page::cut(entries, ask.limit))
    }

    async fn history_prune(&self, before: Timestamp, limit: usize) -> Result<usize> {
        let mut state = self.state.lock().await;
        let is_old = |(_, (.., entry)): &(&i64, &(_, _, _, HistoryEntry))| entry.at < before;
        let old: Vec<i64> = state.history.iter().take(limit).filter(is_old).map(|(position, _)| *position).collect();
        for position in &old {
            state.history.remove(position);
        }
        Ok(old.len())
    }
}

#[tonic::async_trait]
impl Reindex for MemoryDtoStore {
    async fn alias_reindex(&self, rules: AliasRules, limit: usize) -> Result<Reindexed> {
        unit_of_work!(self, unit => steps::alias_reindex(&mut unit, rules, limit).await)
    }
}

fn place(look: &AliasLook, parent: &Parent) -> (TenantId, Place) {
    let (base, store) = (parent.base.clone(), parent.store.clone());
    (look.tenant.clone(), Place { dto_type: look.dto_type, alias: look.alias, base, store })
}

/// A label's history, newest first.
fn of_label<'a>(
    state: &'a State,
    label: (&'a TenantId, &'a StoreId, &'a RecordId),
) -> impl Iterator<Item = &'a HistoryEntry> {
    let is_of = move |(tenant, store, id, entry): &'a (TenantId, StoreId, RecordId, HistoryEntry)| {
        ((tenant, store, id) == label).then_some(entry)
    };
    state.history.values().rev().filter_map(is_of)
}

/// The places of one base over all stores, by store.
fn below<'a>(
    state: &'a State,
    look: &'a AliasLook,
    base: &'a str,
) -> impl Iterator<Item = (&'a Place, &'a BTreeSet<RecordId>)> {
    let first = Place { dto_type: look.dto_type, alias: look.alias, base: base.to_owned(), store: None };
    state
        .entries
        .range((look.tenant.clone(), first)..)
        .map(|((tenant, place), ids)| (tenant, place, ids))
        .take_while(move |(tenant, place, _)| {
            **tenant == look.tenant
                && place.dto_type == look.dto_type
                && place.alias == look.alias
                && place.base == base
        })
        .map(|(_, place, ids)| (place, ids))
}

impl Unit for MemoryDtoUnit {
    async fn lease_check(&mut self, lease: &LeaseRef, now: Timestamp) -> Result<LeaseLane> {
        Ok(cqs::memory::lease_check(&mut self.queues, lease, now).await?)
    }

    async fn operation_among(&mut self, tenant: &TenantId, tracking_ids: &[TrackingId]) -> Result<Option<TrackingId>> {
        for tracking_id in tracking_ids {
            if cqs::memory::is_operation(&mut self.queues, tenant, tracking_id).await? {
                return Ok(Some(tracking_id.clone()));
            }
        }
        Ok(None)
    }

    async fn announce(&mut self, announcements: &[Announcement], now: Timestamp) -> Result<Woken> {
        Ok(cqs::memory::announce(&mut self.queues, announcements, now).await?)
    }

    async fn record_current(&mut self, batch: &WriteBatch) -> Result<Vec<Option<Current>>> {
        let current = batch.changes.iter().map(|change| {
            let row = self.work.records.get(&change.urn)?;
            let presence = match (&row.payload, &change.content) {
                (None, _) => Presence::Deleted,
                (Some(stored), Content::Put { payload, .. }) if stored == payload => Presence::Same,
                (Some(_), _) => Presence::Other,
            };
            let payload = row.payload.clone().filter(|_| history::TOLD.contains(&change.dto_type));
            Some(Current { version: row.version, presence, aliases: row.aliases.clone(), payload })
        });
        Ok(current.collect())
    }

    async fn record_versions(&mut self, _: &TenantId, urns: &[Urn]) -> Result<HashMap<Urn, Version>> {
        let there = |urn: &&Urn| self.work.records.get(urn).filter(|row| row.payload.is_some());
        Ok(urns.iter().filter_map(|urn| Some((urn.clone(), there(&urn)?.version))).collect())
    }

    async fn record_put(&mut self, batch: &WriteBatch, puts: &[Put], now: Timestamp) -> Result<()> {
        for put in puts {
            let Some(change) = batch.changes.get(put.change) else { continue };
            let next = i64::try_from(self.work.records.len()).unwrap_or(i64::MAX) + 1;
            let position = self.work.records.get(&change.urn).map_or(next, |row| row.position);
            let row = Row {
                position,
                version: put.version,
                updated_at: now,
                written_by: batch.writer,
                tracking_id: change.tracking_id.clone(),
                aliases: change.content.aliases().to_vec(),
                payload: match &change.content {
                    Content::Put { payload, .. } => Some(payload.clone()),
                    Content::Delete => None,
                },
            };
            self.work.records.insert(change.urn.clone(), row);
        }
        Ok(())
    }

    async fn record_touch(&mut self, touch: &Touch, now: Timestamp) -> Result<Vec<bool>> {
        let touched = touch.urns.iter().map(|urn| match self.work.records.get_mut(urn) {
            Some(row) if row.payload.is_some() => {
                row.updated_at = now;
                true
            }
            _ => false,
        });
        Ok(touched.collect())
    }

    async fn alias_change(&mut self, tenant: &TenantId, change: &AliasChange) -> Result<()> {
        for (place, id) in &change.removed {
            let key = (tenant.clone(), place.clone());
            if let Some(ids) = self.work.entries.get_mut(&key) {
                ids.remove(id);
                if ids.is_empty() {
                    self.work.entries.remove(&key);
                }
            }
        }
        for (place, id) in &change.added {
            self.work.entries.entry((tenant.clone(), place.clone())).or_default().insert(id.clone());
        }
        Ok(())
    }

    async fn history_add(&mut self, batch: &WriteBatch, notes: &Notes, now: Timestamp) -> Result<()> {
        for note in &notes.entries {
            let Some(change) = batch.changes.get(note.change) else { continue };
            let (Some(store), Some(label)) = (change.urn.store(), change.urn.record_id()) else { continue };
            let position = self.work.history.last_key_value().map_or(0, |(last, _)| *last) + 1;
            let entry = note.entry(position, (batch, change, notes.cause), now);
            self.work.history.insert(position, (batch.tenant.clone(), store.clone(), label.clone(), entry));
        }
        for (store, label) in &notes.cut {
            let of_label = of_label(&self.work, (&batch.tenant, store, label));
            let surplus: Vec<i64> = of_label.skip(history::KEPT_MAX).map(|entry| entry.position).collect();
            for position in surplus {
                self.work.history.remove(&position);
            }
        }
        Ok(())
    }

    async fn rules_find(&mut self) -> Result<Option<RulesRow>> {
        Ok(self.work.rules)
    }

    async fn rules_put(&mut self, rules: RulesRow) -> Result<()> {
        self.work.rules = Some(rules);
        Ok(())
    }

    async fn record_walk(&mut self, position: i64, limit: usize) -> Result<Vec<IndexedRecord>> {
        let mut found: Vec<IndexedRecord> = self
            .work
            .records
            .iter()
            .filter(|(_, row)| row.position > position)
            .filter_map(|(urn, row)| {
                let (Urn::TenantRecord(_, collection, _) | Urn::StoreRecord(_, _, collection, _)) = urn else {
                    return None;
                };
                Some(IndexedRecord {
                    position: row.position,
                    tenant: urn.tenant().clone(),
                    dto_type: collection.dto_type(),
                    urn: urn.clone(),
                    payload: row.payload.clone()?,
                    aliases: row.aliases.clone(),
                })
            })
            .collect();
        found.sort_unstable_by_key(|record| record.position);
        found.truncate(limit);
        Ok(found)
    }

    async fn record_aliases_put(&mut self, aliases: &[(i64, Vec<AliasKey>)]) -> Result<()> {
        for row in self.work.records.values_mut() {
            if let Some((_, aliases)) = aliases.iter().find(|(position, _)| *position == row.position) {
                row.aliases.clone_from(aliases);
            }
        }
        Ok(())
    }
}
