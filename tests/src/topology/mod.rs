//! The running product in its three shapes, the same to every scenario.
//!
//! - [`Topology::in_process`]: the composition of `app`, in the test's own process.
//! - [`Topology::dev`]: the program `reshelf dev` as a child process.
//! - [`Topology::three`]: `reshelf platform`, `reshelf-worker` and `reshelf-gateway` over loopback gRPC.
//!
//! Each keeps its data in SQLite, or ([`Topology::in_process_on_postgres`], [`Topology::three_on_postgres`]) in a database
//! of the tests' own PostgreSQL.
//!
//! [`Many`] is any number of platform servers, gateways and workers over one PostgreSQL, to be killed one by one.
//!
//! [`PlatformAlone`] is CQS and DTOflow without any service, for tests that are the services themselves.
//!
//! Each has a data directory of its own that goes when the topology does; ports are chosen by the system.
//! [`Topology::stop`] ends it in order, where that is part of what is tested; otherwise it ends with the test.

mod dev;
mod in_process;
mod many;
mod platform;
mod three;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use app::data_dir::DataDir;
use cluster::{Cluster, Database};
use daemon::{SystemClock, identity::ServiceKey};
use domain::{Clock as _, OperatorScope, ServiceName};
use gateway::token::{OperatorClaims, mint};
use proto::cqs::v1::{EvidenceCounts, GetOperationRequest, Operation, OperationState, QueueCounts};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    copy,
    grpc::Doors,
    pictures::{self, Compared},
    process::Program,
    rest::Rest,
    tables::{RecordKey, Tables},
    wait::until,
};

pub use dev::{DevOptions, dev_command};
pub use many::{Many, Role, Shape};
pub use platform::PlatformAlone;
pub use three::free_ports;

/// How long the product may take to come up: the demo of 1,200 labels included, on two busy cores.
pub const START_LIMIT: Duration = Duration::from_mins(1);
/// How long an operation over some dozen labels may take; what the issue allows for 400.
pub const OPERATION_LIMIT: Duration = Duration::from_secs(10);

/// A running product.
#[derive(Debug)]
pub struct Topology {
    /// Its data directory.
    pub data: DataDir,
    /// gRPC with any service's key.
    pub doors: Doors,
    base: String,
    issuer: ServiceKey,
    programs: Vec<Program>,
    /// How `reshelf dev` was started, to start it again.
    command: Option<DevOptions>,
    served: Option<in_process::Served>,
    /// How far its clock is ahead of the system's, in milliseconds.
    ahead_ms: i64,
    /// Where the data lies; in the data directory otherwise.
    postgres: Option<Postgres>,
    folder: TempDir,
}

/// A database of the tests' PostgreSQL.
#[derive(Debug)]
enum Postgres {
    /// In the server that all tests share.
    Shared(Database),
    /// In a server of the test's own, which it may stop.
    Own { server: Cluster, url: String },
}

impl Postgres {
    fn url(&self) -> String {
        match self {
            Self::Shared(database) => database.url(),
            Self::Own { url, .. } => url.clone(),
        }
    }
}

impl Topology {
    /// The gateway as an operator with every scope on these tenants.
    pub fn operator(&self, tenants: &[&str]) -> Rest {
        self.operator_as(&self.claims(tenants, OperatorScope::ALL))
    }

    /// Claims of a test operator that is good for an hour.
    pub fn claims(&self, tenants: &[&str], scopes: &[OperatorScope]) -> OperatorClaims {
        OperatorClaims {
            subject: "operator@test".parse().expect("a subject"),
            scopes: scopes.to_vec(),
            tenants: tenants.iter().map(|tenant| tenant.parse().expect("a tenant id")).collect(),
            stores: None,
            issued_at: SystemClock.now().plus_ms(self.ahead_ms),
            lifetime_s: 3_600,
        }
    }

    /// The gateway as that operator.
    pub fn operator_as(&self, claims: &OperatorClaims) -> Rest {
        let token = mint(&self.issuer, claims).expect("the local issuer signs");
        Rest::new(&self.base, Some(&token))
    }

    /// The gateway without a token.
    pub fn anonymous(&self) -> Rest {
        Rest::new(&self.base, None)
    }

    /// The database, read from outside.
    pub async fn tables(&self) -> Tables {
        match &self.postgres {
            None => Tables::open(&self.data.database()).await,
            Some(postgres) => Tables::of_postgres(&postgres.url()).await,
        }
    }

    /// Where the folder driver shows a label.
    pub fn png_of(&self, key: &RecordKey) -> PathBuf {
        png_below(&self.data.labels(), key)
    }

    /// The log lines of all processes, parsed.
    pub fn log_lines(&self) -> Vec<Value> {
        self.programs
            .iter()
            .flat_map(|program| program.log().lines().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|line| serde_json::from_str(&line).ok())
            .collect()
    }

    /// The logs of all processes as they stand.
    pub fn raw_log(&self) -> String {
        self.programs.iter().map(Program::log).collect()
    }

    /// The child processes.
    pub fn programs(&mut self) -> &mut [Program] {
        &mut self.programs
    }

    /// Ids of the child processes that run.
    pub fn process_ids(&self) -> Vec<u32> {
        self.programs.iter().filter_map(Program::id).collect()
    }

    /// What the child processes printed so far.
    pub fn printed(&self) -> String {
        self.programs.iter().map(Program::output).collect()
    }

    /// A folder for the test's own files; goes with the topology.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Rows that wait or are leased, by queue.
    pub async fn rows_by_queue(&self) -> BTreeMap<String, i64> {
        match &self.postgres {
            None => self.tables().await.rows_by_queue().await,
            Some(postgres) => copy::rows_by_queue(&postgres.url()).await,
        }
    }

    /// Waits until nothing waits and nothing is leased in any queue.
    pub async fn quiet(&self) {
        self.quiet_within(START_LIMIT).await;
    }

    /// As [`Self::quiet`], with a limit.
    pub async fn quiet_within(&self, limit: Duration) {
        until("nothing waits in any queue", limit, || async {
            match self.rows_by_queue().await {
                rows if rows.is_empty() => Ok(()),
                rows => Err(format!("{rows:?}")),
            }
        })
        .await;
    }

    /// Fails unless every label of a tenant (of all, when none is named) shows what its records say.
    pub async fn assert_pictures(&self, tenant: Option<&str>) -> Compared {
        let records = self.tables().await.records(tenant).await;
        pictures::compare(&records, |key| self.png_of(key)).unwrap_or_else(|wrong| {
            panic!("{} labels are wrong, among them {:#?}", wrong.len(), wrong.iter().take(5).collect::<Vec<_>>())
        })
    }

    /// Fails unless the ledger and everything around it is exact.
    pub async fn assert_exact(&self) {
        let wrong = self.tables().await.check().await;
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// An operation as CQS reports it to the gateway; none when there is none.
    pub async fn operation(&self, tenant: &str, tracking_id: &str) -> Option<Operation> {
        let request = GetOperationRequest { tenant_id: tenant.to_owned(), tracking_id: tracking_id.to_owned() };
        match self.doors.cqs(ServiceName::OperatorGateway).get_operation(request).await {
            Ok(operation) => Some(operation.into_inner()),
            Err(status) if status.code() == tonic::Code::NotFound => None,
            Err(status) => panic!("GetOperation: {status}"),
        }
    }

    /// Waits until an operation is no longer running.
    pub async fn finished(&self, tenant: &str, tracking_id: &str, limit: Duration) -> Operation {
        until(&format!("operation {tracking_id} to finish"), limit, || async {
            let operation = self.operation(tenant, tracking_id).await.ok_or("there is none")?;
            match operation.state() {
                OperationState::Succeeded | OperationState::FinishedWithFailures => Ok(operation),
                _ => Err(format!("{:?}", operation.queues)),
            }
        })
        .await
    }

    /// As [`Self::finished`], and fails as soon as the tables are not exact at any instant it looks.
    pub async fn finished_exactly(&self, tenant: &str, tracking_id: &str, limit: Duration) -> Operation {
        until(&format!("operation {tracking_id} to finish"), limit, || async {
            self.assert_exact().await;
            let operation = self.operation(tenant, tracking_id).await.ok_or("there is none")?;
            match operation.state() {
                OperationState::Succeeded | OperationState::FinishedWithFailures => Ok(operation),
                _ => Err(format!("{:?}", operation.queues)),
            }
        })
        .await
    }

    /// Ends the product in order.
    pub async fn stop(mut self) {
        for program in &mut self.programs {
            program.stop(START_LIMIT).await;
        }
        if let Some(served) = self.served.take() {
            served.stop().await;
        }
    }
}

/// Where the folder driver puts a label's picture below its root.
pub fn png_below(root: &std::path::Path, key: &RecordKey) -> PathBuf {
    root.join(&key.tenant).join(&key.store).join(format!("{}.png", key.id))
}

/// The counts of one stage; zeros when nothing of the operation ever came there. Without its rate, which there is only when it
/// took long.
pub fn stage(operation: &Operation, service: ServiceName) -> QueueCounts {
    let found = operation.queues.iter().find(|counts| counts.queue_name == service.as_str());
    match found {
        Some(counts) => QueueCounts { labels_per_s: None, ..counts.clone() },
        None => QueueCounts { queue_name: service.to_string(), ..QueueCounts::default() },
    }
}

/// What a stage counts when `enqueued` labels came through it and `unchanged` of them needed nothing.
pub fn through(service: ServiceName, enqueued: i64, unchanged: i64) -> QueueCounts {
    // The exporter writes every picture to a folder.
    let is_exporter = service == ServiceName::HardwareExporter && enqueued > 0;
    let confirmed_by = is_exporter.then(|| EvidenceCounts { written: enqueued, ..EvidenceCounts::default() });
    QueueCounts {
        queue_name: service.to_string(),
        enqueued,
        done: enqueued,
        unchanged,
        confirmed_by,
        ..QueueCounts::default()
    }
}

/// The same with the one parent that was split there.
pub fn split_through(service: ServiceName, enqueued: i64, unchanged: i64) -> QueueCounts {
    expanded_through(service, 1, enqueued, unchanged)
}

/// The same with so many parents.
pub fn expanded_through(service: ServiceName, parents: i64, enqueued: i64, unchanged: i64) -> QueueCounts {
    QueueCounts { parents_enqueued: parents, parents_done: parents, ..through(service, enqueued, unchanged) }
}
