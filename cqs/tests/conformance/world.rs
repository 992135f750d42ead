//! One platform under test, behind the same few verbs whichever way it is reached.

use std::sync::{Arc, Mutex};

use cqs::{
    AuditFilter, CqsServer, CqsServerParts, CqsStore, StoreError, Wakeups,
    announce::{Announce, Announcement, LeaseLane, Woken},
    memory::{self, MemoryCqsStore},
    model::{AuditRow, Counts, Exclusive, FailureGroup, OperationReport, QueueCounts, Terms},
    policy::choice::Tally,
    postgres::{self, PostgresCqsStore, Queues, TimeOf},
    sqlite::{self, SqliteCqsStore},
    store::{CompleteAsk, ConfigureAsk, DequeueAsk, InjectAsk, SplitAsk},
};
use daemon::{
    identity::{Registry, ServiceCredentials, ServiceKey, Verifier},
    serve::in_process,
};
use db::{
    postgres::PostgresDb,
    sqlite::{OpenOptions, SqliteDb},
};
use domain::{
    Clock, DtoType, LeaseRef, ManualClock, Notification, Outcome, ParentShape, QueueName, Refusal, SeededIds,
    ServiceName, SplitItem, Target, TenantId, Timestamp, TrackingId,
};
use proto::{
    CqsClient, Transport, cqs::v1 as wire, cqs_client, notification_from_wire, outcome_to_wire, refusal_from_status,
    shape_to_wire, split_item_to_wire, timestamp_from_wire, timestamp_to_wire,
};

/// How the platform is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    Memory,
    Sqlite,
    Postgres,
    Grpc,
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

/// An operation's progress, from whichever side it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub queues: Vec<QueueCounts>,
    pub failures: Vec<FailureGroup>,
    pub finished_at: Option<Timestamp>,
    pub items_enqueued: i64,
    pub sla: Timestamp,
}

impl Progress {
    pub fn of(&self, queue: &str) -> QueueCounts {
        self.queues.iter().find(|counts| counts.queue.as_str() == queue).cloned().unwrap_or(QueueCounts {
            queue: queue.parse().unwrap(),
            labels: Counts::default(),
            parents: Counts::default(),
            labels_retried: 0,
            parents_retried: 0,
        })
    }

    pub fn assert_balanced(&self) {
        for counts in &self.queues {
            assert!(counts.labels.balanced(), "{counts:?}");
            assert!(counts.parents.balanced(), "{counts:?}");
        }
    }
}

/// The in-process server with everybody's keys.
#[derive(Clone)]
pub struct Gate {
    keys: Vec<(ServiceName, ServiceKey)>,
    transport: Transport,
    clock: Arc<ManualClock>,
}

impl Gate {
    pub fn new(store: Arc<dyn CqsStore>, clock: &Arc<ManualClock>, wakeups: &Wakeups) -> Self {
        let keys: Vec<_> = ServiceName::ALL.iter().map(|name| (*name, ServiceKey::generate().unwrap())).collect();
        let public: Vec<_> = keys.iter().map(|(name, key)| (*name, key.public().clone())).collect();
        let registry = Registry::parse(&Registry::standard_document(&public).unwrap()).unwrap();
        let parts = CqsServerParts {
            clock: Arc::<ManualClock>::clone(clock),
            ids: Arc::new(SeededIds::new(7)),
            wakeups: wakeups.clone(),
        };
        let service = CqsServer::new(store, parts).into_service();
        let verifier = Verifier::new(Arc::new(registry), Arc::<ManualClock>::clone(clock));
        let transport = in_process(tonic::service::Routes::new(service), verifier);
        Self { keys, transport, clock: Arc::clone(clock) }
    }

    pub fn client(&self, service: ServiceName) -> CqsClient {
        let (_, key) = self.keys.iter().find(|(name, _)| *name == service).unwrap();
        let credentials = ServiceCredentials::new(service, key.clone(), Arc::<ManualClock>::clone(&self.clock));
        cqs_client(credentials.attach(self.transport.clone()))
    }

    pub fn anonymous(&self) -> CqsClient {
        cqs_client(self.transport.clone())
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
            Port::Postgres => {
                let place = cluster::Database::new().unwrap();
                let (db, queues) = (open_postgres(&place).await, Queues::new(TimeOf::Caller));
                let store = PostgresCqsStore::new(db.clone(), queues.clone());
                (Arc::new(store), Engine::Postgres(db, queues, place))
            }
        };
        let transport = (port == Port::Grpc).then(|| Gate::new(Arc::clone(&store), &clock, &wakeups));
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
            if self.transport.is_some() {
                self.transport = Some(Gate::new(Arc::clone(&self.store), &self.clock, &self.wakeups));
            }
        }
        if let Engine::Postgres(db, queues, place) = &mut self.engine {
            db.close().await;
            *db = open_postgres(place).await;
            *queues = Queues::new(TimeOf::Caller);
            self.store = Arc::new(PostgresCqsStore::new(db.clone(), queues.clone()));
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
        self.store.extend_lease(lease.clone(), now.plus_ms(lease_ms), now).await.map_err(refusal)
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

fn progress_from_report(report: OperationReport) -> Progress {
    Progress {
        queues: report.queues,
        failures: report.failures,
        finished_at: report.operation.finished_at,
        items_enqueued: report.operation.items_enqueued,
        sla: report.operation.sla,
    }
}

fn progress_from_wire(wire: wire::Operation) -> Progress {
    let time = |at: Option<prost_types::Timestamp>| at.map(|at| timestamp_from_wire("at", &at).unwrap());
    Progress {
        queues: wire
            .queues
            .iter()
            .map(|counts| QueueCounts {
                queue: counts.queue_name.parse().unwrap(),
                labels: Counts {
                    enqueued: counts.enqueued,
                    done: counts.done,
                    unchanged: counts.unchanged,
                    failed: counts.failed,
                    coalesced: counts.coalesced,
                    cancelled: counts.cancelled,
                    waiting: counts.waiting,
                    leased: counts.leased,
                },
                parents: Counts {
                    enqueued: counts.parents_enqueued,
                    done: counts.parents_done,
                    unchanged: 0,
                    failed: counts.parents_failed,
                    coalesced: counts.parents_coalesced,
                    cancelled: counts.parents_cancelled,
                    waiting: counts.parents_waiting,
                    leased: counts.parents_leased,
                },
                labels_retried: counts.retried,
                parents_retried: counts.parents_retried,
            })
            .collect(),
        failures: wire
            .failures
            .into_iter()
            .map(|group| FailureGroup {
                queue: group.queue_name.parse().unwrap(),
                cause: group.cause,
                count: group.count,
                retried: group.retried,
                sample_urn: group.sample_urn,
            })
            .collect(),
        finished_at: time(wire.finished_at),
        items_enqueued: i64::from(wire.items_enqueued),
        sla: time(wire.sla_timestamp).unwrap(),
    }
}

/// The request that means what `ask` means.
pub fn inject_to_wire(ask: &InjectAsk) -> wire::SelfEnqueueRequest {
    wire::SelfEnqueueRequest {
        queue_name: ask.queue.to_string(),
        items: ask.items.iter().map(split_item_to_wire).collect(),
        reason: ask.reason.to_string(),
        tracking_id: ask.tracking_id.to_string(),
        sla_timestamp: ask.sla.map(timestamp_to_wire),
        operator_subject: ask.operator_subject.as_ref().map(ToString::to_string).unwrap_or_default(),
        trigger: ask.trigger.clone(),
        scope: ask.scope.as_ref().map(ToString::to_string).unwrap_or_default(),
        sla_is_default: ask.sla_is_default,
        limits: Some(wire::OperationLimits {
            throttle_per_s: limit_to_wire(ask.terms.limits.throttle_per_s),
            max_in_flight: limit_to_wire(ask.terms.limits.max_in_flight),
        }),
        stop_when: ask.terms.stop_when.map(|stop_when| wire::StopWhen {
            failure_ratio_percent: i32::try_from(stop_when.failure_ratio_percent).unwrap(),
            min_sample: i32::try_from(stop_when.min_sample).unwrap(),
        }),
        approval: ask.approval.as_ref().map(|approval| wire::ApprovalRequired {
            label_count: approval.label_count,
            expires_at: Some(timestamp_to_wire(approval.expires_at)),
        }),
        plan_id: ask.terms.plan_id.clone(),
        check_only: ask.check_only,
    }
}

fn limit_to_wire(limit: Option<i64>) -> i32 {
    limit.map_or(0, |limit| i32::try_from(limit).unwrap())
}

/// `"dto_type"` or `"dto_type alias"`.
pub fn shape(text: &str) -> ParentShape {
    let mut parts = text.split(' ');
    ParentShape {
        dto_type: parts.next().unwrap().parse().unwrap(),
        alias: parts.next().map(|alias| alias.parse().unwrap()),
    }
}

/// `"dto_type urn alias"`: a parent.
pub fn parent(text: &str) -> SplitItem {
    let mut parts = text.split(' ');
    SplitItem {
        dto_type: parts.next().unwrap().parse().unwrap(),
        target: Target::Parent(parts.next().unwrap().parse().unwrap()),
        alias: parts.next().map(|alias| alias.parse().unwrap()),
    }
}

/// A record by its URN.
pub fn record(urn: &str) -> SplitItem {
    let urn: domain::Urn = urn.parse().unwrap();
    SplitItem { dto_type: type_of(&urn), target: Target::Record(urn), alias: None }
}

fn type_of(urn: &domain::Urn) -> DtoType {
    match urn {
        domain::Urn::StoreRecord(_, _, collection, _) | domain::Urn::TenantRecord(_, collection, _) => {
            collection.dto_type()
        }
        domain::Urn::Tenant(_) | domain::Urn::Store(_, _) => panic!("{urn} names no record"),
    }
}

/// A change of a record, in the ordinary lane.
pub fn told(urn: &str, sla: Timestamp) -> Announcement {
    let urn: domain::Urn = urn.parse().unwrap();
    Announcement { dto_type: type_of(&urn), urn, sla, tracking_id: None, lane: None, announce: Announce::Always }
}

/// The trigger of the main job: model M of store S.
pub fn refresh(tracking_id: &str) -> InjectAsk {
    InjectAsk {
        service: ServiceName::EccImageRender,
        queue: ECC.parse().unwrap(),
        items: vec![parent("ecclink.v1 t/T/s/S/eccmodels/M by_eccmodel")],
        reason: "CHG-118: font fixed".parse().unwrap(),
        tracking_id: tracking_id.parse().unwrap(),
        sla: None,
        sla_is_default: false,
        operator_subject: Some("ann@example".parse().unwrap()),
        trigger: "model-refresh".to_owned(),
        scope: Some("t/T/s/S/eccmodels/M".parse().unwrap()),
        terms: Terms::default(),
        approval: None,
        request_digest: String::new(),
        check_only: false,
    }
}

/// A complete split into these children.
pub fn into(leased: &Leased, children: Vec<SplitItem>) -> SplitAsk {
    SplitAsk { lease: leased.lease.clone(), id: leased.rows[0].id, children, next_cursor: String::new(), sla: None }
}

/// Links `E{from}` to `E{to}` of store S, end excluded.
pub fn links(range: std::ops::Range<usize>) -> Vec<SplitItem> {
    range.map(|n| record(&format!("t/T/s/S/ecclinks/E{n}"))).collect()
}

pub fn retry() -> Outcome {
    Outcome::Retry { cause: "no answer".to_owned() }
}

pub fn failed(cause: &str) -> Outcome {
    Outcome::Failed { cause: cause.to_owned() }
}
