//! The gRPC server: extract, check the caller, call the store, map. One file per subject; the list below is the contract's.

mod audit;
mod control;
mod failures;
mod operation;
mod overview;
mod queue;
mod self_enqueue;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use daemon::identity::{Caller, caller};
use db::Faults;
use domain::{Clock, IdSource, QueueName, Refusal, limits::MESSAGE_MAX_BYTES};
use proto::{
    cqs::v1::{
        self as wire,
        change_queue_service_server::{ChangeQueueService, ChangeQueueServiceServer},
    },
    status_from_refusal,
};
use tonic::{Request, Response, Status};

use crate::{CqsStore, StoreError, Wakeups, policy::choice::Tally};

/// What the server needs besides its store.
#[derive(Clone)]
pub struct CqsServerParts {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub ids: Arc<dyn IdSource>,
    /// Shared with whoever announces (DTOflow).
    pub wakeups: Wakeups,
}

/// The change queue service over a store. Cheap to clone; clones are the same service.
#[derive(Clone)]
pub struct CqsServer {
    store: Arc<dyn CqsStore>,
    parts: CqsServerParts,
    /// Per queue the answers given lately.
    tallies: Arc<Mutex<HashMap<QueueName, Arc<Mutex<Tally>>>>>,
}

impl CqsServer {
    /// A server over that store.
    pub fn new(store: Arc<dyn CqsStore>, parts: CqsServerParts) -> Self {
        Self { store, parts, tallies: Arc::default() }
    }

    /// The tonic service, with the platform's message bounds. It refuses everyone unless it stands behind
    /// [`daemon::identity::AuthLayer`].
    pub fn into_service(self) -> ChangeQueueServiceServer<Self> {
        ChangeQueueServiceServer::new(self)
            .max_decoding_message_size(MESSAGE_MAX_BYTES)
            .max_encoding_message_size(MESSAGE_MAX_BYTES)
    }

    fn tally(&self, queue: &QueueName) -> Arc<Mutex<Tally>> {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tallies.entry(queue.clone()).or_default())
    }
}

/// The verified caller, if the registry lets it call that RPC of ours.
fn allowed<T>(request: &Request<T>, rpc: &str) -> Result<Caller, Refusal> {
    let caller = caller(request)?;
    caller.require_rpc(&format!("cqs.v1.ChangeQueueService/{rpc}"))?;
    Ok(caller)
}

/// Faults of ours.
static FAULTS: Faults = Faults::new();

/// The status of a failed call. A fault of ours is logged here, once; those that repeat are counted.
fn status(rpc: &'static str) -> impl Fn(StoreError) -> Status {
    move |error| {
        match &error {
            StoreError::Refused(refusal) => tracing::debug!(rpc, %refusal, "refused"),
            StoreError::BrokenRow { .. } | StoreError::Db(_) | StoreError::Json(_) => {
                if let Some(left_out) = FAULTS.due(&error.to_string()) {
                    tracing::error!(rpc, %error, left_out, "call failed");
                }
            }
        }
        status_from_refusal(&error.into_refusal())
    }
}

/// A number of the wire within its range.
fn in_range<T>(field: &str, value: T, range: std::ops::RangeInclusive<T>) -> Result<T, Refusal>
where
    T: PartialOrd + std::fmt::Display + Copy,
{
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(Refusal::field(field, format!("must be {} to {}", range.start(), range.end())))
    }
}

/// How many entries a field may hold.
fn count_in(field: &str, count: usize, range: std::ops::RangeInclusive<usize>) -> Result<(), Refusal> {
    if range.contains(&count) {
        Ok(())
    } else {
        Err(Refusal::field(field, format!("must hold {} to {} entries", range.start(), range.end())))
    }
}

/// A short text without control characters.
fn plain_text(field: &str, text: &str, max_bytes: usize) -> Result<(), Refusal> {
    if text.len() > max_bytes {
        Err(Refusal::field(field, format!("must be at most {max_bytes} bytes long")))
    } else if text.chars().any(char::is_control) {
        Err(Refusal::field(field, "must not hold control characters"))
    } else {
        Ok(())
    }
}

/// Longest detail of an audit row, in bytes; longer ones are cut.
const DETAIL_MAX_BYTES: usize = 1_000;

/// The detail of a refused call's audit row: the field and what was wrong.
fn refusal_detail(refusal: &Refusal) -> String {
    let mut detail = if refusal.field.is_empty() {
        refusal.message.clone()
    } else {
        format!("{}: {}", refusal.field, refusal.message)
    };
    let cut = (0..=DETAIL_MAX_BYTES.min(detail.len())).rev().find(|end| detail.is_char_boundary(*end));
    detail.truncate(cut.unwrap_or(0));
    detail
}

/// A page token is the last position shown, in hexadecimal: opaque to callers, checked by us. Empty: from the newest.
fn page_from(token: &str) -> Result<i64, Refusal> {
    if token.is_empty() {
        return Ok(i64::MAX);
    }
    match i64::from_str_radix(token, 16) {
        Ok(before) if before > 0 && token.len() <= 16 => Ok(before),
        _ => Err(Refusal::field("page_token", "is not a token of this list")),
    }
}

/// The token of the page after one that was full and ended with `last`.
fn page_after(last: Option<i64>) -> String {
    last.map(|last| format!("{last:016x}")).unwrap_or_default()
}

/// The tenants of a list.
fn tenants(ids: &[String]) -> Result<Vec<domain::TenantId>, Refusal> {
    /// Tenants of one list: more than any operator's token holds.
    const TENANTS_MAX: usize = 1_000;
    count_in("tenant_ids", ids.len(), 1..=TENANTS_MAX)?;
    ids.iter().enumerate().map(|(index, id)| proto::parse_field(&format!("tenant_ids[{index}]"), id)).collect()
}

/// The size of a page: 0 means `default`.
fn page_size(asked: i32, default: usize, max: i32) -> Result<usize, Refusal> {
    match usize::try_from(in_range("page_size", asked, 0..=max)?) {
        Ok(0) | Err(_) => Ok(default),
        Ok(size) => Ok(size),
    }
}

#[tonic::async_trait]
impl ChangeQueueService for CqsServer {
    async fn create_or_configure_queue(
        &self,
        request: Request<wire::CreateOrConfigureQueueRequest>,
    ) -> Result<Response<wire::CreateOrConfigureQueueResponse>, Status> {
        self.configure_queue(request).await.map(Response::new).map_err(status("CreateOrConfigureQueue"))
    }

    async fn dequeue(&self, request: Request<wire::DequeueRequest>) -> Result<Response<wire::DequeueResponse>, Status> {
        self.dequeue(request).await.map(Response::new).map_err(status("Dequeue"))
    }

    async fn complete(
        &self,
        request: Request<wire::CompleteRequest>,
    ) -> Result<Response<wire::CompleteResponse>, Status> {
        self.complete(request).await.map(Response::new).map_err(status("Complete"))
    }

    async fn extend_lease(
        &self,
        request: Request<wire::ExtendLeaseRequest>,
    ) -> Result<Response<wire::ExtendLeaseResponse>, Status> {
        self.extend_lease(request).await.map(Response::new).map_err(status("ExtendLease"))
    }

    async fn re_enqueue(
        &self,
        request: Request<wire::ReEnqueueRequest>,
    ) -> Result<Response<wire::ReEnqueueResponse>, Status> {
        self.re_enqueue(request).await.map(Response::new).map_err(status("ReEnqueue"))
    }

    async fn self_enqueue(
        &self,
        request: Request<wire::SelfEnqueueRequest>,
    ) -> Result<Response<wire::SelfEnqueueResponse>, Status> {
        self.self_enqueue(request).await.map(Response::new).map_err(status("SelfEnqueue"))
    }

    async fn get_operation(
        &self,
        request: Request<wire::GetOperationRequest>,
    ) -> Result<Response<wire::Operation>, Status> {
        self.get_operation(request).await.map(Response::new).map_err(status("GetOperation"))
    }

    async fn list_operations(
        &self,
        request: Request<wire::ListOperationsRequest>,
    ) -> Result<Response<wire::ListOperationsResponse>, Status> {
        self.list_operations(request).await.map(Response::new).map_err(status("ListOperations"))
    }

    async fn control_operation(
        &self,
        request: Request<wire::ControlOperationRequest>,
    ) -> Result<Response<wire::ControlOperationResponse>, Status> {
        self.control_operation(request).await.map(Response::new).map_err(status("ControlOperation"))
    }

    async fn set_brake(&self, request: Request<wire::SetBrakeRequest>) -> Result<Response<wire::Brake>, Status> {
        self.set_brake(request).await.map(Response::new).map_err(status("SetBrake"))
    }

    async fn get_brake(&self, request: Request<wire::GetBrakeRequest>) -> Result<Response<wire::Brake>, Status> {
        self.get_brake(request).await.map(Response::new).map_err(status("GetBrake"))
    }

    async fn get_overview(
        &self,
        request: Request<wire::GetOverviewRequest>,
    ) -> Result<Response<wire::Overview>, Status> {
        self.get_overview(request).await.map(Response::new).map_err(status("GetOverview"))
    }

    async fn append_audit(
        &self,
        request: Request<wire::AppendAuditRequest>,
    ) -> Result<Response<wire::AppendAuditResponse>, Status> {
        self.append_audit(request).await.map(Response::new).map_err(status("AppendAudit"))
    }

    async fn follow_audit(
        &self,
        request: Request<wire::FollowAuditRequest>,
    ) -> Result<Response<wire::FollowAuditResponse>, Status> {
        self.follow_audit(request).await.map(Response::new).map_err(status("FollowAudit"))
    }

    async fn list_audit(
        &self,
        request: Request<wire::ListAuditRequest>,
    ) -> Result<Response<wire::ListAuditResponse>, Status> {
        self.list_audit(request).await.map(Response::new).map_err(status("ListAudit"))
    }

    async fn list_failures(
        &self,
        request: Request<wire::ListFailuresRequest>,
    ) -> Result<Response<wire::ListFailuresResponse>, Status> {
        self.list_failures(request).await.map(Response::new).map_err(status("ListFailures"))
    }

    async fn retry_failures(
        &self,
        request: Request<wire::RetryFailuresRequest>,
    ) -> Result<Response<wire::RetryFailuresResponse>, Status> {
        self.retry_failures(request).await.map(Response::new).map_err(status("RetryFailures"))
    }

    async fn get_record_fates(
        &self,
        request: Request<wire::GetRecordFatesRequest>,
    ) -> Result<Response<wire::GetRecordFatesResponse>, Status> {
        self.get_record_fates(request).await.map(Response::new).map_err(status("GetRecordFates"))
    }
}
