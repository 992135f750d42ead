//! The demo tenant's first start: load, wait until every label is exported and nothing is left to do, then write version
//! 2 of one model, which only evicts. Cut short anywhere, the next start goes on.

use std::time::Duration;

use anyhow::Context as _;
use domain::{DtoType, ServiceName, Urn};
use prost::Message as _;
use proto::{
    DtoFlowClient,
    dtoflow::v1::{GetKey, GetManyRequest, ListByAliasRequest},
    dtoflow_client,
    records::v1::{DeliveryState, StoreEslStatus},
};
use tokio::time::Instant;

use super::Dev;
use crate::{
    data_dir::MIB,
    demo::{self, hardware, shops},
    records::{Record, RecordWriter},
};

/// Between two looks at the labels.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long nothing may change before what is missing counts as failed.
const STANDSTILL_MAX: Duration = Duration::from_mins(1);

/// The same with simulated hardware, which confirms what it shows some time later.
const SIMULATED_STANDSTILL_MAX: Duration = Duration::from_mins(4);

/// Room the demo tenant needs on the disk: database, its log and the pictures take some 40 MiB.
const SPACE_MIN_BYTES: u64 = 64 * MIB;

/// How far the labels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Labels with an exported picture.
    pub shown: usize,
    /// All labels.
    pub labels: usize,
    /// Notifications that wait or are leased in any queue.
    pub backlog: i64,
}

/// What became of the demo tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoState {
    /// Loaded, exported, and version 2 written, now.
    Prepared(Progress),
    /// Prepared by an earlier start; nothing was written.
    Kept,
    /// A shutdown came first; the next start goes on.
    CutShort(Progress),
}

impl Dev {
    /// Prepares the demo tenant unless an earlier start did. Reports its progress to `seen`.
    pub async fn prepare_demo(&self, seen: impl FnMut(Progress)) -> anyhow::Result<DemoState> {
        let model = demo::model_version_2()?;
        // Only the demo's own second write gives the model a second version, so its version says how far it came.
        if self.version(&model.urn).await? >= 2 {
            self.hang_labels().await?;
            return Ok(DemoState::Kept);
        }
        self.dir().require_space(SPACE_MIN_BYTES)?;
        self.write(demo::records()?).await?;
        self.hang_labels().await?;
        let progress = self.wait_until_exported(seen).await?;
        if self.shutdown().soft.is_cancelled() {
            return Ok(DemoState::CutShort(progress));
        }
        self.write(vec![model]).await?;
        self.wait_until_idle().await?;
        Ok(DemoState::Prepared(progress))
    }

    /// Hangs the labels on the hardware of this start. Simulated access points listen elsewhere at every start.
    async fn hang_labels(&self) -> anyhow::Result<()> {
        if let Some(simulated) = &self.simulated {
            for (shop, address) in simulated.addresses() {
                self.write(hardware::hung(shop, address)?).await?;
            }
            return Ok(());
        }
        for shop in shops::SHOPS {
            let urn = Urn::record(DtoType::AccessPoint, &hardware::access_point_urn(shop.id))?;
            if self.version_of(DtoType::AccessPoint, &urn).await? > 0 {
                self.write(hardware::taken_down(shop)?).await?;
            }
        }
        Ok(())
    }

    fn dtoflow_as(&self, service: ServiceName) -> anyhow::Result<DtoFlowClient> {
        Ok(dtoflow_client(self.transport_as(service).with_context(|| format!("{service} has no key"))?))
    }

    /// Version of a model; 0 when absent.
    async fn version(&self, urn: &Urn) -> anyhow::Result<i64> {
        self.version_of(DtoType::EccModel, urn).await
    }

    /// Version of a record; 0 when absent.
    async fn version_of(&self, dto_type: DtoType, urn: &Urn) -> anyhow::Result<i64> {
        let key = GetKey { dto_type: dto_type.to_string(), dto_id: urn.to_string(), known_version: 0 };
        let answer = self.dtoflow_as(ServiceName::RecordImport)?.get_many(GetManyRequest { keys: vec![key] }).await?;
        Ok(answer.into_inner().dtos.first().map_or(0, |dto| dto.version))
    }

    async fn write(&self, records: Vec<Record>) -> anyhow::Result<()> {
        let mut writer = RecordWriter::new(self.dtoflow_as(ServiceName::RecordImport)?, None);
        for record in records {
            writer.push(record).await.context("the demo tenant was not written")?;
        }
        writer.finish().await.context("the demo tenant was not written")?;
        Ok(())
    }

    async fn wait_until_exported(&self, mut seen: impl FnMut(Progress)) -> anyhow::Result<Progress> {
        let mut last = Progress::default();
        let mut changed = Instant::now();
        loop {
            let progress = self.progress().await?;
            if progress != last {
                changed = Instant::now();
                last = progress;
                seen(progress);
            }
            let idle = progress.backlog == 0;
            // Nothing waits any more: what is not shown by now has failed, and the log says why.
            let standstill_max = if self.simulated.is_some() { SIMULATED_STANDSTILL_MAX } else { STANDSTILL_MAX };
            if idle || changed.elapsed() > standstill_max || self.shutdown().soft.is_cancelled() {
                return Ok(progress);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn wait_until_idle(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        while self.platform.backlog().await? > 0
            && started.elapsed() < STANDSTILL_MAX
            && !self.shutdown().soft.is_cancelled()
        {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    async fn progress(&self) -> anyhow::Result<Progress> {
        // The backlog first: a label exported between the two looks is counted rather than missed.
        let backlog = self.platform.backlog().await?;
        let mut shown = 0;
        for store in demo::stores() {
            shown += self.exported_labels(store).await?;
        }
        Ok(Progress { shown, labels: demo::labels() as usize, backlog })
    }

    /// Labels of a demo store whose picture is confirmed.
    async fn exported_labels(&self, store: &str) -> anyhow::Result<usize> {
        let mut dtoflow = self.dtoflow_as(ServiceName::OperatorGateway)?;
        let ask = ListByAliasRequest {
            dto_type: DtoType::StoreEslStatus.to_string(),
            alias_name: domain::AliasName::ByStore.to_string(),
            parent_ids: vec![format!("t/{}/s/{store}", demo::TENANT)],
            page_size: i32::try_from(demo::LABELS_PER_STORE)?,
            page_token: String::new(),
        };
        let listed = dtoflow.list_by_alias(ask).await?.into_inner().entries;
        if listed.is_empty() {
            return Ok(0);
        }
        let key = |dto_id| GetKey { dto_type: DtoType::StoreEslStatus.to_string(), dto_id, known_version: 0 };
        let keys = listed.into_iter().map(|entry| key(entry.dto_id)).collect();
        let statuses = dtoflow.get_many(GetManyRequest { keys }).await?.into_inner().dtos;
        let confirmed = |payload: prost::bytes::Bytes| {
            StoreEslStatus::decode(payload).is_ok_and(|status| status.state() == DeliveryState::Confirmed)
        };
        Ok(statuses.into_iter().filter(|dto| dto.exists && confirmed(dto.payload.clone())).count())
    }
}
