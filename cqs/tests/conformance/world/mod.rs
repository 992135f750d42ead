//! One platform under test, behind the same few verbs whichever way it is reached.

mod gate;
mod progress;
mod words;

use std::sync::{Arc, Mutex};

use cqs::{
    AuditFilter, CqsStore, StoreError, Wakeups,
    announce::{Announcement, LeaseLane, Woken},
    memory::{self, MemoryCqsStore},
    model::{AuditRow, Exclusive},
    policy::choice::Tally,
    postgres::{self, PostgresCqsStore, Queues, TimeOf},
    sqlite::{self, SqliteCqsStore},
    store::{CompleteAsk, ConfigureAsk, DequeueAsk, FurtherAsk, InjectAsk, SplitAsk},
};
use db::{
    postgres::PostgresDb,
    sqlite::{OpenOptions, SqliteDb},
};
use domain::{
    Clock, DtoType, ErrorCode, LeaseRef, ManualClock, Notification, Outcome, ParentShape, QueueName, Refusal,
    ServiceName, TenantId, Timestamp, TrackingId,
};
use proto::{
    CqsClient, cqs::v1 as wire, notification_from_wire, outcome_to_wire, refusal_from_status, shape_to_wire,
    split_item_to_wire, timestamp_from_wire, timestamp_to_wire,
};

pub use gate::Gate;
pub use progress::Progress;
use progress::{progress_from_report, progress_from_wire};
pub use words::{failed, inject_to_wire, into, links, parent, record, refresh, retry, shape, told};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    Memory,
    Sqlite,
    Postgres,
    /// The client, over SQLite.
    Grpc,
    /// The client, over PostgreSQL.
    GrpcPostgres,
}

pub const ECC: &str = "ecc-image-render-service";
pub const STUDIO: &str = "studio-renderer";
pub const MERGER: &str = "esl-image-merger";
pub const EXPORTER: &str = "hardware-exporter";
/// Where the clock starts.
pub const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const LEASE_MS: i64 = MINUTE;

enum Engine {
    Memory(MemoryCqsStore),
    Sqlite(SqliteDb, tempfile::TempDir),
    Postgres(PostgresDb, Queues, cluster::Database),
}

pub struct World {
    pub clock: Arc<ManualClock>,
    pub store: Arc<dyn CqsStore>,
    engine: Engine,
    transport: Option<Gate>,
    tallies: std::collections::HashMap<String, Arc<Mutex<Tally>>>,
    pub wakeups: Wakeups,
}

/// Makes a good request a wrong or another one.
pub type Change<T> = fn(&mut T);

/// A lease with its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leased {
    pub lease: LeaseRef,
    pub rows: Vec<Notification>,
}

impl Leased {
    pub fn ids(&self) -> Vec<i64> {
        self.rows.iter().map(|row| row.id).collect()
    }

    pub fn urns(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.item.target.urn().to_string()).collect()
    }
}

fn owner(queue: &str) -> ServiceName {
    queue.parse().unwrap()
}

pub fn refusal(error: StoreError) -> Refusal {
    match error {
        StoreError::Refused(refusal) => refusal,
        fault => panic!("a fault, not a refusal: {fault:?}"),
    }
}

pub async fn open(dir: &tempfile::TempDir) -> SqliteDb {
    SqliteDb::open(OpenOptions::new(dir.path().join("test.db"))).await.unwrap()
}

pub async fn open_postgres(place: &cluster::Database) -> PostgresDb {
    PostgresDb::open(db::postgres::OpenOptions::new(place.url().parse().unwrap())).await.unwrap()
}

impl World {
    /// A platform with the four queues of the domain.
    pub async fn new(port: Port) -> Self {
        let mut world = Self::empty(port).await;
        for (queue, subscriptions, shapes, exclusive) in [
            (
                ECC,
                vec![DtoType::EccLink, DtoType::StoreEsl, DtoType::StoreItemValues],
                vec!["ecclink.v1 by_eccmodel", "ecclink.v1 by_store"],
                Exclusive::No,
            ),
            (
                STUDIO,
                vec![DtoType::StudioLink, DtoType::Design],
                vec!["studiolink.v1", "studiolink.v1 by_design"],
                Exclusive::No,
            ),
            (MERGER, vec![DtoType::EccEslImage, DtoType::StudioEslImage], vec![], Exclusive::No),
            (EXPORTER, vec![DtoType::EslImage], vec!["eslimage.v1 by_store"], Exclusive::ByStore),
        ] {
            let shapes = shapes.iter().map(|text| shape(text)).collect();
            assert!(world.configure(queue, subscriptions, shapes, exclusive).await.unwrap());
        }
        world
    }

    pub async fn empty(port: Port) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let wakeups = Wakeups::default();
        let (store, engine): (Arc<dyn CqsStore>, Engine) = match port {
            Port::Memory => {
                let store = MemoryCqsStore::new();
                (Arc::new(store.clone()), Engine::Memory(store))
            }
            Port::Sqlite | Port::Grpc => {
                let dir = tempfile::tempdir().unwrap();
                let db = open(&dir).await;
                (Arc::new(SqliteCqsStore::new(db.clone())), Engine::Sqlite(db, dir))
            }
            Port::Postgres | Port::GrpcPostgres => {
                let place = cluster::Database::new().unwrap();
                let (db, queues) = (open_postgres(&place).await, Queues::new(TimeOf::Caller));
                let store = PostgresCqsStore::new(db.clone(), queues.clone());
                (Arc::new(store), Engine::Postgres(db, queues, place))
            }
        };
        let transport =
            matches!(port, Port::Grpc | Port::GrpcPostgres).then(|| Gate::new(Arc::clone(&store), &clock, &wakeups));
        Self { clock, store, engine, transport, tallies: std::collections::HashMap::default(), wakeups }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The database under a SQLite twin.
    pub fn db(&self) -> Option<SqliteDb> {
        match &self.engine {
            Engine::Memory(_) | Engine::Postgres(..) => None,
            Engine::Sqlite(db, _) => Some(db.clone()),
        }
    }

    /// A gate in front of this platform's store, for what only a server does.
    pub fn gate(&self) -> Gate {
        self.transport.clone().unwrap_or_else(|| Gate::new(Arc::clone(&self.store), &self.clock, &self.wakeups))
    }

    /// The process dies and starts again.
    pub async fn restart(&mut self) {
        if let Engine::Sqlite(db, dir) = &mut self.engine {
            db.close().await.unwrap();
            let fresh = open(dir).await;
            *db = fresh.clone();
            self.store = Arc::new(SqliteCqsStore::new(fresh));
        }
        if let Engine::Postgres(db, queues, place) = &mut self.engine {
            db.close().await;
            *db = open_postgres(place).await;
            *queues = Queues::new(TimeOf::Caller);
            self.store = Arc::new(PostgresCqsStore::new(db.clone(), queues.clone()));
        }
        if self.transport.is_some() {
            self.transport = Some(Gate::new(Arc::clone(&self.store), &self.clock, &self.wakeups));
        }
        self.tallies.clear();
        self.store.end_all_leases(self.now()).await.unwrap();
    }

    /// The gate, where this port is it.
    pub fn over_grpc(&self) -> Option<&Gate> {
        self.transport.as_ref()
    }

    fn client(&self, queue: &str) -> Option<CqsClient> {
        self.transport.as_ref().map(|gate| gate.client(owner(queue)))
    }

    pub async fn configure(
        &mut self,
        queue: &str,
        subscriptions: Vec<DtoType>,
        shapes: Vec<ParentShape>,
        exclusive: Exclusive,
    ) -> Result<bool, Refusal> {
        if let Some(mut client) = self.client(queue) {
            let request = wire::CreateOrConfigureQueueRequest {
                queue_name: queue.to_owned(),
                subscriptions: subscriptions
                    .iter()
                    .map(|dto_type| wire::Subscription { dto_type: dto_type.to_string() })
                    .collect(),
                shapes: shapes.into_iter().map(shape_to_wire).collect(),
                exclusive_by_store: exclusive == Exclusive::ByStore,
            };
            let answer = client.create_or_configure_queue(request).await;
            return answer.map(|answer| answer.into_inner().created).map_err(|status| refusal_from_status(&status));
        }
        let ask = ConfigureAsk { queue: queue.parse().unwrap(), subscriptions, shapes, exclusive };
        self.store.configure_queue(ask).await.map_err(refusal)
    }

    /// As DTOflow does it, in a unit of work of the engine.
    pub async fn announce(&self, told: Vec<Announcement>) -> Result<Woken, Refusal> {
        let now = self.now();
        let woken = match &self.engine {
            Engine::Memory(store) => {
                let mut unit = store.begin().await;
                let woken = memory::announce(&mut unit, &told, now).await;
                if woken.is_ok() {
                    unit.commit();
                }
                woken
            }
            Engine::Sqlite(db, _) => {
                db.write(move |conn| Box::pin(async move { sqlite::announce(conn, &told, now).await })).await
            }
            Engine::Postgres(db, queues, _) => {
                let queues = queues.clone();
                db.write(move |conn, _| {
                    let (queues, told) = (queues.clone(), told.clone());
                    Box::pin(async move { postgres::announce((conn, &queues), &told, now).await })
                })
                .await
            }
        };
        let woken = woken.map_err(refusal)?;
        self.wakeups.wake(&woken);
        Ok(woken)
    }

    pub async fn lease_check(&self, lease: &LeaseRef) -> Result<LeaseLane, Refusal> {
        let (lease, now) = (lease.clone(), self.now());
        let checked = match &self.engine {
            Engine::Memory(store) => memory::lease_check(&mut store.begin().await, &lease, now).await,
            Engine::Sqlite(db, _) => {
                db.write(move |conn| Box::pin(async move { sqlite::lease_check(conn, &lease, now).await })).await
            }
            Engine::Postgres(db, queues, _) => {
                let queues = queues.clone();
                db.write(move |conn, _| {
                    let (queues, lease) = (queues.clone(), lease.clone());
                    Box::pin(async move { postgres::lease_check((conn, &queues), &lease, now).await })
                })
                .await
            }
        };
        checked.map_err(refusal)
    }

    pub async fn is_operation(&self, tenant: &str, tracking_id: &str) -> bool {
        let (tenant, tracking_id): (TenantId, TrackingId) = (tenant.parse().unwrap(), tracking_id.parse().unwrap());
        let is = match &self.engine {
            Engine::Memory(store) => memory::is_operation(&mut store.begin().await, &tenant, &tracking_id).await,
            Engine::Sqlite(db, _) => {
                db.write(move |conn| Box::pin(async move { sqlite::is_operation(conn, &tenant, &tracking_id).await }))
                    .await
            }
            Engine::Postgres(db, queues, _) => {
                let queues = queues.clone();
                db.read(move |conn, _| {
                    Box::pin(async move { postgres::is_operation((conn, &queues), &tenant, &tracking_id).await })
                })
                .await
            }
        };
        is.unwrap()
    }

    /// Announces records by URN at an SLA, in their tenants' ordinary lanes.
    pub async fn write(&self, urns: &[&str], sla: Timestamp) {
        self.announce(urns.iter().map(|urn| told(urn, sla)).collect()).await.unwrap();
    }

    pub async fn dequeue(&mut self, queue: &str, max: usize) -> Option<Leased> {
        if let Some(mut client) = self.client(queue) {
            let request = wire::DequeueRequest {
                queue_name: queue.to_owned(),
                max_items: i32::try_from(max).unwrap(),
                wait_ms: 0,
                lease_ms: i32::try_from(LEASE_MS).unwrap(),
                worker_id: "w1".to_owned(),
                lease_generation: 0,
            };
            let answer = client.dequeue(request).await.unwrap().into_inner();
            let lease = answer.lease?;
            return Some(Leased {
                lease: LeaseRef { queue: queue.parse().unwrap(), generation: lease.generation },
                rows: answer.notifications.into_iter().map(|told| notification_from_wire(told).unwrap()).collect(),
            });
        }
        let name: QueueName = queue.parse().unwrap();
        let ask = DequeueAsk {
            queue: name.clone(),
            owner: owner(queue),
            worker_id: "w1".to_owned(),
            max_items: max,
            lease_ms: LEASE_MS,
            tally: Arc::clone(self.tallies.entry(queue.to_owned()).or_default()),
        };
        let found = self.store.dequeue(ask, self.now()).await.unwrap();
        let (lease, rows) = found.lease?;
        Some(Leased { lease: LeaseRef { queue: name, generation: lease.generation }, rows })
    }

    /// Further rows for the lease, and whether its holder is to give way.
    pub async fn further(&self, lease: &LeaseRef, max: usize) -> Result<(Leased, bool), Refusal> {
        if let Some(mut client) = self.client(lease.queue.as_str()) {
            let request = wire::DequeueRequest {
                queue_name: lease.queue.to_string(),
                max_items: i32::try_from(max).unwrap(),
                wait_ms: 0,
                lease_ms: i32::try_from(LEASE_MS).unwrap(),
                worker_id: "w1".to_owned(),
                lease_generation: lease.generation,
            };
            let answer = client.dequeue(request).await.map_err(|status| refusal_from_status(&status))?.into_inner();
            let lease = LeaseRef { generation: answer.lease.unwrap().generation, ..lease.clone() };
            let rows = answer.notifications.into_iter().map(|told| notification_from_wire(told).unwrap()).collect();
            return Ok((Leased { lease, rows }, answer.give_way));
        }
        let ask = FurtherAsk { lease: lease.clone(), max_items: max };
        let found = self.store.further(ask, self.now()).await.map_err(refusal)?;
        let lease = LeaseRef { generation: found.lease.generation, ..lease.clone() };
        Ok((Leased { lease, rows: found.rows }, found.give_way))
    }

    pub async fn complete(&self, lease: &LeaseRef, outcomes: Vec<(i64, Outcome)>) -> Result<i32, Refusal> {
        if let Some(mut client) = self.client(lease.queue.as_str()) {
            let request = wire::CompleteRequest {
                queue_name: lease.queue.to_string(),
                lease_generation: lease.generation,
                outcomes: outcomes.iter().map(|(id, outcome)| outcome_to_wire(*id, outcome)).collect(),
            };
            let answer = client.complete(request).await.map_err(|status| refusal_from_status(&status))?;
            return Ok(answer.into_inner().dead);
        }
        let ask = CompleteAsk { lease: lease.clone(), outcomes, jitter: 42 };
        Ok(self.store.complete(ask, self.now()).await.map_err(refusal)?.dead)
    }

    /// Completes every row of a lease alike.
    pub async fn complete_all(&self, leased: &Leased, outcome: &Outcome) {
        let outcomes = leased.rows.iter().map(|row| (row.id, outcome.clone())).collect();
        self.complete(&leased.lease, outcomes).await.unwrap();
    }

    pub async fn extend(&self, lease: &LeaseRef, lease_ms: i64) -> Result<(), Refusal> {
        if let Some(mut client) = self.client(lease.queue.as_str()) {
            let request = wire::ExtendLeaseRequest {
                queue_name: lease.queue.to_string(),
                lease_generation: lease.generation,
                lease_ms: i32::try_from(lease_ms).unwrap(),
            };
            return client.extend_lease(request).await.map(drop).map_err(|status| refusal_from_status(&status));
        }
        let now = self.now();
        let extended = self.store.extend_lease(lease.clone(), now.plus_ms(lease_ms), now).await.map_err(refusal);
        if extended.as_ref().is_err_and(|refused| refused.code == ErrorCode::StaleLease) {
            // As the server does.
            self.store.lease_outlived(lease.clone(), now).await.unwrap();
        }
        extended
    }

    /// (enqueued, coalesced, replayed)
    pub async fn split(&self, ask: SplitAsk) -> Result<(i64, i64, bool), Refusal> {
        if let Some(mut client) = self.client(ask.lease.queue.as_str()) {
            let request = wire::ReEnqueueRequest {
                queue_name: ask.lease.queue.to_string(),
                lease_generation: ask.lease.generation,
                notification_id: ask.id,
                items: ask.children.iter().map(split_item_to_wire).collect(),
                next_cursor: ask.next_cursor,
                sla_timestamp: ask.sla.map(timestamp_to_wire),
            };
            let answer = client.re_enqueue(request).await.map_err(|status| refusal_from_status(&status))?;
            let answer = answer.into_inner();
            return Ok((i64::from(answer.items_enqueued), i64::from(answer.items_coalesced), answer.replayed));
        }
        let done = self.store.re_enqueue(ask, self.now()).await.map_err(refusal)?;
        Ok((done.enqueued, done.coalesced, done.replayed))
    }

    /// (items enqueued, replayed, accepted at, SLA)
    pub async fn inject(&self, ask: InjectAsk) -> Result<(i64, bool, Timestamp, Timestamp), Refusal> {
        if let Some(mut client) = self.client(ask.service.as_str()) {
            let answer = client.self_enqueue(inject_to_wire(&ask)).await;
            let answer = answer.map_err(|status| refusal_from_status(&status))?.into_inner();
            return Ok((
                i64::from(answer.items_enqueued),
                answer.replayed,
                timestamp_from_wire("accepted_at", &answer.accepted_at.unwrap()).unwrap(),
                timestamp_from_wire("sla_timestamp", &answer.sla_timestamp.unwrap()).unwrap(),
            ));
        }
        let done = self.store.self_enqueue(ask, self.now()).await.map_err(refusal)?;
        Ok((done.items_enqueued, done.replayed, done.accepted_at, done.sla))
    }

    /// The operation of tenant T.
    pub async fn progress(&self, tracking_id: &str) -> Option<Progress> {
        if let Some(gate) = &self.transport {
            let request = wire::GetOperationRequest { tenant_id: "T".to_owned(), tracking_id: tracking_id.to_owned() };
            let answer = gate.client(ServiceName::OperatorGateway).get_operation(request).await;
            return answer.ok().map(|answer| progress_from_wire(answer.into_inner()));
        }
        let found = self.store.operation("T".parse().unwrap(), tracking_id.parse().unwrap(), self.now()).await;
        found.unwrap().map(progress_from_report)
    }

    /// A control action by Ann on an operation of tenant T, through a gate in front of whichever store this is.
    pub async fn control(
        &self,
        tracking_id: &str,
        action: wire::control_operation_request::Action,
    ) -> Result<wire::ControlOperationResponse, Refusal> {
        self.control_as("ann@example", tracking_id, action).await
    }

    /// Likewise, by someone else.
    pub async fn control_as(
        &self,
        operator_subject: &str,
        tracking_id: &str,
        action: wire::control_operation_request::Action,
    ) -> Result<wire::ControlOperationResponse, Refusal> {
        let request = wire::ControlOperationRequest {
            tenant_id: "T".to_owned(),
            tracking_id: tracking_id.to_owned(),
            operator_subject: operator_subject.to_owned(),
            reason: "INC-7: labels flicker".to_owned(),
            action: Some(action),
        };
        let answer = self.gate().client(ServiceName::OperatorGateway).control_operation(request).await;
        answer.map(tonic::Response::into_inner).map_err(|status| refusal_from_status(&status))
    }

    /// The operation of tenant T as the gateway sees it.
    pub async fn seen(&self, tracking_id: &str) -> wire::Operation {
        let request = wire::GetOperationRequest { tenant_id: "T".to_owned(), tracking_id: tracking_id.to_owned() };
        self.gate().client(ServiceName::OperatorGateway).get_operation(request).await.unwrap().into_inner()
    }

    /// Upkeep until nothing is left to be done.
    pub async fn upkeep(&self) {
        while self.store.maintain(self.now()).await.unwrap().1 {}
        while self.store.clear(self.now()).await.unwrap() {}
    }

    pub async fn audit(&self, tracking_id: Option<&str>) -> Vec<AuditRow> {
        let filter = AuditFilter {
            tenants: vec!["T".parse().unwrap()],
            tracking_id: tracking_id.map(|id| id.parse().unwrap()),
            operator_subject: None,
            action: None,
            outcome: None,
            since: None,
            until: None,
            before: i64::MAX,
            limit: 100,
        };
        self.store.audit(filter).await.unwrap().into_iter().map(|sealed| sealed.row).collect()
    }
}
