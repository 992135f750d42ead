//! The transport of a client: a network channel or a server object of the same process, behind one type.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use tonic::body::Body;
use tower::{Service, ServiceExt as _, util::BoxCloneSyncService};

/// What a transport fails with; tonic turns it into an `Unavailable` status.
pub type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Any way to a gRPC server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Transport(BoxCloneSyncService<http::Request<Body>, http::Response<Body>, TransportError>);

impl Transport {
    /// Over a network channel (or any tower service with its error type).
    pub fn over<S>(service: S) -> Self
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + Sync + 'static,
        S::Error: Into<TransportError>,
        S::Future: Send + 'static,
    {
        Self(BoxCloneSyncService::new(service.map_err(Into::into)))
    }

    /// To a server object of the same process: the same routes and layers a network server would serve.
    pub fn to_server<S, B>(server: S) -> Self
    where
        S: Service<http::Request<Body>, Response = http::Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = prost::bytes::Bytes> + Send + 'static,
        B::Error: Into<TransportError>,
    {
        Self(BoxCloneSyncService::new(
            server.map_response(|response| response.map(Body::new)).map_err(|never| match never {}),
        ))
    }
}

impl Service<http::Request<Body>> for Transport {
    type Response = http::Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.0.call(request)
    }
}
