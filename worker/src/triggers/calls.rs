//! The calls a trigger makes, as its service.

use std::time::Duration;

use domain::{AliasName, DtoType, ErrorCode, Refusal, TenantId, TrackingId, Urn};
use proto::{
    CqsClient, DtoFlowClient, Transport,
    cqs::v1::{
        AppendAuditRequest, AuditEntry, GetOperationRequest, Operation, SelfEnqueueRequest, SelfEnqueueResponse,
    },
    dtoflow::v1::{CountByAliasRequest, GetKey, GetManyRequest, ListByAliasRequest, ListStoresByAliasRequest},
    refusal_from_status,
};
use tonic::{Response, Status};

use super::ask::Page;

/// How long one call may take: an operator waits for the answer, and every call here is O(1).
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// CQS and DTOflow, as the service that owns the trigger.
pub(super) struct Calls {
    cqs: CqsClient,
    dtoflow: DtoFlowClient,
}

async fn within<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Refusal> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(refusal_from_status(&status)),
        Err(_) => Err(Refusal::new(ErrorCode::DeadlineExceeded, "the platform did not answer in time")),
    }
}

impl Calls {
    pub(super) fn new(transport: &Transport) -> Self {
        Self { cqs: proto::cqs_client(transport.clone()), dtoflow: proto::dtoflow_client(transport.clone()) }
    }

    /// The operation of that tracking id; none when there is none.
    pub(super) async fn operation(&self, tenant: &TenantId, id: &TrackingId) -> Result<Option<Operation>, Refusal> {
        let request = GetOperationRequest { tenant_id: tenant.to_string(), tracking_id: id.to_string() };
        match within(self.cqs.clone().get_operation(request)).await {
            Ok(operation) => Ok(Some(operation)),
            Err(refusal) if refusal.code == ErrorCode::NotFound => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) async fn self_enqueue(&self, request: SelfEnqueueRequest) -> Result<SelfEnqueueResponse, Refusal> {
        within(self.cqs.clone().self_enqueue(request)).await
    }

    pub(super) async fn append_audit(&self, entry: AuditEntry) -> Result<(), Refusal> {
        within(self.cqs.clone().append_audit(AppendAuditRequest { entries: vec![entry] })).await.map(drop)
    }

    pub(super) async fn exists(&self, dto_type: DtoType, urn: &Urn) -> Result<bool, Refusal> {
        // The largest version: only whether it exists is wanted, not its payload.
        let key = GetKey { dto_type: dto_type.to_string(), dto_id: urn.to_string(), known_version: i64::MAX };
        let answer = within(self.dtoflow.clone().get_many(GetManyRequest { keys: vec![key] })).await?;
        Ok(answer.dtos.first().is_some_and(|dto| dto.exists))
    }

    pub(super) async fn count(&self, dto_type: DtoType, alias: AliasName, parent: &Urn) -> Result<i64, Refusal> {
        let request = CountByAliasRequest {
            dto_type: dto_type.to_string(),
            alias_name: alias.to_string(),
            parent_ids: vec![parent.to_string()],
        };
        let answer = within(self.dtoflow.clone().count_by_alias(request)).await?;
        answer.counts.first().copied().ok_or_else(Refusal::internal)
    }

    /// A page of the stores that have records under a tenant's parent, with their counts, and the next page's token.
    pub(super) async fn stores(
        &self,
        (dto_type, alias): (DtoType, AliasName),
        parent: &Urn,
        page: &Page,
    ) -> Result<(Vec<(String, i64)>, String), Refusal> {
        let request = ListStoresByAliasRequest {
            dto_type: dto_type.to_string(),
            alias_name: alias.to_string(),
            parent_id: parent.to_string(),
            page_size: page.size,
            page_token: page.token.clone(),
        };
        let answer = within(self.dtoflow.clone().list_stores_by_alias(request)).await?;
        let stores = answer.stores.into_iter().map(|store| (store.store_id, store.count)).collect();
        Ok((stores, answer.next_page_token))
    }

    /// The first records under a parent, by id.
    pub(super) async fn first(
        &self,
        dto_type: DtoType,
        alias: AliasName,
        parent: &Urn,
        most: i32,
    ) -> Result<Vec<Urn>, Refusal> {
        let request = ListByAliasRequest {
            dto_type: dto_type.to_string(),
            alias_name: alias.to_string(),
            parent_ids: vec![parent.to_string()],
            page_size: most,
            page_token: String::new(),
        };
        let answer = within(self.dtoflow.clone().list_by_alias(request)).await?;
        Ok(answer.entries.iter().filter_map(|entry| Urn::record(dto_type, &entry.dto_id).ok()).collect())
    }
}
