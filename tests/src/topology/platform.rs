//! CQS and DTOflow alone, in the test's own process: the test is every service.

use std::{collections::BTreeMap, sync::Arc};

use app::{
    data_dir::DataDir,
    platform::{Database, Platform, PlatformParts},
    upkeep::Upkeep,
};
use daemon::{SystemClock, SystemIds, identity::ServiceCredentials, shutdown::Shutdown};
use domain::{Clock, OperatorScope, ServiceName};
use gateway::{
    GatewayParts, Issuer, OperatorPolicy, OperatorVerifier, PlanKey, Rules, Webhooks,
    token::{OperatorClaims, mint},
};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::{grpc::Doors, rest::Rest};

/// A platform that no worker serves.
#[derive(Debug)]
pub struct PlatformAlone {
    /// gRPC with any service's key; no triggers.
    pub doors: Doors,
    data: DataDir,
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
        Self { doors, data, database, shutdown, _folder: folder }
    }

    /// Starts a gateway in front of it, and is an operator of `tenants` there with every scope.
    pub async fn operator(&self, tenants: &[&str]) -> Rest {
        let issuer = self.data.operator_issuer().expect("the issuer's key");
        let key = self.doors.keys[&ServiceName::OperatorGateway].clone();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let credentials = ServiceCredentials::new(ServiceName::OperatorGateway, key.clone(), Arc::clone(&clock));
        let verified = Issuer::local(issuer.public()).expect("an issuer");
        let router = gateway::router(GatewayParts {
            platform: credentials.attach(self.doors.platform.clone()),
            triggers: BTreeMap::new(),
            operators: OperatorVerifier::new(vec![verified], Arc::clone(&clock)),
            plans: PlanKey::new(key).expect("a plan key"),
            policy: OperatorPolicy::default(),
            cors: Vec::new(),
            login: None,
            rules: Rules::default(),
            webhooks: Webhooks::default(),
            shutdown: self.shutdown.clone(),
            clock,
            ids: Arc::new(SystemIds),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("its address"));
        self.shutdown.tasks.spawn(gateway::serve(listener, router, self.shutdown.clone()));
        let claims = OperatorClaims {
            subject: "operator@test".parse().expect("a subject"),
            scopes: OperatorScope::ALL.to_vec(),
            tenants: tenants.iter().map(|tenant| tenant.parse().expect("a tenant id")).collect(),
            stores: None,
            issued_at: SystemClock.now(),
            lifetime_s: 3_600,
        };
        Rest::new(&base, Some(&mint(&issuer, &claims).expect("the local issuer signs")))
    }

    /// Closes it in order.
    pub async fn close(self) {
        self.shutdown.stop().await;
        self.database.close().await.expect("the database closes");
    }
}
