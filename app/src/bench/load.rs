//! Writes the records of a measurement through DTOflow, as an import would, in as few calls as it takes.

use domain::{DtoType, ServiceName, SplitItem, Target, limits::RECORDS_PER_CALL_MAX};
use prost::Message;
use proto::{
    DtoFlowClient,
    cqs::v1::SplitItem as WireItem,
    dtoflow::v1::{PutItem, PutManyRequest},
    records::v1::StudioLink,
    split_item_to_wire,
};
use tokio::task::JoinSet;

use super::{TENANT, platform::Bench, progress};

/// Calls under way: while one is written the next is made and read.
const CALLS_AT_ONCE: usize = 3;
/// Between two lines of progress.
const PROGRESS_RECORDS: u64 = 500_000;

/// Collects records into calls.
pub(super) struct Loader {
    dtoflow: DtoFlowClient,
    batch: Vec<PutItem>,
    calls: JoinSet<anyhow::Result<()>>,
    written: u64,
    /// SLA of the notifications that the writes cause, in milliseconds from now; each next record one millisecond later.
    sla: Option<i64>,
    told: u64,
}

impl Loader {
    pub(super) fn new(bench: &Bench) -> anyhow::Result<Self> {
        Ok(Self {
            dtoflow: bench.dtoflow_as(ServiceName::RecordImport)?,
            batch: Vec::with_capacity(RECORDS_PER_CALL_MAX),
            calls: JoinSet::new(),
            written: 0,
            sla: None,
            told: 0,
        })
    }

    /// Gives every further record its own SLA, from that time on.
    pub(super) fn slas_from(&mut self, first: domain::Timestamp) {
        self.sla = Some(first.as_ms());
    }

    pub(super) async fn put(&mut self, dto_type: DtoType, dto_id: String, record: &impl Message) -> anyhow::Result<()> {
        self.put_bytes(dto_type, dto_id, record.encode_to_vec()).await
    }

    pub(super) async fn put_bytes(
        &mut self,
        dto_type: DtoType,
        dto_id: String,
        payload: Vec<u8>,
    ) -> anyhow::Result<()> {
        let sla = self.sla.as_mut().map(|sla| {
            *sla += 1;
            proto::timestamp_to_wire(domain::Timestamp::from_ms(*sla))
        });
        self.batch.push(PutItem {
            dto_type: dto_type.to_string(),
            dto_id,
            payload: payload.into(),
            sla_timestamp: sla,
            ..PutItem::default()
        });
        if self.batch.len() == RECORDS_PER_CALL_MAX { self.send().await } else { Ok(()) }
    }

    async fn send(&mut self) -> anyhow::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        while self.calls.len() >= CALLS_AT_ONCE
            && let Some(done) = self.calls.join_next().await
        {
            done??;
        }
        let items = std::mem::replace(&mut self.batch, Vec::with_capacity(RECORDS_PER_CALL_MAX));
        self.written += items.len() as u64;
        let mut dtoflow = self.dtoflow.clone();
        self.calls.spawn(async move {
            dtoflow.put_many(PutManyRequest { items, lease: None }).await?;
            Ok(())
        });
        if self.written / PROGRESS_RECORDS > self.told {
            self.told = self.written / PROGRESS_RECORDS;
            progress(format!("{} records written", self.written));
        }
        Ok(())
    }

    /// Writes what is left; how many records there were.
    pub(super) async fn finish(mut self) -> anyhow::Result<u64> {
        self.send().await?;
        while let Some(done) = self.calls.join_next().await {
            done??;
        }
        Ok(self.written)
    }
}

/// A store's name by its number.
pub(super) fn store(index: u32) -> String {
    format!("t/{TENANT}/s/S{index:04}")
}

/// An item's id by its number.
pub(super) fn item_id(item: u32) -> String {
    format!("I{item:05}")
}

/// A label's id, which no other store has.
pub(super) fn label_id(first: &str, (store, label): (u32, u32)) -> String {
    format!("{first}{store:04}{label:06}")
}

/// Stores over which [`link_child`] spreads its labels.
const CHILD_STORES: u32 = 200;

/// A link as a child of a split, whose label has that number: labels one after another lie in different stores.
pub(super) fn link_child(first: &str, label: u32) -> anyhow::Result<WireItem> {
    let id = label_id(first, (label % CHILD_STORES, label / CHILD_STORES));
    let urn = format!("{}/studiolinks/{id}", store(label % CHILD_STORES)).parse()?;
    Ok(split_item_to_wire(&SplitItem { dto_type: DtoType::StudioLink, target: Target::Record(urn), alias: None }))
}

/// Links of `labels` labels in each of `stores` stores to one design. Ids begin with `first`, so that designs share
/// stores without sharing labels. Items have the same ids in every store, as a retailer's do.
pub(super) async fn studio_links(
    loader: &mut Loader,
    design: &str,
    first: &str,
    (stores, labels): (u32, u32),
) -> anyhow::Result<()> {
    for store_index in 0..stores {
        let store = store(store_index);
        for label in 0..labels {
            let link = StudioLink { item_id: item_id(label % super::shop::ITEMS), design_id: design.to_owned() };
            let id = label_id(first, (store_index, label));
            loader.put(DtoType::StudioLink, format!("{store}/studiolinks/{id}"), &link).await?;
        }
    }
    Ok(())
}
