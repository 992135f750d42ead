//! The memory twin: maps behind one lock. For tests and simulations, and as the oracle of the other twins: it derives
//! heads from the rows themselves, where they keep counts.
//!
//! Differs by necessity: a unit of work is a copy of the state that replaces it at commit, so each costs as much as the
//! state is large; nothing survives the process.

mod audit;
mod controls;
mod failures;
mod lanes;
mod leases;
mod ledger;
mod operations;
mod overview;
mod paces;
mod queues;
mod retention;
mod rows;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use domain::{LeaseRef, StoreId, TenantId, Timestamp, TrackingId};
use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    StoreError,
    announce::{Announcement, LeaseLane, Woken},
    audit::chain::Anchor,
    model::{
        Act, CoalesceKey, Control, Counts, DeadRow, Lane, Lease, LedgerKey, Operation, Queue, RecordKey, RetryRule,
        Row, RowKind, SealedRow, SplitCounts,
    },
    steps,
    unit::SplitKey,
};

/// The order of ready rows.
type ReadyKey = (i64, i64, Option<StoreId>, RowKind, Timestamp, i64);

/// Everything the twin holds.
#[derive(Debug, Clone, Default)]
struct State {
    queues: Vec<Queue>,
    lanes: BTreeMap<i64, (Lane, Timestamp)>,
    /// Waiting rows with their queues.
    waiting: BTreeMap<i64, (i64, Row)>,
    /// Ready ones among them, in claiming order.
    ready: BTreeSet<ReadyKey>,
    /// All waiting ones by what they coalesce on.
    keys: BTreeMap<(i64, i64, CoalesceKey), i64>,
    leases: BTreeMap<i64, Lease>,
    leased: BTreeMap<(i64, i64), Row>,
    /// Lapsed leases: their lanes, the rows that went back, when.
    lapses: BTreeMap<i64, (i64, Vec<i64>, Timestamp)>,
    splits: BTreeMap<SplitKey, (SplitCounts, Timestamp)>,
    deltas: Vec<(LedgerKey, Counts)>,
    folded: BTreeMap<LedgerKey, Counts>,
    /// Deltas folded so far, per lane.
    folded_changes: BTreeMap<i64, i64>,
    /// Failures by position.
    dead: BTreeMap<i64, DeadRow>,
    /// Retry rules by lane and queue.
    retries: BTreeMap<(i64, i64), RetryRule>,
    /// Marked records by queue, with the position of the failure that left the mark.
    undelivered: BTreeMap<(i64, RecordKey), Option<i64>>,
    operations: Vec<Operation>,
    controls: BTreeMap<i64, Control>,
    /// Cancelled lanes that may have rows left.
    clearing: BTreeSet<i64>,
    /// Per queue and lane: closed by a throttle until then; something has waited since then.
    places: BTreeMap<(i64, i64), Place>,
    brake: Option<Act>,
    paces: BTreeSet<(Timestamp, i64, i64, i64)>,
    audit: Vec<SealedRow>,
    anchors: Vec<Anchor>,
    readers: BTreeMap<String, i64>,
    last_row: i64,
    last_dead: i64,
    last_operation: i64,
    last_lane: i64,
    last_generation: i64,
}

/// What of a place does not follow from rows and leases.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    closed_until: Option<Timestamp>,
    waiting_since: Option<Timestamp>,
}

/// The memory twin. Clones share their state.
#[derive(Clone, Default)]
pub struct MemoryCqsStore {
    state: Arc<Mutex<State>>,
    begun: Arc<AtomicU64>,
}

impl fmt::Debug for MemoryCqsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryCqsStore")
    }
}

/// A unit of work under way. Dropped without [`MemoryUnit::commit`], it changes nothing.
pub struct MemoryUnit {
    state: OwnedMutexGuard<State>,
    work: State,
}

impl fmt::Debug for MemoryUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryUnit")
    }
}

impl MemoryUnit {
    /// Makes the work count.
    pub fn commit(mut self) {
        *self.state = self.work;
    }
}

impl crate::unit::Clocked for MemoryUnit {}

impl MemoryCqsStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a unit of work; others wait until it is committed or dropped. DTOflow's twin runs its own step around it.
    pub async fn begin(&self) -> MemoryUnit {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let state = Arc::clone(&self.state).lock_owned().await;
        let work = state.clone();
        MemoryUnit { state, work }
    }

    fn units(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    fn write<A, T, F>(&self, ask: A, step: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        A: Send + 'static,
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut MemoryUnit, A) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        async move {
            let mut unit = self.begin().await;
            let answer = step(&mut unit, ask).await?;
            unit.commit();
            Ok(answer)
        }
        .boxed()
    }

    fn read<A, T, F>(&self, ask: A, step: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        A: Send + 'static,
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut MemoryUnit, A) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        async move { step(&mut self.begin().await, ask).await }.boxed()
    }
}

crate::store_steps::steps_of!(MemoryCqsStore);
crate::failure_store::failure_steps_of!(MemoryCqsStore);
crate::audit_store::audit_steps_of!(MemoryCqsStore);

/// The lane that a live lease stands for; refuses with `STALE_LEASE` when it is over.
pub async fn lease_check(unit: &mut MemoryUnit, lease: &LeaseRef, now: Timestamp) -> Result<LeaseLane, StoreError> {
    steps::lease::lease_check(unit, lease, now).await
}

/// Puts a write's notifications into the queues.
pub async fn announce(
    unit: &mut MemoryUnit,
    announcements: &[Announcement],
    now: Timestamp,
) -> Result<Woken, StoreError> {
    steps::announce::announce(unit, announcements, now).await
}

/// Whether that tracking id names an operation of the tenant.
pub async fn is_operation(
    unit: &mut MemoryUnit,
    tenant: &TenantId,
    tracking_id: &TrackingId,
) -> Result<bool, StoreError> {
    steps::announce::is_operation(unit, tenant, tracking_id).await
}
