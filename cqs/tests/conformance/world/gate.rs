//! The server in process, in front of a store, with everybody's keys.

use std::sync::Arc;

use cqs::{CqsServer, CqsServerParts, CqsStore, Wakeups};
use daemon::{
    identity::{Registry, ServiceCredentials, ServiceKey, Verifier},
    serve::in_process,
};
use domain::{ManualClock, SeededIds, ServiceName};
use proto::{CqsClient, Transport, cqs_client};

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
