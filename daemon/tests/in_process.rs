//! A server object of the same process authenticates like a server on the network.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use daemon::{
    SystemClock, channel,
    identity::{Registry, ServiceCredentials, ServiceKey, Verifier, caller},
    serve,
};
use domain::{Clock, ErrorCode, ServiceName};
use proto::{
    Transport,
    ecc_image_render::v1::{
        PreviewModelRefreshRequest, TriggerEccStoreRerenderRequest, TriggerEccStoreRerenderResponse,
        TriggerModelRefreshRequest, TriggerModelRefreshResponse,
        ecc_image_render_triggers_server::{EccImageRenderTriggers, EccImageRenderTriggersServer},
    },
    ecc_triggers_client, refusal_from_status, status_from_refusal,
    triggers::v1::PreviewResponse,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, service::Routes};

struct Echo;

#[tonic::async_trait]
impl EccImageRenderTriggers for Echo {
    async fn trigger_model_refresh(
        &self,
        request: Request<TriggerModelRefreshRequest>,
    ) -> Result<Response<TriggerModelRefreshResponse>, Status> {
        let caller = caller(&request).map_err(|refusal| status_from_refusal(&refusal))?;
        let sample = vec![caller.identity().to_string()];
        Ok(Response::new(TriggerModelRefreshResponse { sample_label_ids: sample, ..Default::default() }))
    }

    async fn trigger_ecc_store_rerender(
        &self,
        _: Request<TriggerEccStoreRerenderRequest>,
    ) -> Result<Response<TriggerEccStoreRerenderResponse>, Status> {
        Err(Status::unimplemented("the echo has one trigger"))
    }

    async fn preview_model_refresh(
        &self,
        _: Request<PreviewModelRefreshRequest>,
    ) -> Result<Response<PreviewResponse>, Status> {
        Err(Status::unimplemented("the echo has one trigger"))
    }
}

fn world() -> (Verifier, ServiceCredentials) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let key = ServiceKey::generate().unwrap();
    let document = Registry::standard_document(&[(ServiceName::OperatorGateway, key.public().clone())]).unwrap();
    let verifier = Verifier::new(Arc::new(Registry::parse(&document).unwrap()), clock.clone());
    (verifier, ServiceCredentials::new(ServiceName::OperatorGateway, key, clock))
}

fn routes() -> Routes {
    Routes::new(EccImageRenderTriggersServer::new(Echo))
}

async fn assert_authenticates(transport: Transport, credentials: &ServiceCredentials) {
    let bare =
        ecc_triggers_client(transport.clone()).trigger_model_refresh(TriggerModelRefreshRequest::default()).await;
    assert_eq!(refusal_from_status(&bare.unwrap_err()).code, ErrorCode::Unauthenticated);
    let answer = ecc_triggers_client(credentials.attach(transport))
        .trigger_model_refresh(TriggerModelRefreshRequest::default())
        .await
        .unwrap();
    assert_eq!(answer.into_inner().sample_label_ids, ["svc:operator-gateway"]);
}

#[tokio::test]
async fn in_one_process() {
    let (verifier, credentials) = world();
    assert_authenticates(serve::in_process(routes(), verifier), &credentials).await;
}

#[tokio::test]
async fn past_an_address_that_accepts_and_says_nothing() {
    let (verifier, credentials) = world();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [&silent, &listener].map(|listener| format!("http://{}", listener.local_addr().unwrap()));
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve::grpc(listener, routes(), verifier, stop.clone()));
    let transport = credentials.attach(channel::connect(&addresses).unwrap());
    let call = |transport: Transport| async move {
        ecc_triggers_client(transport).trigger_model_refresh(TriggerModelRefreshRequest::default()).await
    };
    // It is asked first, and its caller gives up once it has heard of the call.
    tokio::select! {
        answer = call(transport.clone()) => panic!("nobody answers: {answer:?}"),
        heard = async {
            let (stream, _) = silent.accept().await.unwrap();
            stream.readable().await.unwrap();
            stream
        } => drop(heard),
    }
    assert_eq!(call(transport).await.unwrap().into_inner().sample_label_ids, ["svc:operator-gateway"]);
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn over_the_network_and_past_a_dead_address() {
    let (verifier, credentials) = world();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve::grpc(listener, routes(), verifier, stop.clone()));
    // A port that was free a moment ago and that nobody listens on.
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let transport = channel::connect(&[format!("http://{dead}"), address]).unwrap();
    assert_authenticates(transport, &credentials).await;
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_answers() {
    let (_, credentials) = world();
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let transport = credentials.attach(channel::connect(&[format!("http://{dead}")]).unwrap());
    let refused = ecc_triggers_client(transport).trigger_model_refresh(TriggerModelRefreshRequest::default()).await;
    assert_eq!(refusal_from_status(&refused.unwrap_err()).code, ErrorCode::Unavailable);
}
