//! CQS and DTOflow alone, in the test's own process: the test is every service.

use std::sync::Arc;

use app::{
    data_dir::DataDir,
    platform::{Database, Platform, PlatformParts},
    upkeep::Upkeep,
};
use daemon::{SystemClock, SystemIds, shutdown::Shutdown};
use tempfile::TempDir;

use crate::grpc::Doors;

/// A platform that no worker serves.
#[derive(Debug)]
pub struct PlatformAlone {
    /// gRPC with any service's key; no triggers.
    pub doors: Doors,
    database: Database,
    shutdown: Shutdown,
    _folder: TempDir,
}

impl PlatformAlone {
    /// Opens an empty one.
    pub async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::create(&folder.path().join("data")).expect("a data directory");
        let registry = Arc::new(data.write_registry().expect("a registry"));
        let database = Database::open(&data.database()).await.expect("a database");
        let parts = PlatformParts { registry: registry.into(), clock: Arc::new(SystemClock), ids: Arc::new(SystemIds) };
        let platform = Platform::open(&database, parts).await.expect("a platform");
        let shutdown = Shutdown::default();
        platform.maintain(Upkeep::default(), &shutdown).expect("nothing to sign");
        let transport = platform.transport();
        let doors = Doors { platform: transport.clone(), triggers: transport, keys: Doors::keys_in(&data.keys()) };
        Self { doors, database, shutdown, _folder: folder }
    }

    /// Closes it in order.
    pub async fn close(self) {
        self.shutdown.stop().await;
        self.database.close().await.expect("the database closes");
    }
}
