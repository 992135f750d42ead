//! CQS, DTOflow and the triggers of the services, as far as the gateway can see them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};

use domain::{DtoType, ErrorCode, Refusal, Urn};
use prost::Message;
use proto::{
    cqs::v1::{self as cqs, change_queue_service_server::ChangeQueueService},
    dtoflow::v1::{self as dtoflow, dto_flow_service_server::DtoFlowService},
    ecc_image_render::v1::{
        PreviewModelRefreshRequest, TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse,
        TriggerModelRefreshRequest, TriggerModelRefreshResponse,
        ecc_image_render_triggers_server::EccImageRenderTriggers,
    },
    hardware_exporter::v1::{
        TriggerAccessPointReexportRequest, TriggerAccessPointReexportResponse, TriggerLabelReexportRequest,
        TriggerLabelReexportResponse, TriggerStoreReexportRequest, TriggerStoreReexportResponse,
        hardware_exporter_triggers_server::HardwareExporterTriggers,
    },
    records::v1::{EccLink, StoreEsl, StudioLink},
    status_from_refusal,
    studio_renderer::v1::{
        PreviewDesignRefreshRequest, StoreLabels, TriggerDesignRefreshRequest, TriggerDesignRefreshResponse,
        TriggerStudioStoreRerenderRequest, TriggerStudioStoreRerenderResponse,
        studio_renderer_triggers_server::StudioRendererTriggers,
    },
    triggers::v1::{LabelPreview, PreviewResponse},
};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};

/// Refuses whom the registry does not let call `rpc`.
fn gate<T>(request: &Request<T>, rpc: &str) -> Result<(), Status> {
    daemon::identity::caller(request)
        .and_then(|caller| caller.require_rpc(rpc))
        .map_err(|refusal| status_from_refusal(&refusal))
}

fn refuse<T>(refusal: &Refusal) -> Result<T, Status> {
    Err(status_from_refusal(refusal))
}

/// How a fake's next calls end instead of as usual.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// With this status, without doing anything.
    Status(tonic::Code),
    /// As the peer's own refusal.
    Refusal(Refusal),
}

impl Fault {
    fn status(&self) -> Status {
        match self {
            Self::Status(code) => Status::new(*code, "fault"),
            Self::Refusal(refusal) => status_from_refusal(refusal),
        }
    }
}

/// Lets a test hold calls inside a fake and let them go.
#[derive(Clone)]
pub(crate) struct Hold {
    entered: Arc<AtomicUsize>,
    release: Arc<Semaphore>,
}

impl Hold {
    /// Holds calls until `let_go`.
    pub(crate) fn closed() -> Self {
        Self { entered: Arc::default(), release: Arc::new(Semaphore::new(0)) }
    }

    async fn pass(&self) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        self.release.acquire().await.unwrap().forget();
    }

    /// Waits until that many calls came in.
    pub(crate) async fn held(&self, calls: usize) {
        while self.entered.load(Ordering::SeqCst) < calls {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn let_go(&self, calls: usize) {
        self.release.add_permits(calls);
    }
}

#[derive(Default)]
pub(crate) struct CqsState {
    pub(crate) audit: Vec<cqs::AuditEntry>,
    pub(crate) operations: Vec<cqs::Operation>,
    pub(crate) fates: Vec<cqs::RecordFate>,
    pub(crate) controlled: Vec<cqs::ControlOperationRequest>,
    pub(crate) brake: cqs::Brake,
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

/// One page of `all`, from the number that the token is.
fn page<T: Clone>(all: &[T], size: i32, token: &str) -> Result<(Vec<T>, String), Status> {
    let from: usize = match token {
        "" => 0,
        text => match text.strip_prefix("at-").and_then(|text| text.parse().ok()) {
            Some(from) => from,
            None => return refuse(&Refusal::field("page_token", "is not one of ours")),
        },
    };
    let to = all.len().min(from + usize::try_from(size).unwrap());
    let next = if to < all.len() { format!("at-{to}") } else { String::new() };
    Ok((all[from.min(to)..to].to_vec(), next))
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

#[derive(Default)]
pub(crate) struct DtoState {
    pub(crate) records: BTreeMap<(DtoType, String), Vec<u8>>,
    /// Types and URNs, in the order they were touched.
    pub(crate) touched: Vec<(String, String)>,
    pub(crate) fault: Option<Fault>,
    /// How many `TouchDto` calls may still succeed.
    pub(crate) touch_calls_left: Option<u32>,
    pub(crate) touch_hold: Option<Hold>,
}

/// DTOflow: records and the aliases the gateway asks for.
#[derive(Clone, Default)]
pub(crate) struct FakeDtoFlow(Arc<Mutex<DtoState>>);

impl FakeDtoFlow {
    pub(crate) fn state(&self) -> MutexGuard<'_, DtoState> {
        self.0.lock().unwrap()
    }

    pub(crate) fn put(&self, dto_type: DtoType, urn: &str, record: &impl Message) {
        assert!(Urn::record(dto_type, urn).is_ok(), "{urn}");
        self.state().records.insert((dto_type, urn.to_owned()), record.encode_to_vec());
    }

    fn open<T>(&self, request: &Request<T>, rpc: &str) -> Result<MutexGuard<'_, DtoState>, Status> {
        gate(request, &format!("dtoflow.v1.DtoFlowService/{rpc}"))?;
        let state = self.state();
        match &state.fault {
            Some(fault) => Err(fault.status()),
            None => Ok(state),
        }
    }
}

impl DtoState {
    fn below(&self, dto_type: &str, alias: &str, parent: &str) -> Vec<String> {
        let dto_type: DtoType = dto_type.parse().unwrap();
        let of_type = self.records.iter().filter(|((known, _), _)| *known == dto_type);
        match alias {
            "by_store" | "by_tenant" => {
                let prefix = format!("{parent}/");
                of_type.filter(|((_, urn), _)| urn.starts_with(&prefix)).map(|((_, urn), _)| urn.clone()).collect()
            }
            "by_eccmodel" => of_type
                .filter(|((_, urn), payload)| {
                    let link = EccLink::decode(payload.as_slice()).unwrap();
                    let store = urn.split("/ecclinks/").next().unwrap();
                    format!("{store}/eccmodels/{}", link.model_id) == parent
                })
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            "by_accesspoint" => of_type
                .filter(|((_, urn), payload)| {
                    let esl = StoreEsl::decode(payload.as_slice()).unwrap();
                    let store = urn.split("/esls/").next().unwrap();
                    format!("{store}/accesspoints/{}", esl.accesspoint_id) == parent
                })
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            "by_storeesl" => of_type
                .filter(|((_, urn), _)| urn.replace("/eslimages/", "/esls/") == parent)
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            // Under the tenant's parent, and seen from a store.
            "by_design" => of_type
                .filter(|((_, urn), payload)| {
                    let link = StudioLink::decode(payload.as_slice()).unwrap();
                    let store = urn.split("/studiolinks/").next().unwrap();
                    let tenant = store.split("/s/").next().unwrap();
                    [store, tenant].iter().any(|level| format!("{level}/designs/{}", link.design_id) == parent)
                })
                .map(|((_, urn), _)| urn.clone())
                .collect(),
            other => panic!("the gateway does not ask by {other}"),
        }
    }

    fn by_store(&self, dto_type: &str, alias: &str, parent: &str) -> BTreeMap<String, i64> {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for urn in self.below(dto_type, alias, parent) {
            *counts.entry(urn.split('/').nth(3).unwrap().to_owned()).or_default() += 1;
        }
        counts
    }
}

#[tonic::async_trait]
impl DtoFlowService for FakeDtoFlow {
    async fn get_many(
        &self,
        request: Request<dtoflow::GetManyRequest>,
    ) -> Result<Response<dtoflow::GetManyResponse>, Status> {
        let state = self.open(&request, "GetMany")?;
        let keys = &request.get_ref().keys;
        assert!(!keys.is_empty() && keys.len() <= 4_096);
        let dtos = keys
            .iter()
            .map(|key| match state.records.get(&(key.dto_type.parse().unwrap(), key.dto_id.clone())) {
                None => dtoflow::Dto::default(),
                Some(payload) => dtoflow::Dto {
                    exists: true,
                    version: 1,
                    payload: if key.known_version >= 1 { Vec::new().into() } else { payload.clone().into() },
                    updated_at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
                    written_by: "svc:record-import".to_owned(),
                    tracking_id: String::new(),
                },
            })
            .collect();
        Ok(Response::new(dtoflow::GetManyResponse { dtos }))
    }

    async fn list_by_alias(
        &self,
        request: Request<dtoflow::ListByAliasRequest>,
    ) -> Result<Response<dtoflow::ListByAliasResponse>, Status> {
        let state = self.open(&request, "ListByAlias")?;
        let asked = request.get_ref();
        let all = state.below(&asked.dto_type, &asked.alias_name, &asked.parent_ids[0]);
        let (urns, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        let entries = urns.into_iter().map(|dto_id| dtoflow::AliasEntry { parent_index: 0, dto_id }).collect();
        Ok(Response::new(dtoflow::ListByAliasResponse { entries, next_page_token }))
    }

    async fn count_by_alias(
        &self,
        request: Request<dtoflow::CountByAliasRequest>,
    ) -> Result<Response<dtoflow::CountByAliasResponse>, Status> {
        let state = self.open(&request, "CountByAlias")?;
        let asked = request.get_ref();
        let tenants: std::collections::BTreeSet<&str> =
            asked.parent_ids.iter().map(|parent| parent.split('/').nth(1).unwrap()).collect();
        assert_eq!(tenants.len(), 1, "all parents of one call are under one tenant");
        let counts = asked
            .parent_ids
            .iter()
            .map(|parent| i64::try_from(state.below(&asked.dto_type, &asked.alias_name, parent).len()).unwrap())
            .collect();
        Ok(Response::new(dtoflow::CountByAliasResponse { counts }))
    }

    async fn list_stores_by_alias(
        &self,
        request: Request<dtoflow::ListStoresByAliasRequest>,
    ) -> Result<Response<dtoflow::ListStoresByAliasResponse>, Status> {
        let state = self.open(&request, "ListStoresByAlias")?;
        let asked = request.get_ref();
        let counts = state.by_store(&asked.dto_type, &asked.alias_name, &asked.parent_id);
        let all: Vec<_> = counts.into_iter().map(|(store_id, count)| dtoflow::StoreCount { store_id, count }).collect();
        let (stores, next_page_token) = page(&all, asked.page_size, &asked.page_token)?;
        Ok(Response::new(dtoflow::ListStoresByAliasResponse { stores, next_page_token }))
    }

    async fn touch_dto(
        &self,
        request: Request<dtoflow::TouchDtoRequest>,
    ) -> Result<Response<dtoflow::TouchDtoResponse>, Status> {
        let hold = self.state().touch_hold.clone();
        if let Some(hold) = hold {
            hold.pass().await;
        }
        let mut state = self.open(&request, "TouchDto")?;
        if let Some(left) = &mut state.touch_calls_left {
            if *left == 0 {
                return Err(Status::unavailable("went away"));
            }
            *left -= 1;
        }
        let asked = request.into_inner();
        let dto_type: DtoType = asked.dto_type.parse().unwrap();
        let (found, missing): (Vec<_>, Vec<_>) =
            asked.dto_id.into_iter().partition(|urn| state.records.contains_key(&(dto_type, urn.clone())));
        let touched = i32::try_from(found.len()).unwrap();
        state.touched.extend(found.into_iter().map(|urn| (asked.dto_type.clone(), urn)));
        Ok(Response::new(dtoflow::TouchDtoResponse { touched, missing }))
    }

    async fn put_many(
        &self,
        _: Request<dtoflow::PutManyRequest>,
    ) -> Result<Response<dtoflow::WriteManyResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }

    async fn delete_many(
        &self,
        _: Request<dtoflow::DeleteManyRequest>,
    ) -> Result<Response<dtoflow::WriteManyResponse>, Status> {
        Err(Status::unimplemented("not the gateway's"))
    }
}

/// A request of any trigger, as far as all of them are alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) trigger: domain::Trigger,
    pub(crate) tenant_id: String,
    /// What it is about.
    pub(crate) scope: String,
    pub(crate) reason: String,
    pub(crate) tracking_id: String,
    pub(crate) dry_run: bool,
    pub(crate) operator_subject: String,
    pub(crate) sla_timestamp: Option<prost_types::Timestamp>,
    pub(crate) sla_is_default: bool,
    pub(crate) approval: Option<cqs::ApprovalRequired>,
}

/// An answer of any trigger, as far as all of them are alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    items_enqueued: i32,
    labels: i64,
    sample_label_ids: Vec<String>,
    replayed: bool,
    sla_timestamp: Option<prost_types::Timestamp>,
    accepted_at: Option<prost_types::Timestamp>,
}

#[derive(Default)]
pub(crate) struct TriggerState {
    /// Accepted requests with their first answers.
    pub(crate) accepted: Vec<(Seen, Told)>,
    /// Every request that came, dry runs and refused ones included.
    pub(crate) seen: Vec<Seen>,
    pub(crate) fault: Option<Fault>,
    pub(crate) hold: Option<Hold>,
}

/// The triggers of both renderers and the exporter. Writes the audit rows of its own refusals, as the real ones do.
#[derive(Clone)]
pub(crate) struct FakeTriggers {
    state: Arc<Mutex<TriggerState>>,
    cqs: FakeCqs,
    dtoflow: FakeDtoFlow,
}

/// What a trigger looks for.
struct Look {
    /// The record that must exist; none: a label of the store.
    exists: Option<DtoType>,
    links: (&'static str, &'static str),
    /// The refused field when it does not.
    field: &'static str,
}

const BY_MODEL: Look =
    Look { exists: Some(DtoType::EccModel), links: ("ecclink.v1", "by_eccmodel"), field: "model_id" };
const BY_DESIGN: Look =
    Look { exists: Some(DtoType::Design), links: ("studiolink.v1", "by_design"), field: "design_id" };
const ECC_OF_STORE: Look = Look { exists: None, links: ("ecclink.v1", "by_store"), field: "store_id" };
const STUDIO_OF_STORE: Look = Look { exists: None, links: ("studiolink.v1", "by_store"), field: "store_id" };
const PICTURES_OF_STORE: Look = Look { exists: None, links: ("eslimage.v1", "by_store"), field: "store_id" };
const LABELS_OF_ACCESS_POINT: Look =
    Look { exists: Some(DtoType::AccessPoint), links: ("storeesl.v1", "by_accesspoint"), field: "access_point_id" };
const PICTURE_OF_LABEL: Look =
    Look { exists: Some(DtoType::StoreEsl), links: ("eslimage.v1", "by_storeesl"), field: "label_id" };

/// The fields that every trigger's request has.
macro_rules! seen {
    ($trigger:ident, $request:expr, $scope:expr) => {
        Seen {
            trigger: domain::Trigger::$trigger,
            tenant_id: $request.tenant_id.clone(),
            scope: $scope,
            reason: $request.reason.clone(),
            tracking_id: $request.tracking_id.clone(),
            dry_run: $request.dry_run,
            operator_subject: $request.operator_subject.clone(),
            sla_timestamp: $request.sla_timestamp,
            sla_is_default: $request.sla_is_default,
            approval: $request.approval,
        }
    };
}

/// A response message with the fields that every trigger's has.
macro_rules! told {
    ($message:ident, $told:expr, { $($field:ident: $value:expr),* }) => {
        Ok(Response::new($message {
            items_enqueued: $told.items_enqueued,
            labels: $told.labels,
            sample_label_ids: $told.sample_label_ids,
            replayed: $told.replayed,
            sla_timestamp: $told.sla_timestamp,
            accepted_at: $told.accepted_at,
            $($field: $value),*
        }))
    };
}

impl FakeTriggers {
    pub(crate) fn new(cqs: FakeCqs, dtoflow: FakeDtoFlow) -> Self {
        Self { state: Arc::default(), cqs, dtoflow }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, TriggerState> {
        self.state.lock().unwrap()
    }

    fn refused<T>(&self, asked: &Seen, refusal: &Refusal) -> Result<T, Status> {
        self.cqs.state().audit.push(cqs::AuditEntry {
            service: format!("svc:{}", asked.trigger.service()),
            tenant_id: asked.tenant_id.clone(),
            tracking_id: asked.tracking_id.clone(),
            outcome: cqs::AuditOutcome::Refused.into(),
            error_code: refusal.code.to_string(),
            ..cqs::AuditEntry::default()
        });
        refuse(refusal)
    }

    async fn answer(&self, asked: Seen, look: &Look) -> Result<Told, Status> {
        self.state().seen.push(asked.clone());
        let hold = self.state().hold.clone();
        if let Some(hold) = hold {
            hold.pass().await;
        }
        if let Some(fault) = self.state().fault.clone() {
            return match fault {
                Fault::Refusal(refusal) => self.refused(&asked, &refusal),
                Fault::Status(_) => Err(fault.status()),
            };
        }
        let (known, links) = {
            let records = self.dtoflow.state();
            let known = match look.exists {
                Some(dto_type) => records.records.contains_key(&(dto_type, asked.scope.clone())),
                None => !records.below("storeesl.v1", "by_store", &asked.scope).is_empty(),
            };
            (known, records.below(look.links.0, look.links.1, &asked.scope))
        };
        if !known {
            return self.refused(&asked, &Refusal::new(ErrorCode::NotFound, "no such thing").at(look.field));
        }
        let ids = links.iter().map(|urn| urn.rsplit('/').next().unwrap().to_owned());
        let mut told = Told {
            labels: i64::try_from(links.len()).unwrap(),
            sample_label_ids: ids.take(10).collect(),
            ..Told::default()
        };
        let earlier = self
            .state()
            .accepted
            .iter()
            .find(|(known, _)| known.tenant_id == asked.tenant_id && known.tracking_id == asked.tracking_id)
            .cloned();
        if let Some((known, first)) = earlier {
            let differs = [
                ("items[0].parent_id", known.scope != asked.scope),
                ("trigger", known.trigger != asked.trigger),
                ("reason", known.reason != asked.reason),
                ("operator_subject", known.operator_subject != asked.operator_subject),
                (
                    "sla_timestamp",
                    !(known.sla_is_default && asked.sla_is_default) && known.sla_timestamp != asked.sla_timestamp,
                ),
            ];
            return match differs.iter().find(|(_, differs)| *differs) {
                None if asked.dry_run => Ok(Told { replayed: true, ..told }),
                None => Ok(Told { replayed: true, ..first }),
                Some((field, _)) => {
                    let refusal = Refusal::new(ErrorCode::AlreadyExists, "the tracking id names another request");
                    self.refused(&asked, &refusal.at(*field))
                }
            };
        }
        if asked.dry_run {
            return Ok(told);
        }
        told.items_enqueued = 1;
        told.sla_timestamp = asked.sla_timestamp;
        told.accepted_at = Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 });
        self.state().accepted.push((asked, told.clone()));
        Ok(told)
    }

    /// A preview of two labels: one that changes, one that fails.
    fn previewed(&self, scope: &str, look: &Look) -> Result<Response<PreviewResponse>, Status> {
        let records = self.dtoflow.state();
        if !look.exists.is_some_and(|dto_type| records.records.contains_key(&(dto_type, scope.to_owned()))) {
            return refuse(&Refusal::new(ErrorCode::NotFound, "no such thing").at(look.field));
        }
        let labels = i64::try_from(records.below(look.links.0, look.links.1, scope).len()).unwrap();
        let preview = |label: &str| LabelPreview {
            store_id: "s1".to_owned(),
            label_id: label.to_owned(),
            current: crate::harness::small_picture().pack().unwrap().into(),
            ..LabelPreview::default()
        };
        let blank = picture::Picture::new(8, 4, picture::Palette::Bw, vec![0; 32]).unwrap();
        let changed = LabelPreview { new: blank.pack().unwrap().into(), changes: true, ..preview("E1") };
        let failed = LabelPreview { cause: "price does not fit".to_owned(), ..preview("E2") };
        Ok(Response::new(PreviewResponse { labels, previews: vec![changed, failed] }))
    }

    /// One page of the stores with links to a design.
    fn stores(&self, scope: &str, token: &str) -> Result<(Vec<StoreLabels>, String), Status> {
        let counts = self.dtoflow.state().by_store("studiolink.v1", "by_design", scope);
        let all: Vec<_> = counts.into_iter().map(|(store_id, labels)| StoreLabels { store_id, labels }).collect();
        page(&all, 200, token)
    }
}

#[tonic::async_trait]
impl EccImageRenderTriggers for FakeTriggers {
    async fn trigger_model_refresh(
        &self,
        request: Request<TriggerModelRefreshRequest>,
    ) -> Result<Response<TriggerModelRefreshResponse>, Status> {
        gate(&request, "ecc_image_render.v1.EccImageRenderTriggers/TriggerModelRefresh")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}/eccmodels/{}", asked.tenant_id, asked.store_id, asked.model_id);
        let told = self.answer(seen!(ModelRefresh, asked, scope), &BY_MODEL).await?;
        told!(TriggerModelRefreshResponse, told, {})
    }

    async fn trigger_ecc_store_rerender(
        &self,
        request: Request<TriggerEccStoreRerenderRequest>,
    ) -> Result<Response<TriggerEccStoreRerenderResponse>, Status> {
        gate(&request, "ecc_image_render.v1.EccImageRenderTriggers/TriggerEccStoreRerender")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}", asked.tenant_id, asked.store_id);
        let told = self.answer(seen!(EccStoreRerender, asked, scope), &ECC_OF_STORE).await?;
        told!(TriggerEccStoreRerenderResponse, told, {})
    }

    async fn preview_model_refresh(
        &self,
        request: Request<PreviewModelRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        gate(&request, "ecc_image_render.v1.EccImageRenderTriggers/PreviewModelRefresh")?;
        let asked = request.into_inner();
        self.previewed(&format!("t/{}/s/{}/eccmodels/{}", asked.tenant_id, asked.store_id, asked.model_id), &BY_MODEL)
    }
}

#[tonic::async_trait]
impl StudioRendererTriggers for FakeTriggers {
    async fn trigger_design_refresh(
        &self,
        request: Request<TriggerDesignRefreshRequest>,
    ) -> Result<Response<TriggerDesignRefreshResponse>, Status> {
        gate(&request, "studio_renderer.v1.StudioRendererTriggers/TriggerDesignRefresh")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/designs/{}", asked.tenant_id, asked.design_id);
        let told = self.answer(seen!(DesignRefresh, asked, scope.clone()), &BY_DESIGN).await?;
        let (stores, next_page_token) =
            if asked.dry_run { self.stores(&scope, &asked.page_token)? } else { (Vec::new(), String::new()) };
        let store_count =
            i64::try_from(self.dtoflow.state().by_store("studiolink.v1", "by_design", &scope).len()).unwrap();
        told!(TriggerDesignRefreshResponse, told, {
            stores: stores, next_page_token: next_page_token, store_count: store_count
        })
    }

    async fn trigger_studio_store_rerender(
        &self,
        request: Request<TriggerStudioStoreRerenderRequest>,
    ) -> Result<Response<TriggerStudioStoreRerenderResponse>, Status> {
        gate(&request, "studio_renderer.v1.StudioRendererTriggers/TriggerStudioStoreRerender")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}", asked.tenant_id, asked.store_id);
        let told = self.answer(seen!(StudioStoreRerender, asked, scope), &STUDIO_OF_STORE).await?;
        told!(TriggerStudioStoreRerenderResponse, told, {})
    }

    async fn preview_design_refresh(
        &self,
        request: Request<PreviewDesignRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        gate(&request, "studio_renderer.v1.StudioRendererTriggers/PreviewDesignRefresh")?;
        let asked = request.into_inner();
        self.previewed(&format!("t/{}/designs/{}", asked.tenant_id, asked.design_id), &BY_DESIGN)
    }
}

#[tonic::async_trait]
impl HardwareExporterTriggers for FakeTriggers {
    async fn trigger_store_reexport(
        &self,
        request: Request<TriggerStoreReexportRequest>,
    ) -> Result<Response<TriggerStoreReexportResponse>, Status> {
        gate(&request, "hardware_exporter.v1.HardwareExporterTriggers/TriggerStoreReexport")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}", asked.tenant_id, asked.store_id);
        let told = self.answer(seen!(StoreReexport, asked, scope), &PICTURES_OF_STORE).await?;
        told!(TriggerStoreReexportResponse, told, {})
    }

    async fn trigger_access_point_reexport(
        &self,
        request: Request<TriggerAccessPointReexportRequest>,
    ) -> Result<Response<TriggerAccessPointReexportResponse>, Status> {
        gate(&request, "hardware_exporter.v1.HardwareExporterTriggers/TriggerAccessPointReexport")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}/accesspoints/{}", asked.tenant_id, asked.store_id, asked.access_point_id);
        let told = self.answer(seen!(AccessPointReexport, asked, scope), &LABELS_OF_ACCESS_POINT).await?;
        told!(TriggerAccessPointReexportResponse, told, {})
    }

    async fn trigger_label_reexport(
        &self,
        request: Request<TriggerLabelReexportRequest>,
    ) -> Result<Response<TriggerLabelReexportResponse>, Status> {
        gate(&request, "hardware_exporter.v1.HardwareExporterTriggers/TriggerLabelReexport")?;
        let asked = request.into_inner();
        let scope = format!("t/{}/s/{}/esls/{}", asked.tenant_id, asked.store_id, asked.label_id);
        let told = self.answer(seen!(LabelReexport, asked, scope), &PICTURE_OF_LABEL).await?;
        told!(TriggerLabelReexportResponse, told, {})
    }
}
