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
    load::{label_id, store},
    platform::Bench,
};

/// Between two looks at a label's status. Adds up to this to each figure.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Between two changes: they shall meet the bulk work at many points, and not be bulk work themselves.
const CHANGE_EVERY: Duration = Duration::from_millis(150);
/// A label that is not exported by then ends the measurement.
const LOST_AFTER: Duration = Duration::from_mins(2);

/// Labels whose items are changed one after the other.
#[derive(Clone)]
pub(super) struct Probe {
    import: DtoFlowClient,
    reader: DtoFlowClient,
    store_index: u32,
    labels: u32,
    item: StoreItemValues,
    changes: u32,
}

impl Probe {
    /// `labels` labels of the store of that number, of which number n shows item n.
    pub(super) fn new(bench: &Bench, (store_index, labels): (u32, u32), item: StoreItemValues) -> anyhow::Result<Self> {
        Ok(Self {
            import: bench.dtoflow_as(ServiceName::RecordImport)?,
            reader: bench.dtoflow_as(ServiceName::OperatorGateway)?,
            store_index,
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
        self.changes += 1;
        let label = self.changes % self.labels;
        let before = self.status(label).await?.context("a label of the probe was never exported")?;
        let price = format!("{}.{:02}", 1 + self.changes / 100, self.changes % 100);
        self.item.values.insert("price".to_owned(), price);
        let item = PutItem {
            dto_type: DtoType::StoreItemValues.to_string(),
            dto_id: format!("{}/items/I{label:05}", store(self.store_index)),
            payload: self.item.encode_to_vec().into(),
            ..PutItem::default()
        };
        let started = Instant::now();
        self.import.put_many(PutManyRequest { items: vec![item], lease: None }).await?;
        loop {
            let shown = self.status(label).await?.is_some_and(|status| {
                status.state() == DeliveryState::Confirmed && status.confirmed_digest != before.confirmed_digest
            });
            if shown {
                return Ok(started.elapsed());
            }
            anyhow::ensure!(started.elapsed() < LOST_AFTER, "a changed price never reached its label");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn status(&mut self, label: u32) -> anyhow::Result<Option<StoreEslStatus>> {
        let key = GetKey {
            dto_type: DtoType::StoreEslStatus.to_string(),
            dto_id: format!("{}/eslstatuses/{}", store(self.store_index), label_id("E", (self.store_index, label))),
            known_version: 0,
        };
        let answer = self.reader.get_many(GetManyRequest { keys: vec![key] }).await?.into_inner();
        let found = answer.dtos.into_iter().next().filter(|dto| dto.exists);
        Ok(found.map(|dto| StoreEslStatus::decode(dto.payload)).transpose()?)
    }
}
