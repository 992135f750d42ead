//! A store with its queues and a clock that stands still.

use std::sync::{Arc, Mutex};

use cqs::{
    CqsStore,
    announce::WriteAuthority,
    memory::MemoryCqsStore,
    model::Exclusive,
    postgres::{PostgresCqsStore, Queues, TimeOf},
    sqlite::SqliteCqsStore,
    store::{CompleteAsk, ConfigureAsk, DequeueAsk, InjectAsk, SplitAsk},
};
use db::{
    postgres::PostgresDb,
    sqlite::{OpenOptions, SqliteDb},
};
use domain::{
    AliasName, Clock as _, DtoType, LeaseRef, ManualClock, Notification, Outcome, Parent, ParentShape, QueueName,
    Refusal, ServiceIdentity, ServiceName, SplitItem, Target, TenantId, Timestamp, TrackingId, Urn,
};
use prost::{Message, bytes::Bytes};
use proto::records::v1 as wire;
use tempfile::TempDir;

use crate::{
    DtoStore, StoreError,
    alias::AliasRules,
    memory::MemoryDtoStore,
    model::{
        AliasFound, AliasListAsk, AliasLook, Change, Content, Input, Page, ReadBatch, ReadKey, Stored, Touch,
        WriteBatch, WriteResult,
    },
    postgres::PostgresDtoStore,
    record::Record,
    sqlite::SqliteDtoStore,
};

pub(super) const RENDERER: ServiceName = ServiceName::EccImageRender;
pub(super) const MERGER: ServiceName = ServiceName::EslImageMerger;
pub(super) const EXPORTER: ServiceName = ServiceName::HardwareExporter;

pub(super) struct World {
    pub(super) store: Arc<dyn DtoStore>,
    pub(super) queues: Arc<dyn CqsStore>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) db: Option<SqliteDb>,
    pub(super) _place: Option<TempDir>,
    pub(super) postgres: Option<(PostgresDb, cluster::Database)>,
}

impl World {
    pub(super) fn memory() -> Self {
        let queues = MemoryCqsStore::new();
        let store = Arc::new(MemoryDtoStore::new(queues.clone()));
        Self { store, queues: Arc::new(queues), clock: clock(), db: None, _place: None, postgres: None }
    }

    pub(super) async fn sqlite() -> Self {
        let place = tempfile::tempdir().unwrap();
        let db = SqliteDb::open(OpenOptions::new(place.path().join("test.db"))).await.unwrap();
        Self {
            store: Arc::new(SqliteDtoStore::new(db.clone())),
            queues: Arc::new(SqliteCqsStore::new(db.clone())),
            clock: clock(),
            db: Some(db),
            _place: Some(place),
            postgres: None,
        }
    }

    pub(super) async fn postgres() -> Self {
        let place = cluster::Database::new().unwrap();
        let url = place.url().parse().unwrap();
        let db = PostgresDb::open(db::postgres::OpenOptions::new(url)).await.unwrap();
        let queues = Queues::new(TimeOf::Caller);
        Self {
            store: Arc::new(PostgresDtoStore::new(db.clone(), queues.clone())),
            queues: Arc::new(PostgresCqsStore::new(db.clone(), queues)),
            clock: clock(),
            db: None,
            _place: None,
            postgres: Some((db, place)),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Writes as the retailer's import does, without a lease.
    pub(super) async fn import(&self, changes: Vec<Change>) -> Result<Vec<WriteResult>, StoreError> {
        self.write(ServiceName::RecordImport, WriteAuthority::Unleased, changes).await
    }

    pub(super) async fn leased(&self, lease: &LeaseRef, changes: Vec<Change>) -> Result<Vec<WriteResult>, StoreError> {
        self.leased_by(RENDERER, lease, changes).await
    }

    pub(super) async fn leased_by(
        &self,
        service: ServiceName,
        lease: &LeaseRef,
        changes: Vec<Change>,
    ) -> Result<Vec<WriteResult>, StoreError> {
        self.write(service, WriteAuthority::Lease(lease.clone()), changes).await
    }

    async fn write(
        &self,
        writer: ServiceName,
        authority: WriteAuthority,
        changes: Vec<Change>,
    ) -> Result<Vec<WriteResult>, StoreError> {
        let tenant = changes[0].urn.tenant().clone();
        let batch = WriteBatch { tenant, writer: ServiceIdentity(writer), authority, changes };
        Ok(self.store.record_write(batch, self.now()).await?.results)
    }

    pub(super) async fn get(&self, urn: &str) -> Option<Stored> {
        self.get_newer(urn, 0).await
    }

    pub(super) async fn get_newer(&self, urn: &str, known_version: i64) -> Option<Stored> {
        let key = ReadKey { urn: urn.parse().unwrap(), known_version };
        let batch = ReadBatch { tenant: key.urn.tenant().clone(), keys: vec![key] };
        self.store.record_read(batch).await.unwrap().remove(0)
    }

    pub(super) async fn touch(&self, dto_type: DtoType, urns: &[&str], id: &str) -> Result<Vec<bool>, StoreError> {
        let urns: Vec<Urn> = urns.iter().map(|urn| urn.parse().unwrap()).collect();
        let touch =
            Touch { tenant: urns[0].tenant().clone(), dto_type, urns, sla: self.now(), tracking_id: tracking(id) };
        Ok(self.store.record_touch(touch, self.now()).await?.touched)
    }

    pub(super) async fn counts(&self, dto_type: DtoType, alias: AliasName, parents: &[&str]) -> Vec<i64> {
        let parents: Vec<Parent> = parents.iter().map(|urn| Parent::from(&urn.parse::<Urn>().unwrap())).collect();
        self.store.alias_count(look(dto_type, alias, &parents[0].tenant), parents).await.unwrap()
    }

    /// Every record under the parents, in pages of that size.
    pub(super) async fn list(
        &self,
        (dto_type, alias): (DtoType, AliasName),
        parents: &[&str],
        limit: usize,
    ) -> Vec<(usize, String)> {
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let page = self.page((dto_type, alias), parents, (after, limit)).await;
            assert!(page.entries.len() <= limit);
            after =
                page.entries.last().map(|last| crate::model::AliasCursor { parent: last.parent, id: last.id.clone() });
            listed.extend(page.entries.into_iter().map(|found| (found.parent, found.id.to_string())));
            if !page.more {
                return listed;
            }
        }
    }

    pub(super) async fn page(
        &self,
        (dto_type, alias): (DtoType, AliasName),
        parents: &[&str],
        (after, limit): (Option<crate::model::AliasCursor>, usize),
    ) -> Page<AliasFound> {
        let parents: Vec<Parent> = parents.iter().map(|urn| Parent::from(&urn.parse::<Urn>().unwrap())).collect();
        let look = look(dto_type, alias, &parents[0].tenant);
        self.store.alias_list(AliasListAsk { look, parents, after, limit }).await.unwrap()
    }

    /// Makes the renderer's queue: told of links, splits models.
    pub(super) async fn renderers_queue(&self) {
        let shape = ParentShape { dto_type: DtoType::EccLink, alias: Some(AliasName::ByEccModel) };
        self.queue(RENDERER, DtoType::EccLink, vec![shape]).await;
    }

    /// Makes the merger's queue: told of the renderer's pictures.
    pub(super) async fn mergers_queue(&self) {
        self.queue(MERGER, DtoType::EccEslImage, Vec::new()).await;
    }

    /// Makes the exporter's queue: told of the merger's pictures.
    pub(super) async fn exporters_queue(&self) {
        self.queue(EXPORTER, DtoType::EslImage, Vec::new()).await;
    }

    async fn queue(&self, service: ServiceName, told_of: DtoType, shapes: Vec<ParentShape>) {
        let (queue, subscriptions) = (service.queue().unwrap(), vec![told_of]);
        let ask = ConfigureAsk { queue, subscriptions, shapes, exclusive: Exclusive::No };
        self.queues.configure_queue(ask).await.unwrap();
    }

    /// Leases what is next in the renderer's queue.
    pub(super) async fn lease(&self) -> Option<(LeaseRef, Vec<Notification>)> {
        self.lease_of(RENDERER).await
    }

    /// Leases what is next in that service's queue.
    pub(super) async fn lease_of(&self, owner: ServiceName) -> Option<(LeaseRef, Vec<Notification>)> {
        let queue = owner.queue().unwrap();
        let ask = DequeueAsk {
            queue: queue.clone(),
            owner,
            worker_id: "w".to_owned(),
            max_items: 100,
            lease_ms: 60_000,
            tally: Arc::new(Mutex::default()),
        };
        let (lease, notifications) = self.queues.dequeue(ask, self.now()).await.unwrap().lease?;
        Some((LeaseRef { queue, generation: lease.generation }, notifications))
    }

    pub(super) async fn complete(&self, lease: &LeaseRef, notifications: &[Notification]) {
        let outcomes = notifications.iter().map(|notification| (notification.id, Outcome::Done)).collect();
        let ask = CompleteAsk { lease: lease.clone(), outcomes, jitter: 0 };
        self.queues.complete(ask, self.now()).await.unwrap();
    }

    /// Leases and completes everything; gives the records' URNs in order.
    pub(super) async fn drain(&self) -> Vec<String> {
        let mut drained = Vec::new();
        while let Some((lease, notifications)) = self.lease().await {
            self.complete(&lease, &notifications).await;
            drained.extend(notifications.iter().map(|notification| notification.item.target.urn().to_string()));
        }
        drained
    }

    /// Opens the operation `id` over model M of store S and splits it into those labels' links.
    pub(super) async fn operation(&self, id: &str, labels: &[&str]) {
        let parent: Urn = "t/T/s/S/eccmodels/M".parse().unwrap();
        let item = SplitItem {
            dto_type: DtoType::EccLink,
            target: Target::Parent(parent),
            alias: Some(AliasName::ByEccModel),
        };
        self.queues
            .self_enqueue(
                InjectAsk {
                    service: RENDERER,
                    queue: queue(),
                    items: vec![item],
                    reason: "a fixed layout".parse().unwrap(),
                    tracking_id: tracking(id),
                    sla: None,
                    sla_is_default: true,
                    operator_subject: None,
                    trigger: String::new(),
                    scope: None,
                    terms: cqs::model::Terms::default(),
                    approval: None,
                    request_digest: String::new(),
                    check_only: false,
                },
                self.now(),
            )
            .await
            .unwrap();
        let (lease, parents) = self.lease().await.expect("the parent waits");
        assert!(parents[0].item.target.is_parent());
        let children = labels
            .iter()
            .map(|label| SplitItem { dto_type: DtoType::EccLink, target: Target::Record(link_urn(label)), alias: None })
            .collect();
        let ask = SplitAsk { lease, id: parents[0].id, children, next_cursor: String::new(), sla: None };
        self.queues.re_enqueue(ask, self.now()).await.unwrap();
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_ms(1_800_000_000_000)))
}

fn look(dto_type: DtoType, alias: AliasName, tenant: &TenantId) -> AliasLook {
    AliasLook { tenant: tenant.clone(), dto_type, alias }
}

pub(super) fn queue() -> QueueName {
    RENDERER.queue().unwrap()
}

pub(super) fn tracking(id: &str) -> TrackingId {
    id.parse().unwrap()
}

pub(super) fn link_urn(label: &str) -> Urn {
    format!("t/T/s/S/ecclinks/{label}").parse().unwrap()
}

pub(super) fn link(item: &str, model: &str) -> Bytes {
    let record = wire::EccLink { item_id: item.to_owned(), model_id: model.to_owned(), ..wire::EccLink::default() };
    record.encode_to_vec().into()
}

pub(super) fn studio_link(item: &str, design: &str) -> Bytes {
    wire::StudioLink { item_id: item.to_owned(), design_id: design.to_owned() }.encode_to_vec().into()
}

pub(super) fn model(layout: &str) -> Bytes {
    wire::EccModel { layout: layout.to_owned(), name: String::new() }.encode_to_vec().into()
}

pub(super) fn design(svg: &str) -> Bytes {
    wire::Design { svg: svg.to_owned(), mappings: "{}".to_owned(), name: String::new() }.encode_to_vec().into()
}

pub(super) fn image(pixel: u8) -> Bytes {
    let record = wire::SourceEslImage {
        picture: vec![pixel; 100].into(),
        digest: vec![pixel; 32].into(),
        width: 296,
        height: 128,
        palette: wire::Palette::Bw.into(),
    };
    record.encode_to_vec().into()
}

fn change(urn: &str, payload: Option<Bytes>) -> Change {
    let urn: Urn = urn.parse().unwrap();
    let (Urn::StoreRecord(_, _, collection, _) | Urn::TenantRecord(_, collection, _)) = &urn else {
        unreachable!("tests write records only")
    };
    let dto_type = collection.dto_type();
    let content = match payload {
        None => Content::Delete,
        Some(payload) => {
            let record = Record::decode(dto_type, &payload).unwrap();
            Content::Put { aliases: AliasRules::CURRENT.aliases(dto_type, &urn, &record), payload }
        }
    };
    Change { dto_type, urn, content, inputs: Vec::new(), sla: Timestamp::from_ms(1_800_000_000_000), tracking_id: None }
}

pub(super) fn put(urn: &str, payload: Bytes) -> Change {
    change(urn, Some(payload))
}

pub(super) fn delete(urn: &str) -> Change {
    change(urn, None)
}

impl Change {
    pub(super) fn tracked(mut self, id: &str) -> Self {
        self.tracking_id = Some(tracking(id));
        self
    }

    pub(super) fn of_input(mut self, urn: &str, version: i64) -> Self {
        self.inputs.push(Input { urn: urn.parse().unwrap(), version });
        self
    }
}

/// The refusal a step must have ended with.
pub(super) fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Refusal {
    match result {
        Err(StoreError::Refused(refusal)) => refusal,
        other => unreachable!("must be refused: {other:?}"),
    }
}
