//! A worker service without its rendering: dequeues, splits, and reports labels as done, over the same RPCs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use domain::{AliasName, DtoType, ParentShape, ServiceName, SplitItem, Target, Urn, limits::SPLIT_CHILDREN_MAX};
use proto::{
    CqsClient, DtoFlowClient,
    cqs::v1::{
        CompleteRequest, CreateOrConfigureQueueRequest, DequeueRequest, DtoChangeNotification, ItemOutcome,
        OutcomeKind, ReEnqueueRequest, SplitItem as WireItem,
    },
    dtoflow::v1::{ListByAliasRequest, ListStoresByAliasRequest},
    notification_from_wire, shape_to_wire, split_item_to_wire,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use worker::PipelineSettings;

use super::{figures::Times, platform::Bench};

/// What became of a queue so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) labels: AtomicU64,
    pub(super) parents: AtomicU64,
    pub(super) children: AtomicU64,
}

/// One service's clients.
#[derive(Clone)]
pub(super) struct NullService {
    cqs: CqsClient,
    dtoflow: DtoFlowClient,
    queue: String,
    settings: PipelineSettings,
}

/// A running worker.
pub(super) struct NullWorker {
    pub(super) tally: Arc<Tally>,
    stop: CancellationToken,
    pipelines: JoinSet<anyhow::Result<()>>,
}

impl NullService {
    /// Makes the service's queue with these shapes, without subscriptions.
    pub(super) async fn configure(
        bench: &Bench,
        service: ServiceName,
        (subscriptions, shapes): (&[DtoType], &[ParentShape]),
    ) -> anyhow::Result<Self> {
        let queue = service.queue().context("a service without a queue")?.to_string();
        let mut cqs = bench.cqs_as(service)?;
        let request = CreateOrConfigureQueueRequest {
            queue_name: queue.clone(),
            subscriptions: subscriptions
                .iter()
                .map(|dto_type| proto::cqs::v1::Subscription { dto_type: dto_type.to_string() })
                .collect(),
            shapes: shapes.iter().copied().map(shape_to_wire).collect(),
            // As the exporter itself makes its queue.
            exclusive_by_store: service == ServiceName::HardwareExporter,
        };
        cqs.create_or_configure_queue(request).await?;
        let dtoflow = bench.dtoflow_as(service)?;
        let settings = bench.worker(Vec::new()).pipelines.within_bounds();
        Ok(Self { cqs, dtoflow, queue, settings })
    }

    /// Leases a batch; its generation and items, nothing when none came.
    pub(super) async fn dequeue(
        &mut self,
        (max_items, wait_ms): (i32, i32),
    ) -> anyhow::Result<Option<(i64, Vec<DtoChangeNotification>)>> {
        let request = DequeueRequest {
            queue_name: self.queue.clone(),
            max_items,
            wait_ms,
            lease_ms: self.settings.lease_ms,
            worker_id: "bench".to_owned(),
            lease_generation: 0,
        };
        let answer = self.cqs.dequeue(request).await?.into_inner();
        Ok(answer.lease.map(|lease| (lease.generation, answer.notifications)))
    }

    /// Reports items as done.
    pub(super) async fn complete(&mut self, generation: i64, ids: impl Iterator<Item = i64>) -> anyhow::Result<()> {
        let outcome = |id| ItemOutcome { id, outcome: OutcomeKind::Done.into(), ..ItemOutcome::default() };
        let request = CompleteRequest {
            queue_name: self.queue.clone(),
            lease_generation: generation,
            outcomes: ids.map(outcome).collect(),
        };
        self.cqs.complete(request).await?;
        Ok(())
    }

    /// Splits a leased row into `items`; how long the call took.
    pub(super) async fn re_enqueue(
        &mut self,
        (generation, id): (i64, i64),
        items: Vec<WireItem>,
        next_cursor: String,
    ) -> anyhow::Result<Duration> {
        let request = ReEnqueueRequest {
            queue_name: self.queue.clone(),
            lease_generation: generation,
            notification_id: id,
            items,
            next_cursor,
            sla_timestamp: None,
        };
        let started = Instant::now();
        self.cqs.re_enqueue(request).await?;
        Ok(started.elapsed())
    }

    /// The next page of a parent's children, and where it goes on.
    pub(super) async fn children(
        &mut self,
        item: &SplitItem,
        (cursor, page_size): (&str, i32),
    ) -> anyhow::Result<(Vec<WireItem>, String)> {
        let dto_type = item.dto_type.to_string();
        let urn = item.target.urn();
        if let (Urn::TenantRecord(tenant, collection, id), None) = (urn, item.alias) {
            // A design: one parent per store that has links to it.
            let alias = AliasName::ByDesign;
            let request = ListStoresByAliasRequest {
                dto_type,
                alias_name: alias.to_string(),
                parent_id: urn.to_string(),
                page_size,
                page_token: cursor.to_owned(),
            };
            let page = self.dtoflow.list_stores_by_alias(request).await?.into_inner();
            let child = |store: &str| {
                let urn = Urn::StoreRecord(tenant.clone(), store.parse()?, *collection, id.clone());
                let item = SplitItem { dto_type: item.dto_type, target: Target::Parent(urn), alias: Some(alias) };
                Ok(split_item_to_wire(&item))
            };
            let children = page.stores.iter().map(|store| child(&store.store_id)).collect::<anyhow::Result<_>>()?;
            return Ok((children, page.next_page_token));
        }
        let request = ListByAliasRequest {
            dto_type: dto_type.clone(),
            alias_name: item.alias.context("a parent without an alias")?.to_string(),
            parent_ids: vec![urn.to_string()],
            page_size,
            page_token: cursor.to_owned(),
        };
        let page = self.dtoflow.list_by_alias(request).await?.into_inner();
        let child = |dto_id| WireItem {
            dto_type: dto_type.clone(),
            urn: Some(proto::cqs::v1::split_item::Urn::DtoId(dto_id)),
            alias_name: String::new(),
        };
        Ok((page.entries.into_iter().map(|entry| child(entry.dto_id)).collect(), page.next_page_token))
    }

    async fn turn(&mut self, tally: &Tally) -> anyhow::Result<()> {
        let page_size = i32::try_from(SPLIT_CHILDREN_MAX)?;
        let ask = (self.settings.batch_max, self.settings.wait_ms);
        let Some((generation, notifications)) = self.dequeue(ask).await? else { return Ok(()) };
        let mut done = Vec::with_capacity(notifications.len());
        for notification in notifications {
            if is_parent_row(&notification) {
                let notification = notification_from_wire(notification)?;
                let (children, next) = self.children(&notification.item, (&notification.cursor, page_size)).await?;
                tally.children.fetch_add(children.len() as u64, Ordering::Relaxed);
                self.re_enqueue((generation, notification.id), children, next).await?;
                tally.parents.fetch_add(1, Ordering::Relaxed);
            } else {
                done.push(notification.id);
            }
        }
        if !done.is_empty() {
            let count = done.len() as u64;
            self.complete(generation, done.into_iter()).await?;
            tally.labels.fetch_add(count, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Leases and completes rows of at most `most` in all, in batches of `batch`; the time of each pair of calls.
    pub(super) async fn claim_and_complete(&mut self, most: u64, batch: i32) -> anyhow::Result<(u64, Times)> {
        // Longer than any measurement.
        let ever = Instant::now() + Duration::from_hours(24);
        self.claim_and_complete_until((most, ever), batch).await
    }

    /// As [`Self::claim_and_complete`], and no batch more after that time.
    pub(super) async fn claim_and_complete_until(
        &mut self,
        (most, until): (u64, Instant),
        batch: i32,
    ) -> anyhow::Result<(u64, Times)> {
        let (mut rows, mut times) = (0, Times::default());
        while rows < most && Instant::now() < until {
            let started = Instant::now();
            let Some((generation, notifications)) = self.dequeue((batch, 0)).await? else { break };
            rows += notifications.len() as u64;
            self.complete(generation, notifications.iter().map(|row| row.id)).await?;
            times.push(started.elapsed());
        }
        Ok((rows, times))
    }

    /// Works the queue until stopped.
    pub(super) fn start(&self) -> NullWorker {
        let (tally, stop) = (Arc::new(Tally::default()), CancellationToken::new());
        let mut pipelines = JoinSet::new();
        for _ in 0..self.settings.pipelines {
            let (mut service, tally, stop) = (self.clone(), Arc::clone(&tally), stop.clone());
            pipelines.spawn(async move {
                while !stop.is_cancelled() {
                    service.turn(&tally).await?;
                }
                Ok(())
            });
        }
        NullWorker { tally, stop, pipelines }
    }
}

impl NullWorker {
    /// Lets every pipeline finish what it has.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.pipelines.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// An error of a pipeline that ended; none while all work.
    pub(super) fn failure(&mut self) -> Option<anyhow::Error> {
        self.pipelines.try_join_next().and_then(|ended| match ended {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(error) => Some(error.into()),
        })
    }
}

/// Whether a leased row is a parent.
pub(super) fn is_parent_row(row: &DtoChangeNotification) -> bool {
    row.urn.as_ref().is_some_and(is_parent)
}

fn is_parent(urn: &proto::cqs::v1::dto_change_notification::Urn) -> bool {
    matches!(urn, proto::cqs::v1::dto_change_notification::Urn::ParentId(_))
}
