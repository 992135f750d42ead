//! The server's side: a tower layer that lets only verified services through.

use std::task::{Context, Poll};

use domain::{ErrorCode, Refusal};
use futures::future::{BoxFuture, FutureExt as _};
use http::header::AUTHORIZATION;
use proto::status_from_refusal;
use tonic::body::Body;
use tower::{Layer, Service};

use super::{TokenError, Verifier};

/// Verifies the service token of every request and leaves a [`super::Caller`] in its extensions.
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
        match single_bearer(request.headers()).and_then(|token| self.verifier.verify(token)) {
            Ok(caller) => {
                request.headers_mut().remove(AUTHORIZATION);
                request.extensions_mut().insert(caller);
                self.inner.call(request).boxed()
            }
            Err(error) => {
                tracing::warn!(%error, path = request.uri().path(), "service token refused");
                let refusal = Refusal::new(ErrorCode::Unauthenticated, "no valid service identity");
                futures::future::ready(Ok(status_from_refusal(&refusal).into_http())).boxed()
            }
        }
    }
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
