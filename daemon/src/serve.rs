//! Serving gRPC with bounds that do not depend on the client.

use std::time::Duration;

use proto::Transport;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{
    service::Routes,
    transport::{Server, server::TcpIncoming},
};
use tower::ServiceBuilder;

use crate::identity::{AuthLayer, Verifier};

/// Longest call: the longest long-poll (30 s) with room to answer.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Calls in flight on one connection: each may hold one 64 MiB message at worst, workers use a handful.
const CONCURRENCY_PER_CONNECTION: usize = 64;
/// HTTP/2 streams one connection may open.
const STREAMS_MAX: u32 = 128;
/// Resets a peer may have pending before it is cut off (rapid-reset floods).
const PENDING_RESETS_MAX: usize = 32;
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
    Server::builder()
        .timeout(CALL_TIMEOUT)
        .concurrency_limit_per_connection(CONCURRENCY_PER_CONNECTION)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_pending_accept_reset_streams(Some(PENDING_RESETS_MAX))
        .http2_max_header_list_size(HEADER_LIST_MAX)
        .http2_keepalive_interval(Some(Duration::from_secs(20)))
        .layer(AuthLayer::new(verifier))
        .add_routes(routes)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), stop.cancelled_owned())
        .await
}

/// The same routes behind the same layer, as a transport within this process.
pub fn in_process(routes: Routes, verifier: Verifier) -> Transport {
    Transport::to_server(ServiceBuilder::new().layer(AuthLayer::new(verifier)).service(routes.prepare()))
}
