//! The server's side: a tower layer that lets only verified services through.

use std::task::{Context, Poll};

use domain::{ErrorCode, Refusal};
use futures::future::{BoxFuture, FutureExt as _};
use http::header::AUTHORIZATION;
use proto::{ERROR_CODE_KEY, status_from_refusal};
use tonic::body::Body;
use tower::{Layer, Service};

use super::{TokenError, Verifier};
use crate::serve::PeerInfo;

/// Verifies the service token of every request (or the certificate of its connection) and leaves a [`super::Caller`] in its extensions.
#[derive(Clone)]
pub struct AuthLayer {
    verifier: Verifier,
}

impl AuthLayer {
    /// A layer that verifies with `verifier`.
    pub fn new(verifier: Verifier) -> Self {
        Self { verifier }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { inner, verifier: self.verifier.clone() }
    }
}

/// A server behind an [`AuthLayer`].
#[derive(Clone)]
pub struct AuthService<S> {
    inner: S,
    verifier: Verifier,
}

impl<S, B> Service<http::Request<B>> for AuthService<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        let shown = request.extensions().get::<PeerInfo>().and_then(|peer| peer.identity.clone());
        let verified = match (shown, single_bearer(request.headers())) {
            (None, token) => token.and_then(|token| self.verifier.verify(token)),
            (Some(id), Ok(token)) => self.verifier.verify_peer(&id, Some(token)),
            (Some(id), Err(_)) if !request.headers().contains_key(AUTHORIZATION) => {
                self.verifier.verify_peer(&id, None)
            }
            (Some(_), Err(error)) => Err(error),
        };
        match verified {
            Ok(caller) => {
                request.headers_mut().remove(AUTHORIZATION);
                request.extensions_mut().insert(caller);
                let answer = self.inner.call(request);
                async move { Ok(unread(answer.await?)) }.boxed()
            }
            Err(error) => {
                tracing::warn!(%error, path = request.uri().path(), "service token refused");
                let refusal = Refusal::new(ErrorCode::Unauthenticated, "no valid service identity");
                futures::future::ready(Ok(status_from_refusal(&refusal).into_http())).boxed()
            }
        }
    }
}

/// How the codec begins its text about a message that it cannot read, as the wire carries it.
const UNREADABLE: [&[u8]; 2] = [b"failed to decode Protobuf", b"failed%20to%20decode%20Protobuf"];

/// A request that could not be decoded: tonic calls that INTERNAL. It is the caller's mistake, and no handler saw it. Any
/// other INTERNAL stays what it is: its outcome is unknown.
fn unread(answer: http::Response<Body>) -> http::Response<Body> {
    let headers = answer.headers();
    let internal = headers.get("grpc-status").is_some_and(|status| status.as_bytes() == b"13");
    let message = headers.get("grpc-message").map(http::HeaderValue::as_bytes).unwrap_or_default();
    let unreadable = UNREADABLE.iter().any(|start| message.starts_with(start));
    if !internal || !unreadable || headers.contains_key(ERROR_CODE_KEY) {
        return answer;
    }
    tracing::warn!(message = ?headers.get("grpc-message"), "a request could not be decoded");
    let refusal = Refusal::new(ErrorCode::InvalidArgument, "the request is no message of this call's type");
    status_from_refusal(&refusal).into_http()
}

fn single_bearer(headers: &http::HeaderMap) -> Result<&str, TokenError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => {
            value.to_str().ok().and_then(|text| text.strip_prefix("Bearer ")).ok_or(TokenError::Missing)
        }
        _ => Err(TokenError::Missing),
    }
}
