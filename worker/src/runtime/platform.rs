//! The calls to CQS and DTOflow, as one service.

use std::time::Duration;

use domain::{ErrorCode, LeaseRef, Outcome, QueueName, Refusal};
use proto::{
    CqsClient, DtoFlowClient, Transport,
    cqs::v1::{
        AppendAuditRequest, AuditEntry, CompleteRequest, CreateOrConfigureQueueRequest, DequeueRequest,
        DtoChangeNotification, ExtendLeaseRequest, ReEnqueueRequest, ReEnqueueResponse, Subscription,
    },
    dtoflow::v1::{
        DeleteManyRequest, Dto, GetKey, GetManyRequest, ListByAliasRequest, ListByAliasResponse,
        ListStoresByAliasRequest, ListStoresByAliasResponse, PutManyRequest, TouchDtoRequest, WriteResult,
    },
    outcome_to_wire, shape_to_wire, split_item_to_wire, timestamp_to_wire,
};
use tonic::{Response, Status};

use super::{AliasQuery, CallError, Service, split::Page};

/// How long a call may take beyond what it waits for by itself: a full bulk write on a busy disk stays well below.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// CQS and DTOflow, called as one service about its own queue. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Platform {
    cqs: CqsClient,
    dtoflow: DtoFlowClient,
    queue: QueueName,
}

/// A leased batch, as CQS gave it.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) lease: LeaseRef,
    pub(crate) notifications: Vec<DtoChangeNotification>,
}

/// What joined a lease.
#[derive(Debug)]
pub(crate) struct Further {
    pub(crate) notifications: Vec<DtoChangeNotification>,
    /// Others wait for the store, or the lane was stopped.
    pub(crate) give_way: bool,
}

/// How a batch is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Ask<'a> {
    pub(crate) max_items: i32,
    pub(crate) wait_ms: i32,
    pub(crate) lease_ms: i32,
    pub(crate) worker_id: &'a str,
}

async fn within<T>(limit: Duration, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, CallError> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(status.into()),
        Err(_) => {
            Err(CallError::NotNow(Refusal::new(ErrorCode::DeadlineExceeded, "the platform did not answer in time")))
        }
    }
}

impl Platform {
    /// Over `transport`, which carries the credentials of the service that owns `queue`.
    pub(crate) fn new(transport: Transport, queue: QueueName) -> Self {
        Self { cqs: proto::cqs_client(transport.clone()), dtoflow: proto::dtoflow_client(transport), queue }
    }

    pub(crate) async fn configure(&self, service: &dyn Service) -> Result<(), CallError> {
        let request = CreateOrConfigureQueueRequest {
            queue_name: self.queue.to_string(),
            subscriptions: service
                .subscriptions()
                .iter()
                .map(|dto_type| Subscription { dto_type: dto_type.to_string() })
                .collect(),
            shapes: service.shapes().iter().copied().map(shape_to_wire).collect(),
            exclusive_by_store: service.exclusive_by_store(),
        };
        within(CALL_LIMIT, self.cqs.clone().create_or_configure_queue(request)).await.map(drop)
    }

    pub(crate) async fn dequeue(&self, ask: &Ask<'_>) -> Result<Option<Leased>, CallError> {
        let request = DequeueRequest {
            queue_name: self.queue.to_string(),
            max_items: ask.max_items,
            wait_ms: ask.wait_ms,
            lease_ms: ask.lease_ms,
            worker_id: ask.worker_id.to_owned(),
            lease_generation: 0,
        };
        let wait = Duration::from_millis(u64::try_from(ask.wait_ms).unwrap_or(0));
        let response = within(wait + CALL_LIMIT, self.cqs.clone().dequeue(request)).await?;
        Ok(response.lease.filter(|_| !response.notifications.is_empty()).map(|lease| Leased {
            lease: LeaseRef { queue: self.queue.clone(), generation: lease.generation },
            notifications: response.notifications,
        }))
    }

    /// Further items for a lease that holds a store, now.
    pub(crate) async fn further(&self, lease: &LeaseRef, ask: &Ask<'_>) -> Result<Further, CallError> {
        let request = DequeueRequest {
            queue_name: lease.queue.to_string(),
            max_items: ask.max_items,
            wait_ms: 0,
            lease_ms: ask.lease_ms,
            worker_id: ask.worker_id.to_owned(),
            lease_generation: lease.generation,
        };
        let response = within(CALL_LIMIT, self.cqs.clone().dequeue(request)).await?;
        Ok(Further { notifications: response.notifications, give_way: response.give_way })
    }

    pub(crate) async fn extend(&self, lease: &LeaseRef, lease_ms: i32) -> Result<(), CallError> {
        let request =
            ExtendLeaseRequest { queue_name: lease.queue.to_string(), lease_generation: lease.generation, lease_ms };
        within(CALL_LIMIT, self.cqs.clone().extend_lease(request)).await.map(drop)
    }

    pub(crate) async fn complete(&self, lease: &LeaseRef, outcomes: &[(i64, Outcome)]) -> Result<i32, CallError> {
        let request = CompleteRequest {
            queue_name: lease.queue.to_string(),
            lease_generation: lease.generation,
            outcomes: outcomes.iter().map(|(id, outcome)| outcome_to_wire(*id, outcome)).collect(),
        };
        within(CALL_LIMIT, self.cqs.clone().complete(request)).await.map(|response| response.dead)
    }

    pub(crate) async fn re_enqueue(
        &self,
        lease: &LeaseRef,
        notification_id: i64,
        page: &Page,
    ) -> Result<ReEnqueueResponse, CallError> {
        let request = ReEnqueueRequest {
            queue_name: lease.queue.to_string(),
            lease_generation: lease.generation,
            notification_id,
            items: page.children.iter().map(split_item_to_wire).collect(),
            next_cursor: page.next_cursor.clone(),
            sla_timestamp: page.lane_sla.map(timestamp_to_wire),
        };
        within(CALL_LIMIT, self.cqs.clone().re_enqueue(request)).await
    }

    pub(crate) async fn get_many(&self, keys: Vec<GetKey>) -> Result<Vec<Dto>, CallError> {
        within(CALL_LIMIT, self.dtoflow.clone().get_many(GetManyRequest { keys })).await.map(|response| response.dtos)
    }

    /// One page of the records under the parents of `queries`, which agree in type and alias.
    pub(crate) async fn list_by_alias(
        &self,
        queries: &[&AliasQuery],
        page_size: usize,
        page_token: &str,
    ) -> Result<ListByAliasResponse, CallError> {
        let Some(first) = queries.first() else { return Ok(ListByAliasResponse::default()) };
        let request = ListByAliasRequest {
            dto_type: first.dto_type.to_string(),
            alias_name: first.alias.to_string(),
            parent_ids: queries.iter().map(|query| query.parent.to_string()).collect(),
            page_size: i32::try_from(page_size).unwrap_or(i32::MAX),
            page_token: page_token.to_owned(),
        };
        within(CALL_LIMIT, self.dtoflow.clone().list_by_alias(request)).await
    }

    /// One page of the stores that have records under a tenant's parent.
    pub(crate) async fn list_stores(
        &self,
        query: &AliasQuery,
        page_size: usize,
        page_token: &str,
    ) -> Result<ListStoresByAliasResponse, CallError> {
        let request = ListStoresByAliasRequest {
            dto_type: query.dto_type.to_string(),
            alias_name: query.alias.to_string(),
            parent_id: query.parent.to_string(),
            page_size: i32::try_from(page_size).unwrap_or(i32::MAX),
            page_token: page_token.to_owned(),
        };
        within(CALL_LIMIT, self.dtoflow.clone().list_stores_by_alias(request)).await
    }

    pub(crate) async fn put_many(&self, request: PutManyRequest) -> Result<Vec<WriteResult>, CallError> {
        within(CALL_LIMIT, self.dtoflow.clone().put_many(request)).await.map(|response| response.results)
    }

    pub(crate) async fn delete_many(&self, request: DeleteManyRequest) -> Result<Vec<WriteResult>, CallError> {
        within(CALL_LIMIT, self.dtoflow.clone().delete_many(request)).await.map(|response| response.results)
    }

    /// Announces records again for one hop; how many there were.
    pub(crate) async fn touch(&self, request: TouchDtoRequest) -> Result<i32, CallError> {
        within(CALL_LIMIT, self.dtoflow.clone().touch_dto(request)).await.map(|response| response.touched)
    }

    pub(crate) async fn append_audit(&self, entry: AuditEntry) -> Result<(), CallError> {
        within(CALL_LIMIT, self.cqs.clone().append_audit(AppendAuditRequest { entries: vec![entry] })).await.map(drop)
    }
}
