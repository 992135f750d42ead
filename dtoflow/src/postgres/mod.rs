//! The PostgreSQL twin. Tables: `migrations/postgres/0002_dtoflow.sql`, `0009_history.sql`.
//!
//! Units of work run beside each other, in this process and in others. A write locks the records it is about to write
//! before it looks at its inputs, always in the same order. So of two that compute the same output the later one sees
//! whatever was committed while it waited, and one that was computed from older inputs finds them changed: a stale picture
//! never follows a newer one. A record that neither found is inserted by both, and the later one runs again.
//!
//! Differs by necessity: rows of a batch go in and out as arrays; a count is added to where it lies; the time that counts
//! is the queues' ([`cqs::postgres::Queues::now`]).

mod alias;
mod history;
mod record;
mod row;
mod rules;

use std::collections::HashMap;

use cqs::{
    announce::{Announcement, LeaseLane, Woken},
    postgres::Queues,
};
use db::{
    DbError,
    postgres::{Failure, PostgresDb},
};
use domain::{LeaseRef, Parent, TenantId, Timestamp, TrackingId, Urn};
use sqlx::PgConnection;

use crate::{
    alias::{AliasKey, AliasRules},
    alias_list::{self, AliasIndex as _},
    history::{HistoryAsk, HistoryEntry, Notes},
    model::{
        AliasFound, AliasListAsk, AliasLook, Page, ReadBatch, Reindexed, StoreCount, StoreListAsk, Stored, Touch,
        TouchDone, Version, WriteBatch, WriteDone,
    },
    plan::{AliasChange, Current, Put},
    steps,
    store::{DtoStore, Result, StoreError, sealed::Reindex},
    unit::{IndexedRecord, RulesRow, Unit},
};

/// The PostgreSQL twin. Clones share their database.
#[derive(Debug, Clone)]
pub struct PostgresDtoStore {
    db: PostgresDb,
    queues: Queues,
}

impl PostgresDtoStore {
    /// The store in `db`, which the queues share.
    pub fn new(db: PostgresDb, queues: Queues) -> Self {
        Self { db, queues }
    }
}

struct PostgresUnit<'c> {
    conn: &'c mut PgConnection,
    queues: &'c Queues,
}

impl Failure for StoreError {
    fn database(&self) -> Option<&DbError> {
        match self {
            Self::Db(error) => Some(error),
            Self::Queues(error) => error.database(),
            Self::Refused(_) | Self::Json(_) => None,
        }
    }
}

#[tonic::async_trait]
impl DtoStore for PostgresDtoStore {
    async fn record_write(&self, batch: WriteBatch, now: Timestamp) -> Result<WriteDone> {
        let queues = self.queues.clone();
        self.db
            .write(move |conn, began| {
                let (queues, batch) = (queues.clone(), batch.clone());
                Box::pin(async move {
                    let now = queues.now(began, now);
                    steps::record_write(&mut PostgresUnit { conn, queues: &queues }, &batch, now).await
                })
            })
            .await
    }

    async fn record_touch(&self, touch: Touch, now: Timestamp) -> Result<TouchDone> {
        let queues = self.queues.clone();
        self.db
            .write(move |conn, began| {
                let (queues, touch) = (queues.clone(), touch.clone());
                Box::pin(async move {
                    let now = queues.now(began, now);
                    steps::record_touch(&mut PostgresUnit { conn, queues: &queues }, &touch, now).await
                })
            })
            .await
    }

    async fn record_read(&self, batch: ReadBatch) -> Result<Vec<Option<Stored>>> {
        self.db.read(move |conn, _| Box::pin(record::read(conn, batch))).await
    }

    async fn alias_list(&self, ask: AliasListAsk) -> Result<Page<AliasFound>> {
        self.db.read(move |conn, _| Box::pin(alias_list::list(conn, ask))).await
    }

    async fn alias_count(&self, look: AliasLook, parents: Vec<Parent>) -> Result<Vec<i64>> {
        self.db.read(move |conn, _| Box::pin(async move { conn.count(&look, &parents).await })).await
    }

    async fn alias_stores(&self, ask: StoreListAsk) -> Result<Page<StoreCount>> {
        self.db.read(move |conn, _| Box::pin(alias::stores(conn, ask))).await
    }

    async fn history_list(&self, ask: HistoryAsk) -> Result<Page<HistoryEntry>> {
        self.db.read(move |conn, _| Box::pin(history::list(conn, ask))).await
    }

    async fn history_prune(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.db.write(move |conn, _| Box::pin(history::prune(conn, before, limit))).await
    }
}

#[tonic::async_trait]
impl Reindex for PostgresDtoStore {
    async fn alias_reindex(&self, rules: AliasRules, limit: usize) -> Result<Reindexed> {
        let queues = self.queues.clone();
        self.db
            .write(move |conn, _| {
                let queues = queues.clone();
                Box::pin(async move {
                    steps::alias_reindex(&mut PostgresUnit { conn, queues: &queues }, rules, limit).await
                })
            })
            .await
    }
}

impl Unit for PostgresUnit<'_> {
    async fn lease_check(&mut self, lease: &LeaseRef, now: Timestamp) -> Result<LeaseLane> {
        Ok(cqs::postgres::lease_check((self.conn, self.queues), lease, now).await?)
    }

    async fn operation_among(&mut self, tenant: &TenantId, tracking_ids: &[TrackingId]) -> Result<Option<TrackingId>> {
        Ok(cqs::postgres::operation_among(self.conn, tenant, tracking_ids).await?)
    }

    async fn announce(&mut self, announcements: &[Announcement], now: Timestamp) -> Result<Woken> {
        Ok(cqs::postgres::announce((self.conn, self.queues), announcements, now).await?)
    }

    async fn record_current(&mut self, batch: &WriteBatch) -> Result<Vec<Option<Current>>> {
        record::current(self.conn, batch).await
    }

    async fn record_versions(&mut self, tenant: &TenantId, urns: &[Urn]) -> Result<HashMap<Urn, Version>> {
        record::versions(self.conn, tenant, urns).await
    }

    async fn record_put(&mut self, batch: &WriteBatch, puts: &[Put], now: Timestamp) -> Result<()> {
        record::put(self.conn, batch, puts, now).await
    }

    async fn record_touch(&mut self, touch: &Touch, now: Timestamp) -> Result<Vec<bool>> {
        record::touch(self.conn, touch, now).await
    }

    async fn alias_change(&mut self, tenant: &TenantId, change: &AliasChange) -> Result<()> {
        alias::change(self.conn, tenant, change).await
    }

    async fn history_add(&mut self, batch: &WriteBatch, notes: &Notes, now: Timestamp) -> Result<()> {
        history::add(self.conn, batch, notes, now).await
    }

    async fn rules_find(&mut self) -> Result<Option<RulesRow>> {
        rules::find(self.conn).await
    }

    async fn rules_put(&mut self, rules: RulesRow) -> Result<()> {
        rules::put(self.conn, rules).await
    }

    async fn record_walk(&mut self, position: i64, limit: usize) -> Result<Vec<IndexedRecord>> {
        rules::walk(self.conn, position, limit).await
    }

    async fn record_aliases_put(&mut self, aliases: &[(i64, Vec<AliasKey>)]) -> Result<()> {
        rules::aliases_put(self.conn, aliases).await
    }
}
