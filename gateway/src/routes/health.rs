//! `/healthz`, `/readyz`, `/metrics`

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse as _, Response},
};
use daemon::serve::{HEALTH_CHECK, HealthCheckRequest, HealthCheckResponse};
use domain::{AliasName, DtoType, ErrorCode};
use futures::future::join_all;
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE, uri::PathAndQuery};
use proto::{Transport, cqs::v1::GetOperationRequest, dtoflow::v1::CountByAliasRequest};
use serde::Serialize;
use tonic::{Code, Request, Status, client::Grpc};
use tonic_prost::ProstCodec;
use utoipa::ToSchema;

use crate::{
    backend::{CallError, Peer, call_within},
    state::Gateway,
};

/// Longest wait for one probe: load balancers give up after a few seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// A tenant that needs not exist; the probes only read.
const PROBE_TENANT: &str = "readyz";

/// The process answers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Whether the gateway can do its work.
#[derive(Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Whether everything needed answers.
    ready: bool,
    /// The services that do not, the platform's disk when it is full, identity providers whose keys cannot be had.
    down: Vec<String>,
}

/// The process answers. Says nothing of others.
#[utoipa::path(
    get, path = "/healthz", operation_id = "get_health", tag = "daemon", security(()),
    responses((status = 200, description = "The process answers.", body = Health))
)]
pub(crate) async fn get_health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the platform and every trigger service answer the gateway, and the keys of operator tokens are known.
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "daemon", security(()),
    responses(
        (status = 200, description = "Everything needed answers.", body = Readiness),
        (status = 503, description = "`down` names what does not.", body = Readiness)
    )
)]
pub(crate) async fn get_readiness(State(gateway): State<Arc<Gateway>>) -> Response {
    let triggers = gateway.trigger_services().map(|(service, transport)| {
        let peer = Peer::Trigger(service);
        async move { (peer, answers(call_within(peer, PROBE_TIMEOUT, listens(transport.clone())).await)) }
    });
    let keys = gateway.operators.issuers_without_keys();
    // Reading works on a full disk, so the platform is also asked whether it can write.
    let room = call_within(Peer::Cqs, PROBE_TIMEOUT, listens(gateway.platform()));
    let (cqs, dtoflow, room, triggers, keyless) =
        tokio::join!(cqs(&gateway), dtoflow(&gateway), room, join_all(triggers), keys);
    let full = cqs && !answers(room);
    let down: Vec<String> = [(Peer::Cqs, cqs), (Peer::DtoFlow, dtoflow)]
        .into_iter()
        .chain(triggers)
        .filter(|(_, answers)| !answers)
        .map(|(peer, _)| peer.to_string())
        .chain(full.then(|| "disk of the platform".to_owned()))
        .chain(keyless.into_iter().map(|issuer| format!("keys of {issuer}")))
        .collect();
    let status = if down.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready: down.is_empty(), down })).into_response()
}

async fn cqs(gateway: &Gateway) -> bool {
    let request = GetOperationRequest { tenant_id: PROBE_TENANT.to_owned(), tracking_id: PROBE_TENANT.to_owned() };
    answers(call_within(Peer::Cqs, PROBE_TIMEOUT, gateway.cqs().get_operation(request)).await)
}

async fn dtoflow(gateway: &Gateway) -> bool {
    let request = CountByAliasRequest {
        dto_type: DtoType::StoreEsl.to_string(),
        alias_name: AliasName::ByStore.to_string(),
        parent_ids: vec![format!("t/{PROBE_TENANT}")],
    };
    answers(call_within(Peer::DtoFlow, PROBE_TIMEOUT, gateway.dtoflow().count_by_alias(request)).await)
}

fn answers<T>(answer: Result<T, CallError>) -> bool {
    match answer {
        Ok(_) => true,
        Err(CallError::Refused(refusal)) => refusal.code == ErrorCode::NotFound,
        Err(CallError::Down(_) | CallError::DownBehind(_) | CallError::NoAnswer(_) | CallError::Fault) => false,
    }
}

/// A dry run would leave an audit row for its refusal, so a service is asked for its health. That it does not know the
/// method says enough: it listens and accepted the gateway's identity.
async fn listens(transport: Transport) -> Result<tonic::Response<()>, Status> {
    match health(transport).await {
        Ok(answer) if answer.get_ref().is_serving() => Ok(tonic::Response::new(())),
        Ok(_) => Err(Status::unavailable("says that it cannot do its work")),
        Err(status) if status.code() == Code::Unimplemented => Ok(tonic::Response::new(())),
        Err(status) => Err(status),
    }
}

async fn health(transport: Transport) -> Result<tonic::Response<HealthCheckResponse>, Status> {
    let mut grpc = Grpc::new(transport);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::from_static(HEALTH_CHECK);
    grpc.unary(Request::new(HealthCheckRequest::default()), path, ProstCodec::default()).await
}

/// Counts and latencies of requests, and how the platform stands, in Prometheus' text form.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "daemon", security(()),
    responses((status = 200, description = "All series of this process.", body = String, content_type = "text/plain"))
)]
pub(crate) async fn get_metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    let gauges = gateway.gauges.render(&gateway).await;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, kind)], gateway.metering.render() + &gauges).into_response()
}
