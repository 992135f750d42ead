//! What systems say later: callbacks, kept until the exporter looks.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    routing::post,
};
use domain::Clock;
use http::HeaderValue;
use picture::Digest;
use tokio::{net::TcpListener, sync::OnceCell, task::AbortHandle};

use super::{
    answer::Said,
    signature::{Secret, Signed},
};

/// Callbacks kept. The exporter looks within minutes; beyond this the oldest go, and the system is asked instead.
const KEPT_MAX: usize = 16_384;
/// Longest callback, in bytes.
const BODY_BYTES_MAX: usize = 16_384;
/// Longest label name, in bytes: three ids of 64 with what stands between.
const LABEL_BYTES_MAX: usize = 300;

type Key = (String, Digest);

/// Callbacks that nobody has looked at.
pub(super) struct Inbox {
    secret: Secret,
    url: Option<HeaderValue>,
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    said: BTreeMap<Key, Said>,
    order: VecDeque<Key>,
}

impl Inbox {
    pub(super) fn new(secret: Secret, url: Option<String>, clock: Arc<dyn Clock>) -> Self {
        let url = url.and_then(|url| HeaderValue::from_str(&url).ok());
        Self { secret, url, clock, kept: Mutex::default() }
    }

    /// What systems are told to call.
    pub(super) fn url(&self) -> Option<HeaderValue> {
        self.url.clone()
    }

    /// The route that takes callbacks, at any path the network leads here.
    fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/{*path}", post(take_callback))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .with_state(self)
    }

    /// What was said of the picture; taken out.
    pub(super) fn take(&self, label: &str, digest: Digest) -> Option<Said> {
        let key = (label.to_owned(), digest);
        let mut kept = self.kept();
        let said = kept.said.remove(&key)?;
        kept.order.retain(|other| *other != key);
        Some(said)
    }

    fn keep(&self, key: Key, said: Said) {
        let mut kept = self.kept();
        if kept.said.insert(key.clone(), said).is_none() {
            kept.order.push_back(key);
        }
        if kept.order.len() > KEPT_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.said.remove(&oldest);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens for callbacks from the first time it is told to, until it is dropped.
pub(super) struct Listening {
    at: SocketAddr,
    server: OnceCell<Option<(SocketAddr, AbortHandle)>>,
}

impl Listening {
    pub(super) fn at(at: SocketAddr) -> Self {
        Self { at, server: OnceCell::new() }
    }

    /// Where it listens; nothing where it cannot: then the systems are asked.
    pub(super) async fn begin(&self, inbox: &Arc<Inbox>) -> Option<SocketAddr> {
        let started = self.server.get_or_init(|| async {
            let bound = match TcpListener::bind(self.at).await {
                Ok(listener) => listener.local_addr().map(|address| (listener, address)),
                Err(error) => Err(error),
            };
            let (listener, address) = bound
                .inspect_err(|error| tracing::error!(%error, at = %self.at, "no callbacks of webhooks: cannot listen"))
                .ok()?;
            let router = Arc::clone(inbox).router();
            let server = tokio::spawn(async move {
                if let Err(error) = axum::serve(listener, router).await {
                    tracing::error!(%error, "no more callbacks of webhooks");
                }
            });
            Some((address, server.abort_handle()))
        });
        started.await.as_ref().map(|(address, _)| *address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(Some((_, server))) = self.server.get() {
            server.abort();
        }
    }
}

async fn take_callback(State(inbox): State<Arc<Inbox>>, uri: Uri, headers: HeaderMap, body: Bytes) -> StatusCode {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let listed: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let signed = Signed { method: &Method::POST, path, headers: &listed, body: &body };
    if !inbox.secret.proves(&signed, inbox.clock.now()) {
        return StatusCode::UNAUTHORIZED;
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let label = text("reshelf-label");
    let digest = text("reshelf-digest").parse::<Digest>();
    match (digest, Said::read(&body).filter(Said::names_a_state)) {
        (Ok(digest), Some(said)) if !label.is_empty() && label.len() <= LABEL_BYTES_MAX => {
            inbox.keep((label.to_owned(), digest), said);
            StatusCode::NO_CONTENT
        }
        _ => StatusCode::BAD_REQUEST,
    }
}
