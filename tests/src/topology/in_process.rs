//! The composition of `app` in the test's own process: no serialisation to the network, every check all the same.

use std::{net::SocketAddr, sync::Arc};

use app::dev::{Dev, DevOptions};
use cluster::Database;
use daemon::{SystemClock, SystemIds};
use gateway::OperatorPolicy;

use super::{Postgres, Topology};
use crate::grpc::Doors;

/// A product that runs in this process.
#[derive(Debug)]
pub(super) struct Served(Dev);

impl Served {
    /// Drains it and closes its database.
    pub(super) async fn stop(self) {
        self.0.shutdown().stop().await;
        self.0.close().await.expect("the database closes");
    }
}

impl Topology {
    /// Everything in this process, empty, on a port of the system's choice.
    pub async fn in_process() -> Self {
        Self::in_process_over(None, OperatorPolicy::default()).await
    }

    /// Likewise, where an operation over more labels than that waits for a second operator.
    pub async fn in_process_approving_above(labels: i64) -> Self {
        Self::in_process_over(None, OperatorPolicy { approval_above_labels: labels }).await
    }

    /// Likewise, its data in PostgreSQL.
    pub async fn in_process_on_postgres() -> Self {
        Self::in_process_over(Some(Database::new().expect("a database")), OperatorPolicy::default()).await
    }

    async fn in_process_over(postgres: Option<Database>, policy: OperatorPolicy) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = DevOptions {
            data_dir: folder.path().join("data"),
            database: postgres.as_ref().map(|database| database.url().parse().expect("a URL")),
            audit_checkpoints: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            hardware: app::dev::Hardware::Folder,
            policy,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        };
        let dev = app::dev::start(options).await.unwrap_or_else(|error| panic!("the product starts: {error:#}"));
        let data = dev.dir().clone();
        Self {
            doors: Doors {
                platform: dev.platform_transport(),
                triggers: dev.trigger_transport(),
                keys: Doors::keys_in(&data.keys()),
            },
            base: format!("http://{}", dev.rest()),
            issuer: data.operator_issuer().expect("the issuer's key"),
            data,
            programs: Vec::new(),
            command: None,
            served: Some(Served(dev)),
            postgres: postgres.map(Postgres::Shared),
            folder,
        }
    }
}
