//! The client's side: a service's own key, and the transport that shows its token on every call.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use domain::{Clock, ServiceName, Timestamp};
use futures::future::{BoxFuture, FutureExt as _};
use http::{HeaderValue, header::AUTHORIZATION};
use proto::{Transport, TransportError};
use tonic::body::Body;
use tower::Service;

use super::{KeyError, ServiceKey, TOKEN_LIFETIME_MS, token::mint};
use crate::tls::Watched;

/// A token is replaced when less than this is left of it, in milliseconds.
const RENEW_BEFORE_MS: i64 = 60_000;

/// What a service needs to call others as itself. Cheap to clone.
#[derive(Clone)]
pub struct ServiceCredentials {
    service: ServiceName,
    key: Arc<dyn Fn() -> ServiceKey + Send + Sync>,
    clock: Arc<dyn Clock>,
    current: Arc<Mutex<Option<(HeaderValue, Timestamp)>>>,
}

impl fmt::Debug for ServiceCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceCredentials({})", self.service)
    }
}

impl ServiceCredentials {
    /// Credentials of `service`.
    pub fn new(service: ServiceName, key: ServiceKey, clock: Arc<dyn Clock>) -> Self {
        Self { service, key: Arc::new(move || key.clone()), clock, current: Arc::default() }
    }

    /// Credentials of `service` with the key that a file holds, also after it was replaced: the next token is minted with
    /// the new one, so list both in the registry until then.
    pub fn from_file(service: ServiceName, path: &Path, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        // The first reading tells its cause as a value; later ones only tell the log.
        let first = ServiceKey::read(path)?;
        let again = path.to_path_buf();
        let read = move || ServiceKey::read(&again).map_err(|error| error.to_string());
        let key: Arc<dyn Fn() -> ServiceKey + Send + Sync> =
            match Watched::new("service key", vec![path.to_path_buf()], read) {
                Ok(watched) => Arc::new(move || (*watched.get()).clone()),
                // It could be read a moment ago.
                Err(_) => Arc::new(move || first.clone()),
            };
        Ok(Self { service, key, clock, current: Arc::default() })
    }

    /// Whose they are.
    pub fn service(&self) -> ServiceName {
        self.service
    }

    /// A transport that shows this identity on every call over `transport`.
    pub fn attach(&self, transport: Transport) -> Transport {
        Transport::over(Authenticated { transport, credentials: self.clone() })
    }

    fn bearer(&self) -> Result<HeaderValue, TransportError> {
        let now = self.clock.now();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((value, minted_at)) = current.as_ref()
            && now.ms_since(*minted_at) < TOKEN_LIFETIME_MS - RENEW_BEFORE_MS
            && now >= *minted_at
        {
            return Ok(value.clone());
        }
        let token = mint(self.service, &(self.key)(), now)?;
        let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
        value.set_sensitive(true);
        *current = Some((value.clone(), now));
        Ok(value)
    }
}

#[derive(Clone)]
struct Authenticated {
    transport: Transport,
    credentials: ServiceCredentials,
}

impl Service<http::Request<Body>> for Authenticated {
    type Response = http::Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.transport.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        match self.credentials.bearer() {
            Ok(value) => {
                request.headers_mut().insert(AUTHORIZATION, value);
                self.transport.call(request)
            }
            Err(error) => futures::future::ready(Err(error)).boxed(),
        }
    }
}
