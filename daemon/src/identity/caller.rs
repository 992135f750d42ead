//! The verified caller, as a handler sees it.

use std::sync::Arc;

use domain::{DtoType, ErrorCode, QueueName, Refusal, ServiceIdentity, ServiceName};
use tonic::Request;

use super::ServiceGrants;

/// A service whose token was verified, with what the registry grants it.
#[derive(Debug, Clone)]
pub struct Caller {
    service: ServiceName,
    grants: Arc<ServiceGrants>,
}

impl Caller {
    pub(super) fn new(service: ServiceName, grants: Arc<ServiceGrants>) -> Self {
        Self { service, grants }
    }

    /// Which service calls.
    pub fn service(&self) -> ServiceName {
        self.service
    }

    /// Its identity, `svc:…`.
    pub fn identity(&self) -> ServiceIdentity {
        ServiceIdentity(self.service)
    }

    /// Its own queue, when it has one.
    pub fn queue(&self) -> Option<QueueName> {
        self.service.queue()
    }

    /// Whether it may write records of that type.
    pub fn may_write(&self, dto_type: DtoType) -> bool {
        self.grants.writes(dto_type)
    }

    /// Refuses unless the registry lets it call `rpc`, e.g. `cqs.v1.ChangeQueueService/Dequeue`.
    pub fn require_rpc(&self, rpc: &str) -> Result<(), Refusal> {
        if self.grants.calls(rpc) {
            Ok(())
        } else {
            Err(Refusal::new(ErrorCode::PermissionDenied, format!("{} may not call {rpc}", self.identity())))
        }
    }

    /// Refuses unless `queue` is the caller's own.
    pub fn require_queue(&self, queue: &QueueName) -> Result<(), Refusal> {
        if self.queue().as_ref() == Some(queue) {
            Ok(())
        } else {
            Err(Refusal::new(ErrorCode::PermissionDenied, format!("{} does not own this queue", self.identity()))
                .at("queue_name"))
        }
    }
}

/// The verified caller of a request. Unauthenticated when the layer put none there: a server without the layer refuses
/// everyone.
pub fn caller<T>(request: &Request<T>) -> Result<Caller, Refusal> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(|| Refusal::new(ErrorCode::Unauthenticated, "no valid service identity"))
}
