//! gRPC: a handler learns who calls, parses, calls the store, maps. Policy is in `plan` and in the parsing of each verb.

mod history;
mod look;
mod read;
mod touch;
mod write;

use std::{future::Future, sync::Arc};

use cqs::{Wakeups, announce::Woken};
use domain::{Clock, Refusal, limits::MESSAGE_MAX_BYTES};
use proto::{
    dtoflow::v1::{
        self as wire,
        dto_flow_service_server::{DtoFlowService, DtoFlowServiceServer},
    },
    status_from_refusal,
};
use tonic::{Request, Response, Status};

use crate::store::{DtoStore, Result};

/// What the server needs besides its store.
#[derive(Clone)]
pub struct DtoFlowServerParts {
    /// The service's time.
    pub clock: Arc<dyn Clock>,
    /// Wakes `Dequeue` calls of this process after a write is committed.
    pub wakeups: Wakeups,
}

/// The gRPC server of DTOflow.
pub struct DtoFlowServer {
    store: Arc<dyn DtoStore>,
    parts: DtoFlowServerParts,
}

impl DtoFlowServer {
    /// A server over `store`.
    pub fn new(store: Arc<dyn DtoStore>, parts: DtoFlowServerParts) -> Self {
        Self { store, parts }
    }

    /// As a service to be put among the routes, with the platform's message bounds.
    pub fn into_service(self) -> DtoFlowServiceServer<Self> {
        DtoFlowServiceServer::new(self)
            .max_decoding_message_size(MESSAGE_MAX_BYTES)
            .max_encoding_message_size(MESSAGE_MAX_BYTES)
    }

    /// Runs a changing step in a task of its own: the queues are woken after its commit even when the caller has gone.
    async fn carry_out<T, F, S>(&self, rpc: &'static str, step: F) -> std::result::Result<T, Refusal>
    where
        F: FnOnce(Arc<dyn DtoStore>) -> S,
        S: Future<Output = Result<(T, Woken)>> + Send + 'static,
        T: Send + 'static,
    {
        let step = step(Arc::clone(&self.store));
        let wakeups = self.parts.wakeups.clone();
        let running = tokio::spawn(async move {
            let (answer, woken) = step.await.map_err(|error| error.into_refusal(rpc))?;
            wakeups.wake(&woken);
            Ok(answer)
        });
        running.await.unwrap_or_else(|error| {
            tracing::error!(%error, rpc, "a step ended early");
            Err(Refusal::internal())
        })
    }
}

type Answer<T> = std::result::Result<Response<T>, Status>;

fn answer<T>(result: std::result::Result<T, Refusal>) -> Answer<T> {
    result.map(Response::new).map_err(|refusal| status_from_refusal(&refusal))
}

#[tonic::async_trait]
impl DtoFlowService for DtoFlowServer {
    async fn put_many(&self, request: Request<wire::PutManyRequest>) -> Answer<wire::WriteManyResponse> {
        answer(self.put(request).await)
    }

    async fn delete_many(&self, request: Request<wire::DeleteManyRequest>) -> Answer<wire::WriteManyResponse> {
        answer(self.delete(request).await)
    }

    async fn get_many(&self, request: Request<wire::GetManyRequest>) -> Answer<wire::GetManyResponse> {
        answer(self.get(request).await)
    }

    async fn list_by_alias(&self, request: Request<wire::ListByAliasRequest>) -> Answer<wire::ListByAliasResponse> {
        answer(self.list(request).await)
    }

    async fn count_by_alias(&self, request: Request<wire::CountByAliasRequest>) -> Answer<wire::CountByAliasResponse> {
        answer(self.count(request).await)
    }

    async fn list_stores_by_alias(
        &self,
        request: Request<wire::ListStoresByAliasRequest>,
    ) -> Answer<wire::ListStoresByAliasResponse> {
        answer(self.stores(request).await)
    }

    async fn list_history(&self, request: Request<wire::ListHistoryRequest>) -> Answer<wire::ListHistoryResponse> {
        answer(self.history(request).await)
    }

    async fn touch_dto(&self, request: Request<wire::TouchDtoRequest>) -> Answer<wire::TouchDtoResponse> {
        answer(self.touch(request).await)
    }
}
