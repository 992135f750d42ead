//! `grpc.health.v1.Health/Check`, the standard health call, for whoever is authenticated: whether this server can do its work.

use std::{
    convert::Infallible,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, FutureExt as _, Ready, ready};
use tonic::{Request, Response, Status, body::Body, server::NamedService};
use tonic_prost::ProstCodec;
use tower::Service;

/// The path of the call.
pub const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
/// `SERVING` of the standard.
const SERVING: i32 = 1;
/// `NOT_SERVING` of the standard.
const NOT_SERVING: i32 = 2;

/// The standard's request.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheckRequest {
    /// Which service; empty for the server as a whole. We have one answer.
    #[prost(string, tag = "1")]
    pub service: String,
}

/// The standard's answer.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct HealthCheckResponse {
    /// 1: serving; 2: not.
    #[prost(int32, tag = "1")]
    pub status: i32,
}

impl HealthCheckResponse {
    /// Whether the server says that it can do its work.
    pub fn is_serving(self) -> bool {
        self.status == SERVING
    }
}

/// Answers the call by asking `look`.
#[derive(Clone)]
pub struct Health {
    look: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Health")
    }
}

impl Health {
    /// A server that is healthy while `look` says so; it is asked at every call and must answer at once.
    pub fn new(look: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { look: Arc::new(look) }
    }
}

impl NamedService for Health {
    const NAME: &'static str = "grpc.health.v1.Health";
}

impl Service<http::Request<Body>> for Health {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != HEALTH_CHECK {
            return ready(Ok(Status::unimplemented("only Check").into_http())).boxed();
        }
        let check = Check(self.clone());
        async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<HealthCheckResponse, HealthCheckRequest>::default());
            Ok(grpc.unary(check, request).await)
        }
        .boxed()
    }
}

struct Check(Health);

impl Service<Request<HealthCheckRequest>> for Check {
    type Response = Response<HealthCheckResponse>;
    type Error = Status;
    type Future = Ready<Result<Self::Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<HealthCheckRequest>) -> Self::Future {
        let status = if (self.0.look)() { SERVING } else { NOT_SERVING };
        ready(Ok(Response::new(HealthCheckResponse { status })))
    }
}
