//! Serving gRPC with bounds that do not depend on the client.

use std::time::Duration;

use proto::Transport;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{service::Routes, transport::Server};
use tower::ServiceBuilder;

use crate::{
    identity::{AuthLayer, Verifier},
    tls::ServerTls,
};

mod health;
mod incoming;

pub use health::{HEALTH_CHECK, Health, HealthCheckRequest, HealthCheckResponse};
pub use incoming::{PeerInfo, ShownTokens, TokenWas};

/// Longest call: the longest long-poll (30 s) with room to answer.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Calls in flight on one connection: each may hold one 64 MiB message at worst, workers use a handful.
const CONCURRENCY_PER_CONNECTION: usize = 64;
/// HTTP/2 streams one connection may open.
const STREAMS_MAX: u32 = 128;
/// Resets a peer may have pending before it is cut off (rapid-reset floods).
const PENDING_RESETS_MAX: usize = 32;
/// Streams of one connection that the server itself may have to reset for errors before the connection is ended: an
/// honest client causes none.
const LOCAL_ERROR_RESETS_MAX: usize = 64;
/// Longest life of a TLS connection: after it the peer connects anew, with the certificates of then.
const CONNECTION_AGE_MAX: Duration = Duration::from_mins(30);
/// What is in flight at that age may go on this long: the longest call.
const CONNECTION_AGE_GRACE: Duration = CALL_TIMEOUT;
/// Header list of a request, in bytes: a token and a few texts.
const HEADER_LIST_MAX: u32 = 16 * 1024;

/// Serves `routes` on `listener`, each call authenticated by `verifier`, until `stop` is cancelled; then finishes what
/// is in flight.
pub async fn grpc(
    listener: TcpListener,
    routes: Routes,
    verifier: Verifier,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    grpc_over(listener, None, (routes, verifier), stop).await
}

/// As [`grpc`]; with `tls` nothing but TLS is spoken.
pub async fn grpc_over(
    listener: TcpListener,
    tls: Option<ServerTls>,
    (routes, verifier): (Routes, Verifier),
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let mut server = Server::builder()
        .timeout(CALL_TIMEOUT)
        .concurrency_limit_per_connection(CONCURRENCY_PER_CONNECTION)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_pending_accept_reset_streams(Some(PENDING_RESETS_MAX))
        .http2_max_local_error_reset_streams(Some(LOCAL_ERROR_RESETS_MAX))
        .http2_max_header_list_size(HEADER_LIST_MAX)
        .http2_keepalive_interval(Some(Duration::from_secs(20)));
    if tls.is_some() {
        server = server.max_connection_age(CONNECTION_AGE_MAX).max_connection_age_grace(CONNECTION_AGE_GRACE);
    }
    server
        .layer(AuthLayer::new(verifier))
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming::incoming(listener, tls, stop.clone()), stop.cancelled_owned())
        .await
}

/// The same routes behind the same layer, as a transport within this process.
pub fn in_process(routes: Routes, verifier: Verifier) -> Transport {
    Transport::to_server(ServiceBuilder::new().layer(AuthLayer::new(verifier)).service(routes.prepare()))
}
