//! The composition of `app` in the test's own process: no serialisation to the network, every check all the same.

use std::{net::SocketAddr, path::Path, sync::Arc};

use app::dev::{Dev, DevOptions};
use cluster::Database;
use daemon::{SystemClock, SystemIds};
use domain::{Clock, Timestamp};
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

/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The system's clock, so many milliseconds ahead.
#[derive(Debug)]
struct Ahead(i64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus_ms(self.0)
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
            database: postgres.as_ref().map(|database| database.url().parse().expect("a URL")),
            policy,
            ..options(folder.path(), 0)
        };
        let dev = start(options).await;
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
            ahead_ms: 0,
            postgres: postgres.map(Postgres::Shared),
            folder,
        }
    }

    /// Ends what runs in this process in order and starts it again on its data so many days later: its clock, and its
    /// operators', are that much further ahead. What stands in [`Topology::doors`] is of before.
    #[must_use]
    pub async fn days_later(mut self, days: i64) -> Self {
        self.served.take().expect("it runs in this process").stop().await;
        self.ahead_ms += days * DAY_MS;
        let dev = start(options(self.folder.path(), self.ahead_ms)).await;
        self.base = format!("http://{}", dev.rest());
        self.served = Some(Served(dev));
        self
    }
}

fn options(folder: &Path, ahead_ms: i64) -> DevOptions {
    DevOptions {
        data_dir: folder.join("data"),
        database: None,
        audit_checkpoints: None,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        hardware: app::dev::Hardware::Folder,
        policy: OperatorPolicy::default(),
        clock: Arc::new(Ahead(ahead_ms)),
        ids: Arc::new(SystemIds),
    }
}

async fn start(options: DevOptions) -> Dev {
    app::dev::start(options).await.unwrap_or_else(|error| panic!("the product starts: {error:#}"))
}
