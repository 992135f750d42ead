//! How long a changed price takes to its label, whatever else is going on.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use domain::{DtoType, ServiceName};
use prost::Message as _;
use proto::{
    DtoFlowClient,
    dtoflow::v1::{GetKey, GetManyRequest, PutItem, PutManyRequest},
    records::v1::{DeliveryState, StoreEslStatus, StoreItemValues},
};
use tokio_util::sync::CancellationToken;

use super::{
    figures::Times,
    load::{item_id, label_id, store},
    platform::Bench,
};

/// Between two looks at a label's status. Adds up to this to each figure.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Between two changes: they shall meet the bulk work at many points, and not be bulk work themselves.
const CHANGE_EVERY: Duration = Duration::from_millis(150);
/// A label that is not exported by then ends the measurement.
const LOST_AFTER: Duration = Duration::from_mins(2);

/// Which labels a probe changes, in each of its stores.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeLabels {
    /// The number of the first store.
    pub(super) store: u32,
    /// How many stores, one after the other.
    pub(super) stores: u32,
    /// The number of the first label.
    pub(super) first: u32,
    /// How many labels.
    pub(super) labels: u32,
    /// The number of the item that the first label shows, and nobody else; the others show those after it.
    pub(super) first_item: u32,
}

impl ProbeLabels {
    /// The item that a label of that number shows, if it is one of these.
    pub(super) fn item(self, label: u32) -> Option<u32> {
        let index = label.checked_sub(self.first).filter(|index| *index < self.labels)?;
        Some(self.first_item + index)
    }
}

/// Labels whose items are changed one after the other.
#[derive(Clone)]
pub(super) struct Probe {
    import: DtoFlowClient,
    reader: DtoFlowClient,
    labels: ProbeLabels,
    item: StoreItemValues,
    changes: u32,
}

impl Probe {
    /// Changes the items of these labels, which are like `item`.
    pub(super) fn new(bench: &Bench, labels: ProbeLabels, item: StoreItemValues) -> anyhow::Result<Self> {
        Ok(Self {
            import: bench.dtoflow_as(ServiceName::RecordImport)?,
            reader: bench.dtoflow_as(ServiceName::OperatorGateway)?,
            labels,
            item,
            changes: 0,
        })
    }

    /// Changes items until `stop`, or until so many were changed.
    pub(super) async fn run(&mut self, most: usize, stop: &CancellationToken) -> anyhow::Result<Times> {
        let mut times = Times::default();
        while times.len() < most && !stop.is_cancelled() {
            let next = Instant::now() + CHANGE_EVERY;
            times.push(self.change().await?);
            tokio::time::sleep_until(next.into()).await;
        }
        Ok(times)
    }

    /// From before the write to the status that confirms another picture.
    async fn change(&mut self) -> anyhow::Result<Duration> {
        let ProbeLabels { store: first_store, stores, first, labels, first_item } = self.labels;
        self.changes += 1;
        let index = self.changes / stores % labels;
        let (in_store, label) = (first_store + self.changes % stores, first + index);
        let before = self.status((in_store, label)).await?.context("a label of the probe was never exported")?;
        let price = format!("{}.{:02}", 1 + self.changes / 100, self.changes % 100);
        self.item.values.insert("price".to_owned(), price);
        let item = PutItem {
            dto_type: DtoType::StoreItemValues.to_string(),
            dto_id: format!("{}/items/{}", store(in_store), item_id(first_item + index)),
            payload: self.item.encode_to_vec().into(),
            ..PutItem::default()
        };
        let started = Instant::now();
        self.import.put_many(PutManyRequest { items: vec![item], lease: None }).await?;
        loop {
            let shown = self.status((in_store, label)).await?.is_some_and(|status| {
                status.state() == DeliveryState::Confirmed && status.confirmed_digest != before.confirmed_digest
            });
            if shown {
                return Ok(started.elapsed());
            }
            anyhow::ensure!(started.elapsed() < LOST_AFTER, "a changed price never reached its label");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn status(&mut self, (in_store, label): (u32, u32)) -> anyhow::Result<Option<StoreEslStatus>> {
        let key = GetKey {
            dto_type: DtoType::StoreEslStatus.to_string(),
            dto_id: format!("{}/eslstatuses/{}", store(in_store), label_id("E", (in_store, label))),
            known_version: 0,
        };
        let answer = self.reader.get_many(GetManyRequest { keys: vec![key] }).await?.into_inner();
        let found = answer.dtos.into_iter().next().filter(|dto| dto.exists);
        Ok(found.map(|dto| StoreEslStatus::decode(dto.payload)).transpose()?)
    }
}
