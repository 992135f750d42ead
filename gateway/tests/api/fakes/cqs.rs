//! CQS: audit log and operations.

use std::sync::{Arc, Mutex, MutexGuard};

use domain::{ErrorCode, Refusal};
use proto::cqs::v1::{self as cqs, change_queue_service_server::ChangeQueueService};
use tonic::{Request, Response, Status};

use super::{Fault, gate, page, refuse};

#[derive(Default)]
pub(crate) struct CqsState {
    pub(crate) audit: Vec<cqs::AuditEntry>,
    pub(crate) operations: Vec<cqs::Operation>,
    pub(crate) fates: Vec<cqs::RecordFate>,
    pub(crate) controlled: Vec<cqs::ControlOperationRequest>,
    pub(crate) brake: cqs::Brake,
    pub(crate) overview: cqs::Overview,
    pub(crate) fault: Option<Fault>,
}

/// CQS: audit log and operations.
#[derive(Clone, Default)]
pub(crate) struct FakeCqs(Arc<Mutex<CqsState>>);

impl FakeCqs {
    pub(crate) fn state(&self) -> MutexGuard<'_, CqsState> {
        self.0.lock().unwrap()
    }

    fn open<T>(&self, request: &Request<T>, rpc: &str) -> Result<MutexGuard<'_, CqsState>, Status> {
        gate(request, &format!("cqs.v1.ChangeQueueService/{rpc}"))?;
        let state = self.state();
        match &state.fault {
            Some(fault) => Err(fault.status()),
            None => Ok(state),
        }
    }
}

#[tonic::async_trait]
impl ChangeQueueService for FakeCqs {
    async fn get_operation(
        &self,
        request: Request<cqs::GetOperationRequest>,
    ) -> Result<Response<cqs::Operation>, Status> {
        let state = self.open(&request, "GetOperation")?;
        let asked = request.get_ref();
        let found = state
            .operations
            .iter()
            .find(|known| known.tenant_id == asked.tenant_id && known.tracking_id == asked.tracking_id);
        match found {
            Some(operation) => Ok(Response::new(operation.clone())),
            None => refuse(&Refusal::new(ErrorCode::NotFound, "no such operation").at("tracking_id")),
        }
    }

    async fn list_operations(
        &self,
        request: Request<cqs::ListOperationsRequest>,
    ) -> Result<Response<cqs::ListOperationsResponse>, Status> {
        let state = self.open(&request, "ListOperations")?;
        let asked = request.get_ref();
        let all: Vec<_> =
            state.operations.iter().filter(|known| asked.tenant_ids.contains(&known.tenant_id)).cloned().collect();
        let all: Vec<_> =
            all.into_iter().filter(|known| asked.states.is_empty() || asked.states.contains(&known.state)).collect();
        if !asked.tracking_ids.is_empty() {
            assert_eq!(asked.tenant_ids.len(), 1, "names are one tenant's");
            let named = all.into_iter().filter(|known| asked.tracking_ids.contains(&known.tracking_id));
            let answer = cqs::ListOperationsResponse { operations: named.collect(), next_page_token: String::new() };
            return Ok(Response::new(answer));
        }
        let (operations, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        Ok(Response::new(cqs::ListOperationsResponse { operations, next_page_token }))
    }

    async fn append_audit(
        &self,
        request: Request<cqs::AppendAuditRequest>,
    ) -> Result<Response<cqs::AppendAuditResponse>, Status> {
        let mut state = self.open(&request, "AppendAudit")?;
        let service = daemon::identity::caller(&request).unwrap().identity().to_string();
        for mut entry in request.into_inner().entries {
            assert!(!entry.action.is_empty() && entry.action.len() <= 64);
            assert!(entry.detail.len() <= 1_000);
            entry.id = i64::try_from(state.audit.len()).unwrap() + 1;
            service.clone_into(&mut entry.service);
            state.audit.push(entry);
        }
        Ok(Response::new(cqs::AppendAuditResponse {}))
    }

    async fn follow_audit(
        &self,
        _: Request<cqs::FollowAuditRequest>,
    ) -> Result<Response<cqs::FollowAuditResponse>, Status> {
        Err(Status::unimplemented("no route asks for it"))
    }

    async fn list_audit(
        &self,
        request: Request<cqs::ListAuditRequest>,
    ) -> Result<Response<cqs::ListAuditResponse>, Status> {
        let state = self.open(&request, "ListAudit")?;
        let asked = request.get_ref();
        let all: Vec<_> = state
            .audit
            .iter()
            .rev()
            .filter(|entry| asked.tenant_ids.contains(&entry.tenant_id))
            .filter(|entry| asked.tracking_id.is_empty() || asked.tracking_id == entry.tracking_id)
            .cloned()
            .collect();
        let (entries, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        Ok(Response::new(cqs::ListAuditResponse { entries, next_page_token }))
    }

    async fn control_operation(
        &self,
        request: Request<cqs::ControlOperationRequest>,
    ) -> Result<Response<cqs::ControlOperationResponse>, Status> {
        let mut state = self.open(&request, "ControlOperation")?;
        let asked = request.into_inner();
        state.controlled.push(asked.clone());
        let found = state
            .operations
            .iter()
            .find(|known| known.tenant_id == asked.tenant_id && known.tracking_id == asked.tracking_id);
        let Some(operation) = found.cloned() else {
            return refuse(&Refusal::new(ErrorCode::NotFound, "no such operation"));
        };
        let cancel = matches!(asked.action, Some(cqs::control_operation_request::Action::Cancel(_)));
        let receipt = cancel.then(|| cqs::CancelReceipt { not_started: 7, ..cqs::CancelReceipt::default() });
        Ok(Response::new(cqs::ControlOperationResponse { operation: Some(operation), receipt }))
    }

    async fn set_brake(&self, request: Request<cqs::SetBrakeRequest>) -> Result<Response<cqs::Brake>, Status> {
        let mut state = self.open(&request, "SetBrake")?;
        let asked = request.into_inner();
        let act = cqs::Act { operator_subject: asked.operator_subject, reason: asked.reason, ..cqs::Act::default() };
        state.brake = cqs::Brake { on: asked.on.then_some(act) };
        Ok(Response::new(state.brake.clone()))
    }

    async fn get_brake(&self, request: Request<cqs::GetBrakeRequest>) -> Result<Response<cqs::Brake>, Status> {
        Ok(Response::new(self.open(&request, "GetBrake")?.brake.clone()))
    }

    async fn get_overview(&self, request: Request<cqs::GetOverviewRequest>) -> Result<Response<cqs::Overview>, Status> {
        Ok(Response::new(self.open(&request, "GetOverview")?.overview.clone()))
    }

    async fn list_failures(
        &self,
        request: Request<cqs::ListFailuresRequest>,
    ) -> Result<Response<cqs::ListFailuresResponse>, Status> {
        drop(self.open(&request, "ListFailures")?);
        Ok(Response::new(cqs::ListFailuresResponse::default()))
    }

    async fn retry_failures(
        &self,
        request: Request<cqs::RetryFailuresRequest>,
    ) -> Result<Response<cqs::RetryFailuresResponse>, Status> {
        drop(self.open(&request, "RetryFailures")?);
        Ok(Response::new(cqs::RetryFailuresResponse { items: 1, ..cqs::RetryFailuresResponse::default() }))
    }

    async fn get_record_fates(
        &self,
        request: Request<cqs::GetRecordFatesRequest>,
    ) -> Result<Response<cqs::GetRecordFatesResponse>, Status> {
        let state = self.open(&request, "GetRecordFates")?;
        let asked = &request.get_ref().dto_ids;
        let fates = state.fates.iter().filter(|fate| asked.contains(&fate.dto_id)).cloned().collect();
        Ok(Response::new(cqs::GetRecordFatesResponse { fates }))
    }

    async fn create_or_configure_queue(
        &self,
        _: Request<cqs::CreateOrConfigureQueueRequest>,
    ) -> Result<Response<cqs::CreateOrConfigureQueueResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn dequeue(&self, _: Request<cqs::DequeueRequest>) -> Result<Response<cqs::DequeueResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn complete(&self, _: Request<cqs::CompleteRequest>) -> Result<Response<cqs::CompleteResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn extend_lease(
        &self,
        _: Request<cqs::ExtendLeaseRequest>,
    ) -> Result<Response<cqs::ExtendLeaseResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn re_enqueue(&self, _: Request<cqs::ReEnqueueRequest>) -> Result<Response<cqs::ReEnqueueResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn self_enqueue(
        &self,
        _: Request<cqs::SelfEnqueueRequest>,
    ) -> Result<Response<cqs::SelfEnqueueResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }
}
