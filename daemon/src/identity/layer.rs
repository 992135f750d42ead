//! The server's side: a tower layer that lets only verified services through, and looks at no more wrong tokens of an
//! address than [`WRONG_TOKENS`] allows.

use std::{
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

use domain::{ErrorCode, Refusal};
use futures::future::{BoxFuture, FutureExt as _};
use http::header::AUTHORIZATION;
use proto::{ERROR_CODE_KEY, status_from_refusal};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

use super::{Caller, TokenError, Verifier};
use crate::{
    rates::{Buckets, Rule},
    serve::{PeerInfo, TokenWas},
};

/// Wrong tokens that are looked at of one address: none of ours shows any, but for a moment while keys rotate. Beyond that no
/// cryptography is spent on it; tokens that were right lately still pass, and so does whoever showed a certificate, or right
/// tokens only on its connection: services renew theirs there, whoever else is at their address.
const WRONG_TOKENS: Rule = Rule { burst: 60, interval_ms: 1_000 };

/// Verifies the service token of every request (or the certificate of its connection) and leaves a [`super::Caller`] in its extensions.
#[derive(Clone)]
pub struct AuthLayer {
    verifier: Verifier,
    wrong: Arc<Buckets<IpAddr>>,
}

impl AuthLayer {
    /// A layer that verifies with `verifier`.
    pub fn new(verifier: Verifier) -> Self {
        Self { verifier, wrong: Arc::new(Buckets::new(WRONG_TOKENS)) }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { inner, auth: self.clone() }
    }
}

/// A server behind an [`AuthLayer`].
#[derive(Clone)]
pub struct AuthService<S> {
    inner: S,
    auth: AuthLayer,
}

/// Why a request is not let through.
enum Refused {
    /// It proves no identity.
    Token(TokenError),
    /// Its address showed too many wrong tokens; this one was not looked at.
    TooMany(IpAddr),
}

impl AuthLayer {
    /// Who sends the request, as far as it proves that.
    fn caller<B>(&self, request: &http::Request<B>) -> Result<Caller, Refused> {
        let peer = request.extensions().get::<PeerInfo>();
        let token = single_bearer(request.headers());
        let verified = match (peer.and_then(|peer| peer.identity.as_ref()), token) {
            (None, Ok(token)) => return self.by_token(token, peer),
            (Some(id), Ok(token)) => self.verifier.verify_peer(id, Some(token)),
            (Some(id), Err(_)) if !request.headers().contains_key(AUTHORIZATION) => self.verifier.verify_peer(id, None),
            (_, Err(error)) => Err(error),
        };
        verified.map_err(Refused::Token)
    }

    /// Calls within the process have no peer.
    fn by_token(&self, token: &str, peer: Option<&PeerInfo>) -> Result<Caller, Refused> {
        let Some(peer) = peer else { return self.verifier.verify(token).map_err(Refused::Token) };
        let now = self.verifier.now();
        let guessed_from = self.wrong.wait_ms(&peer.address, now) > 0;
        if guessed_from && !peer.tokens.only_right() && !self.verifier.knows(token) {
            return Err(Refused::TooMany(peer.address));
        }
        let verified = self.verifier.verify(token);
        peer.tokens.note(if verified.is_ok() { TokenWas::Right } else { TokenWas::Wrong });
        verified.map_err(|error| {
            // Full already: its wait only grows with time.
            let _ = self.wrong.take(&peer.address, now);
            Refused::Token(error)
        })
    }
}

impl Refused {
    fn refusal(&self, path: &str) -> Refusal {
        match self {
            Self::Token(error) => {
                tracing::warn!(%error, path, "service token refused");
                Refusal::new(ErrorCode::Unauthenticated, "no valid service identity")
            }
            Self::TooMany(address) => {
                tracing::debug!(%address, path, "a service token was not looked at");
                Refusal::new(ErrorCode::ResourceExhausted, "too many wrong tokens from this address")
            }
        }
    }
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
        match self.auth.caller(&request) {
            Ok(caller) => {
                request.headers_mut().remove(AUTHORIZATION);
                request.extensions_mut().insert(caller);
                let answer = self.inner.call(request);
                async move { Ok(unread(answer.await?)) }.boxed()
            }
            Err(refused) => {
                let refusal = refused.refusal(request.uri().path());
                futures::future::ready(Ok(status_from_refusal(&refusal).into_http())).boxed()
            }
        }
    }
}

/// How the library begins its text about a message that it cannot read: not of the type, not as long as it says, compressed,
/// or not there at all.
const UNREADABLE: [&str; 4] = [
    "failed to decode Protobuf",
    "protocol error: received message with",
    "Unexpected EOF decoding stream",
    "Missing request message",
];

/// A request that could not be read: tonic calls that INTERNAL. It is the caller's mistake, and no handler saw it. Any
/// other INTERNAL stays what it is: its outcome is unknown.
fn unread(answer: http::Response<Body>) -> http::Response<Body> {
    if answer.headers().contains_key(ERROR_CODE_KEY) {
        return answer;
    }
    let Some(status) = Status::from_header_map(answer.headers()) else { return answer };
    let unreadable = UNREADABLE.iter().any(|start| status.message().starts_with(start));
    if status.code() != Code::Internal || !unreadable {
        return answer;
    }
    tracing::warn!(message = status.message(), "a request could not be read");
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
